/* SPDX-License-Identifier: BSD-2-Clause */
/* segments - computes for a second in two segments of code of one file, as node has them, and says how long in each. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static volatile unsigned sum;

__attribute__((noinline, section(".text2"))) static void segments_far(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sum += i;
}

__attribute__((noinline)) static void segments_near(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sum += i;
}

int main(void)
{
	uint64_t far = 0, near = 0, begin = cpu_ns();

	while (cpu_ns() - begin < 1000000000) {
		uint64_t at = cpu_ns();
		segments_far(300000);
		far += cpu_ns() - at;
		at = cpu_ns();
		segments_near(100000);
		near += cpu_ns() - at;
	}
	printf("{\"segments_far\": %llu, \"segments_near\": %llu}\n", (unsigned long long)far,
	       (unsigned long long)near);
	return 0;
}
