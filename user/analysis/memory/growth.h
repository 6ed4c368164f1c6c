/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growth.h - does an amount grow for good, or does it only go up and down? Of each piece of time the least is kept:
 * what a step of a program takes and gives back does not show in it, what it keeps does.
 */
#ifndef XSP_ANALYSIS_GROWTH_H
#define XSP_ANALYSIS_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XSP_GROWTH_PIECES 64
#define XSP_GROWTH_LEAST_NS 500000000U /* in less time nothing is known of it */

/* The pieces of time of all amounts that are compared; they double when they do not suffice. Zero-initialise. */
struct xsp_growth_clock {
	uint64_t start_ns, last_ns, piece_ns;
	unsigned doubled;
};

/* Zero-initialise: nothing is there before its first amount. */
struct xsp_growth {
	uint64_t least[XSP_GROWTH_PIECES];
	uint64_t now;
	unsigned count; /* pieces, the last of which is not over */
	unsigned doubled;
};

/* It is at least so late. */
void xsp_growth_time(struct xsp_growth_clock *c, uint64_t ns);
/* The amount from the clock's time on. */
void xsp_growth_put(const struct xsp_growth_clock *c, struct xsp_growth *g, uint64_t amount);

/* How far a program has come in its steps: how many of them lie in each piece of time. Zero-initialise but start_ns. */
#define XSP_GROWTH_STEP_PIECES 1024
struct xsp_growth_steps {
	uint64_t start_ns, piece_ns;
	double steps[XSP_GROWTH_STEP_PIECES];
};
/* There was a step then. */
void xsp_growth_step(struct xsp_growth_steps *s, uint64_t from_ns, uint64_t to_ns);

/* Amount a second, or a step: by least squares, and the interval in which it is in 95 cases of 100. */
struct xsp_rate {
	double slope, low, high;
};
struct xsp_slope {
	bool known; /* enough time and changes to tell */
	bool grows; /* and never came down again */
	double slope, low, high; /* a second */
	bool steps_known; /* there were steps meanwhile */
	struct xsp_rate a_step;
};
/* steps: NULL where there are none. */
struct xsp_slope xsp_growth_slope(const struct xsp_growth_clock *c, const struct xsp_growth *g,
				  const struct xsp_growth_steps *steps);

#endif
