/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps.h - iterations of a program: what marks them, how long they take, what is called in them.
 *
 * `ProfilerStep#N` (torch.profiler's step()) is a step by itself, and so is what --step names;
 * `Optimizer.step#...` ends one, which began where the one before it ended. Calls are those of the step's own
 * thread. A step that was not recorded from its beginning to its end is in no figure.
 */
#ifndef XSP_ANALYSIS_STEPS_H
#define XSP_ANALYSIS_STEPS_H

#include <stdio.h>

#include "analysis/memory/growth.h"
#include "report/report.h"
#include "base/json_writer.h"
#include "timeline/timeline.h"

struct xsp_steps;
struct xsp_steps_guess;

int xsp_steps_new(struct xsp_timeline *t, struct xsp_steps **out);
void xsp_steps_free(struct xsp_steps *s);
/* Before the run: only spans of this name, or of this name and a number, are steps. Kept by reference. */
void xsp_steps_mark(struct xsp_steps *s, const char *marker);
/* Before the run: nothing marks steps, and this is a guess at them (steps_guess.h), kept by reference; NULL: none. */
void xsp_steps_mark_guess(struct xsp_steps *s, const struct xsp_steps_guess *guess);

/* Were events lost, which makes what steps hold uncertain? */
bool xsp_steps_uncertain(const struct xsp_capture_reader *r);
/* Before the run: does the capture have a name that marks steps? Else spans need not be told. (Without memory it
 * has; the run then says so.) */
bool xsp_steps_expected(struct xsp_steps *s);
/* Where there are none: why, and what says what one is. */
void xsp_steps_none(const struct xsp_steps *s, char *out, size_t size);
/* Is a span of that name a step, or the end of one? */
bool xsp_steps_marked_by(struct xsp_steps *s, xsp_name_id name);
/* ... and not by a guess: what marks a guessed step is an operation as any other. */
bool xsp_steps_are(struct xsp_steps *s, xsp_name_id name);
/* `name`: what the span's calls are counted under. 0 or -ENOMEM. */
int xsp_steps_span(struct xsp_steps *s, const struct xsp_span *span, xsp_name_id name);

/* The same as a sink, without a table of names. */
struct xsp_timeline_sink xsp_steps_sink(struct xsp_steps *s);

/* Names that only number ("ProfilerStep#17"): the length of what they have in common, else 0. */
size_t xsp_steps_stem(const struct xsp_steps *s, const char *name);

/*
 * Before the run: `each` is told of every step that was recorded whole, as it ends, and of the first ones behind the run,
 * when it is known which of them are warm-up. Shares are by the names that xsp_steps_span() was given. 0 or a negative errno.
 */
struct xsp_step_share {
	xsp_name_id name;
	uint64_t calls, self_ns; /* self_ns: of calls with a duration */
};
struct xsp_step {
	uint32_t pid, tid;
	bool warm_up; /* it is in no figure */
	uint64_t number, start_ns, end_ns;
	uint64_t probe_ns; /* of its time, estimated, in probes of what was called in it */
	const struct xsp_step_share *shares;
	size_t share_count;
};
void xsp_steps_each(struct xsp_steps *s, int (*each)(void *ctx, const struct xsp_step *step),
		    void *ctx);
/* Before the run: `ended` is told of the same steps, all of them as they end, without shares. `first`: whether it is warm-up
 * is not known yet, each() will say; `by_ends`: it counts only if no span is a step. */
void xsp_steps_ended(struct xsp_steps *s,
		     int (*ended)(void *ctx, const struct xsp_step *step, bool first, bool by_ends),
		     void *ctx);
/* Once, behind the run: which of the two ways it is, what was warm-up. 0, -ENOMEM, or what `each` returned. */
int xsp_steps_end(struct xsp_steps *s);

/* Behind the run: the steps, the slowest, and what was longer in them. Nothing if there are none. */
int xsp_steps_write(struct xsp_steps *s, const struct xsp_capture_reader *r, FILE *out);
/* The same as JSON, inside an object. */
int xsp_steps_json(struct xsp_steps *s, const struct xsp_capture_reader *r,
		   struct xsp_json_writer *j);

/* The same as a section of a report, which says so where there are none. 0 or -ENOMEM. */
int xsp_steps_report(struct xsp_steps *s, const struct xsp_capture_reader *r,
		     struct xsp_report *report);

/* Behind the run. Of all threads together; a step that is left out is in none but its own. 0 or -ENOMEM. */
struct xsp_steps_figures {
	uint64_t steps; /* those that count; 0: there are none */
	uint64_t sum_ns, mean_ns, median_ns;
	uint64_t probe_ns; /* of sum_ns, estimated, in probes */
	uint64_t warm_up, warm_up_ns, warm_up_from_ns, warm_up_to_ns; /* left out as such */
	uint64_t not_whole;
	bool guessed;
	bool by_ends; /* what lies between two ends is a step: a lost one makes one of two */
};
int xsp_steps_figures(struct xsp_steps *s, struct xsp_steps_figures *out);
/* When there were steps, warm-up as well; NULL: there were none. */
const struct xsp_growth_steps *xsp_steps_over_time(const struct xsp_steps *s);
/* Processes that had some: at least 1. */
size_t xsp_steps_processes(const struct xsp_steps *s);
/* ... in them, of what was counted under that name: calls, and their own time (may be NULL). */
uint64_t xsp_steps_calls(const struct xsp_steps *s, xsp_name_id name, uint64_t *self_ns);

/*
 * Where steps `first` to `last` are: to be asked for before the run, and told behind it. Several threads: from
 * the first one's beginning to the last one's end. False: there is none of them; *least and *most are the
 * numbers that there are, *least > *most without any.
 */
void xsp_steps_want(struct xsp_steps *s, uint64_t first, uint64_t last);
bool xsp_steps_wanted(const struct xsp_steps *s, uint64_t *start_ns, uint64_t *end_ns,
		      uint64_t *least, uint64_t *most);

#endif
