/* SPDX-License-Identifier: BSD-2-Clause */
/* steps_private.h - what collecting and printing share. */
#ifndef XSP_ANALYSIS_STEPS_PRIVATE_H
#define XSP_ANALYSIS_STEPS_PRIVATE_H

#include "analysis/memory/growth.h"
#include "analysis/names/step_shares.h"
#include "analysis/names/steps.h"
#include "base/histogram.h"
#include "base/rows/u64map.h"

#define XSP_STEPS_SLOWEST 5U

struct step {
	uint64_t number, start_ns, end_ns;
	uint32_t track;
	uint64_t calls;
	struct xsp_step_share *shares; /* owned; only of the slowest */
	size_t share_count;
};
static inline uint64_t step_length(const struct step *step)
{
	return step->end_ns - step->start_ns;
}

/* Steps of one thread that count, at the thread's index. */
struct track {
	uint32_t pid, tid;
	uint64_t steps, calls, sum_ns, max_ns;
};

struct xsp_steps {
	struct xsp_timeline *timeline;
	struct xsp_step_shares *shares; /* by name */
	struct track *tracks;
	uint32_t track_count;
	size_t track_capacity;
	struct xsp_histogram times;
	struct xsp_growth_steps over_time; /* including warm-up */
	struct xsp_u64map processes; /* processes with steps, by pid */
	uint64_t whole; /* steps, including warm-up */
	uint64_t steps, calls, sum_ns, min_ns, max_ns;
	uint64_t probe_ns; /* part of sum_ns */
	double mean, squares; /* Welford's */
	uint64_t not_whole; /* began or ended outside the recorded time */
	uint64_t left_out; /* steps of threads beyond those that are followed */
	bool by_ends;
	char title[80]; /* the first marker: "ProfilerStep#*" */
	struct step slowest[XSP_STEPS_SLOWEST];
	size_t slowest_count;
	struct step *warm_up;
	size_t warm_up_count, warm_up_capacity;
};

uint64_t xsp_steps_quantile(const struct xsp_steps *s, double share);

#endif
