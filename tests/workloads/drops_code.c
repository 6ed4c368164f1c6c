/* SPDX-License-Identifier: BSD-2-Clause */
/* drops_code - drops the page of one of its two functions in the middle, as madvise() lets a program do. */
#include "workload.h"

#include <sys/mman.h>

#define PAGE 4096
#define OWN_PAGE(name) __attribute__((section(name), aligned(PAGE)))

uint64_t dropped_work(uint64_t x);
uint64_t kept_work(uint64_t x);

WL_TRACED OWN_PAGE(".text.a_dropped") uint64_t dropped_work(uint64_t x)
{
	return wl_mix(x) + wl_mix(x + 1);
}

WL_TRACED OWN_PAGE(".text.b_kept") uint64_t kept_work(uint64_t x)
{
	return wl_mix(x) - wl_mix(x + 1);
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "drops_code", .calls = 100};
	uint64_t sum = 0;

	wl_parse(&o, argc, argv);
	wl_start(&o);
	for (uint64_t n = 0; n < 2 * o.calls; n++) {
		if (n == o.calls &&
		    madvise((void *)(uintptr_t)dropped_work, PAGE, MADV_DONTNEED) != 0)
			return 1;
		sum += dropped_work(n) + kept_work(n);
	}
	const struct wl_count truth[] = {{"dropped_work", 2 * o.calls, 0},
					 {"kept_work", 2 * o.calls, 0}};
	return wl_finish(&o, sum, truth, 2, NULL);
}
