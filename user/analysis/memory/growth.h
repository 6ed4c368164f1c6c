/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growth.h - does an amount grow for good, or does it only go up and down? The least amount of each
 * piece of time is kept. What a step takes and gives back does not show in it; what the step keeps
 * does.
 */
#ifndef XSP_ANALYSIS_GROWTH_H
#define XSP_ANALYSIS_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XSP_GROWTH_PIECES 64
#define XSP_GROWTH_LEAST_NS 500000000U /* in less time nothing can be said */

/* Pieces of time, common to all amounts compared; they double when they run out.
 * Zero-initialise. */
struct xsp_growth_clock {
	uint64_t start_ns, last_ns, piece_ns;
	unsigned doubled;
};

/* Zero-initialise: the amount is 0 until its first value. */
struct xsp_growth {
	uint64_t least[XSP_GROWTH_PIECES];
	uint64_t now;
	unsigned count; /* pieces; the last one is not over */
	unsigned doubled;
};

/* Moves the clock forward to `ns`. */
void xsp_growth_time(struct xsp_growth_clock *c, uint64_t ns);
/* Sets the amount from the clock's time on. */
void xsp_growth_put(const struct xsp_growth_clock *c, struct xsp_growth *g, uint64_t amount);

/* The number of steps in each piece of time. Set start_ns; zero-initialise the rest. */
#define XSP_GROWTH_STEP_PIECES 1024
struct xsp_growth_steps {
	uint64_t start_ns, piece_ns;
	double steps[XSP_GROWTH_STEP_PIECES];
};
/* Adds a step. */
void xsp_growth_step(struct xsp_growth_steps *s, uint64_t from_ns, uint64_t to_ns);

/* Amount per second or per step, by least squares, with its 95 % interval. */
struct xsp_rate {
	double slope, low, high;
};
struct xsp_slope {
	bool known; /* there was enough time and change */
	bool grows; /* and it never fell again */
	double slope, low, high; /* per second */
	bool steps_known; /* there were steps during that time */
	struct xsp_rate a_step;
};
/* How an amount was estimated from samples. */
struct xsp_growth_samples {
	double grain; /* bytes: its variance by its size. 0: nothing was estimated */
	bool all_kept; /* nothing that was sampled was given back */
};
/* steps: NULL if there are none. samples: NULL if the amount is exact. */
struct xsp_slope xsp_growth_slope(const struct xsp_growth_clock *c, const struct xsp_growth *g,
				  const struct xsp_growth_steps *steps,
				  const struct xsp_growth_samples *samples);

#endif
