/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps.h - iterations of a program: what marks them, and where each begins and ends.
 *
 * `ProfilerStep#N` (torch.profiler's step()) is a step by itself, and so is what --step names;
 * `Optimizer.step#...` ends one, which began where the one before it ended. Calls are those of the step's own
 * thread. A step that was not recorded from its beginning to its end is in no figure.
 */
#ifndef XSP_TIMELINE_STEPS_H
#define XSP_TIMELINE_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xsp_timeline;

#define XSP_STEPS_FIRST 10U /* of a thread, among which warm-up is looked for */

enum xsp_step_news {
	XSP_STEP_ENDED, /* it was recorded whole, and lies in the part that is asked for */
	XSP_STEP_PARTIAL, /* it was not, or lies there in part only: it is in no figure */
	XSP_STEP_OUTSIDE, /* it does not lie there */
	XSP_STEP_UNFOLLOWED, /* there are more threads with steps than are followed */
	/* of one that has ended: at once, or of a thread's first ones at the end of the run */
	XSP_STEP_COUNTS,
	XSP_STEP_WARM_UP, /* it took more than twice the median, as all before it did: it is in no figure */
	XSP_STEP_FORGET, /* those so far do not count, as a span is a step: what ended them marks none */
};

struct xsp_step {
	enum xsp_step_news news;
	uint32_t pid, tid;
	uint32_t
		thread; /* index among those that have steps, in the order in which they were met */
	uint32_t name; /* xsp_name_id of the span that marks it */
	uint64_t number, start_ns, end_ns;
	uint64_t probe_ns; /* of its time, estimated, in probes of what was called in it */
	bool first; /* one of its thread's first: whether it counts is not known before the end */
	bool by_ends; /* what lies between two ends is a step: a lost one makes one of two */
};

/* Before the run: only spans of this name, or of this name and a number, are steps. Kept by reference. */
void xsp_timeline_mark_steps(struct xsp_timeline *t, const char *marker);
/* Does the capture have a name that marks steps? Without memory it has; the run then says so. */
bool xsp_timeline_steps_expected(struct xsp_timeline *t);
/* Is a span of that name a step, or the end of one? */
bool xsp_timeline_marks_steps(struct xsp_timeline *t, uint32_t name);
/* Where there are none: why, and what says what one is. */
void xsp_timeline_no_steps(struct xsp_timeline *t, char *out, size_t size);
/* Names that only number ("ProfilerStep#17"): the length of what they have in common, else 0. */
size_t xsp_timeline_step_stem(const struct xsp_timeline *t, const char *name);

#endif
