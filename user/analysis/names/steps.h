/* SPDX-License-Identifier: BSD-2-Clause */
/* steps.h - figures of steps (timeline/steps.h): how long they take, what is called in them, the slowest. */
#ifndef XSP_ANALYSIS_STEPS_H
#define XSP_ANALYSIS_STEPS_H

#include "analysis/memory/growth.h"
#include "report/report.h"
#include "timeline/timeline.h"

struct xsp_steps;

int xsp_steps_new(struct xsp_timeline *t, struct xsp_steps **out);
void xsp_steps_free(struct xsp_steps *s);
/* What the timeline tells of steps. `name`: what the span's calls are counted under. 0 or -ENOMEM. */
int xsp_steps_step(struct xsp_steps *s, const struct xsp_step *step);
int xsp_steps_in_step(struct xsp_steps *s, const struct xsp_span *span, uint32_t thread,
		      xsp_name_id name);

/* Were events lost, which makes what steps hold uncertain? */
bool xsp_steps_uncertain(const struct xsp_capture_reader *r);

/* The rest is for after the run. Steps, the slowest, and what was longer in them; a full report says so where there are
 * none. */
void xsp_steps_report(const struct xsp_steps *s, const struct xsp_capture_reader *r,
		      struct xsp_report *report);

/* Of all threads together; a step that is left out is in none but its own. */
struct xsp_steps_figures {
	uint64_t steps; /* those that count; 0: there are none */
	uint64_t sum_ns, mean_ns, median_ns;
	uint64_t probe_ns; /* of sum_ns, estimated, in probes */
	uint64_t warm_up, warm_up_ns, warm_up_from_ns, warm_up_to_ns; /* left out as such */
	uint64_t not_whole;
	bool by_ends; /* what lies between two ends is a step: a lost one makes one of two */
};
struct xsp_steps_figures xsp_steps_figures(const struct xsp_steps *s);
/* When there were steps, warm-up as well; NULL: there were none. */
const struct xsp_growth_steps *xsp_steps_over_time(const struct xsp_steps *s);
/* Processes that had some: at least 1. */
size_t xsp_steps_processes(const struct xsp_steps *s);
/* ... in them, of what was counted under that name: calls, and their own time (may be NULL). */
uint64_t xsp_steps_calls(const struct xsp_steps *s, xsp_name_id name, uint64_t *self_ns);

#endif
