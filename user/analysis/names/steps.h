/* SPDX-License-Identifier: BSD-2-Clause */
/* steps.h - figures of steps (timeline/steps.h): their time, the calls in them, the slowest
 * ones. */
#ifndef XSP_ANALYSIS_STEPS_H
#define XSP_ANALYSIS_STEPS_H

#include "analysis/memory/growth.h"
#include "report/report.h"
#include "timeline/timeline.h"

struct xsp_steps;

int xsp_steps_new(struct xsp_timeline *t, struct xsp_steps **out);
void xsp_steps_free(struct xsp_steps *s);
/* Take the timeline's news of steps. `name`: the row that counts the span's calls. 0 or -ENOMEM. */
int xsp_steps_step(struct xsp_steps *s, const struct xsp_step *step);
int xsp_steps_in_step(struct xsp_steps *s, const struct xsp_span *span, uint32_t thread,
		      xsp_name_id name);

/* Were events lost? Then the contents of steps are uncertain. */
bool xsp_steps_uncertain(const struct xsp_capture_reader *r);

/* The rest is for after the run. Reports the steps, the slowest ones, and what took longer in
 * them. A full report says so if there are none. */
void xsp_steps_report(const struct xsp_steps *s, const struct xsp_capture_reader *r,
		      struct xsp_report *report);

/* All threads together. A step that does not count is only in warm_up or not_whole. */
struct xsp_steps_figures {
	uint64_t steps; /* those that count; 0: there are none */
	uint64_t sum_ns, mean_ns, median_ns;
	uint64_t probe_ns; /* estimated time of probes in sum_ns */
	/* warm-up steps, which `steps` does not count */
	uint64_t warm_up, warm_up_ns, warm_up_from_ns, warm_up_to_ns;
	uint64_t not_whole;
	bool by_ends; /* a step runs from one end to the next: a lost end joins two steps */
};
struct xsp_steps_figures xsp_steps_figures(const struct xsp_steps *s);
/* When steps ran, including warm-up; NULL: there were none. */
const struct xsp_growth_steps *xsp_steps_over_time(const struct xsp_steps *s);
/* Processes with steps; at least 1. */
size_t xsp_steps_processes(const struct xsp_steps *s);
/* In those steps: calls of that name, and their own time (may be NULL). */
uint64_t xsp_steps_calls(const struct xsp_steps *s, xsp_name_id name, uint64_t *self_ns);

#endif
