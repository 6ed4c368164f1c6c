/* SPDX-License-Identifier: BSD-2-Clause */
/* evicted - ranges whose name is a literal that is in memory every other time. */
#include "workload.h"
#include "xsptrace/record_function.h"

#include <sys/mman.h>

#define PAGE 4096

static const char names[PAGE] __attribute__((aligned(PAGE))) = "thrown out";

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "evicted", .calls = 200};
	const volatile char *touched = names;
	uint64_t n = 0, sum = 0;

	wl_parse(&o, argc, argv);
	wl_start(&o);
	for (; !wl_stop() && n < o.calls; n++) {
		if (madvise((void *)(uintptr_t)names, PAGE, MADV_DONTNEED) != 0)
			return 1;
		if (n % 2)
			sum += (uint64_t)*touched;
		XSP_RECORD_FUNCTION(names);
	}
	const struct wl_count truth[] = {{"thrown out", n, 0}};
	return wl_finish(&o, sum, truth, 1, NULL);
}
