/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/clock.h"

#include <time.h>

uint64_t xsp_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

void xsp_nap_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000U), (long)(ns % 1000000000U)};

	nanosleep(&t, NULL);
}
