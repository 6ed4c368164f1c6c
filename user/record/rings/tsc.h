/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tsc.h - the processor's time stamp counter, as CLOCK_MONOTONIC. Pairs of both are taken as the recording goes, and
 * times between two pairs are interpolated: so they follow the clock where NTP slews it. Zero-initialise.
 */
#ifndef XSP_RECORD_TSC_H
#define XSP_RECORD_TSC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XSP_TSC_PAIRS 64U

struct xsp_tsc_pair {
	uint64_t tsc, ns;
	uint64_t ticks; /* that its reading took; it is off by less than half of them */
};

struct xsp_tsc {
	struct xsp_tsc_pair
		pairs[XSP_TSC_PAIRS]; /* the latest ones; number n is in n % XSP_TSC_PAIRS */
	uint64_t count; /* ever */
	struct xsp_tsc_pair base; /* what the rate is counted from */
	double rate; /* ns a tick, over half a second or more; 0: not known yet */
	uint64_t uneven; /* how often it has left the one before by more than 200 ppm */
};

/* Does the counter tick evenly on this machine, also while a processor sleeps? */
bool xsp_tsc_is_even(void);
/* Both clocks now: the tightest of a few tries. */
struct xsp_tsc_pair xsp_tsc_read(void);
/* The next pair: later than all others; what is not is dropped. */
void xsp_tsc_add(struct xsp_tsc *t, const struct xsp_tsc_pair *pair);
/* CLOCK_MONOTONIC, ns. After the last pair, or before the first one that is left, it goes on at the same rate. */
uint64_t xsp_tsc_ns(const struct xsp_tsc *t, uint64_t tsc);

#endif
