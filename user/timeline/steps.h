/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps.h - iterations of a program: what marks them, and where each begins and ends.
 *
 * A `ProfilerStep#N` (torch.profiler's step()) is a step, and so is a span that --step names. An
 * `Optimizer.step#...` ends a step, which began at the end of the step before. A step has the calls
 * of its own thread. Figures contain only steps that were recorded from beginning to end.
 */
#ifndef XSP_TIMELINE_STEPS_H
#define XSP_TIMELINE_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xsp_timeline;

#define XSP_STEPS_FIRST 10U /* a thread's first steps, among which warm-up may be */

enum xsp_step_news {
	XSP_STEP_ENDED, /* recorded whole, and in the part that the user wants */
	XSP_STEP_PARTIAL, /* recorded or in that part only partly: in no figure */
	XSP_STEP_OUTSIDE, /* not in that part */
	XSP_STEP_UNFOLLOWED, /* more threads have steps than are followed */
	/* an ended step: at once, or for a thread's first ones at the end of the run */
	XSP_STEP_COUNTS,
	/* it took more than twice the median, as all before it did: in no figure */
	XSP_STEP_WARM_UP,
	XSP_STEP_FORGET, /* all steps so far do not count: a span is a step, so ends mark none */
};

struct xsp_step {
	enum xsp_step_news news;
	uint32_t pid, tid;
	uint32_t thread; /* index among the threads with steps, in the order of their first ones */
	uint32_t name; /* xsp_name_id of its marker */
	uint64_t number, start_ns, end_ns;
	uint64_t probe_ns; /* estimated part of its time in probes of its calls */
	bool first; /* one of its thread's first: only the end decides whether it counts */
	bool by_ends; /* its markers are ends: if one is lost, two steps become one */
};

/* Call it before the run: only spans with this name, or this name and a number, are steps. Keeps
 * the pointer. */
void xsp_timeline_mark_steps(struct xsp_timeline *t, const char *marker);
/* Does the capture have a name that marks steps? True without memory; the run then reports that. */
bool xsp_timeline_steps_expected(struct xsp_timeline *t);
/* Was a name of steps given? */
bool xsp_timeline_step_asked(const struct xsp_timeline *t);
/* Is a span of that name a step, or the end of one? */
bool xsp_timeline_marks_steps(struct xsp_timeline *t, uint32_t name);
/* Is a span of that name a step itself? False if no sink wants steps. */
bool xsp_timeline_is_step(struct xsp_timeline *t, uint32_t name);
/* Are all steps marked by their ends alone? */
bool xsp_timeline_steps_are_ends(const struct xsp_timeline *t);
/* If there are no steps: why, and how to mark them. */
void xsp_timeline_no_steps(struct xsp_timeline *t, char *out, size_t size);
/* Names that only count ("ProfilerStep#17"): the length of the common part, otherwise 0. */
size_t xsp_timeline_step_stem(const struct xsp_timeline *t, const char *name);

#endif
