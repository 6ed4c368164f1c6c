/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/clock.h"

#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

uint64_t xsp_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t xsp_real_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

void xsp_nap_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000U), (long)(ns % 1000000000U)};

	nanosleep(&t, NULL);
}
