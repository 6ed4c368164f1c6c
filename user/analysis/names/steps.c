/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/names/steps_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names/name_rows.h"
#include "base/rows/grow.h"
#include "base/rows/order.h"

int xsp_steps_new(struct xsp_timeline *t, struct xsp_steps **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = t;
	int rc = xsp_step_shares_new(&(*out)->shares);
	if (rc < 0) {
		free(*out);
		*out = NULL;
	}
	return rc;
}

/* Keeps only the timeline and the shares. */
static void clear(struct xsp_steps *s)
{
	for (size_t i = 0; i < s->slowest_count; i++)
		free(s->slowest[i].shares);
	xsp_histogram_clear(&s->times);
	xsp_u64map_free(&s->processes);
	free(s->tracks);
	free(s->warm_up);
	*s = (struct xsp_steps){.timeline = s->timeline, .shares = s->shares};
}

void xsp_steps_free(struct xsp_steps *s)
{
	if (s == NULL)
		return;
	clear(s);
	xsp_step_shares_free(s->shares);
	free(s);
}

/* "ProfilerStep#*" */
static void set_title(struct xsp_steps *s, xsp_name_id id)
{
	const char *name = xsp_timeline_name(s->timeline, id);

	if (s->title[0] == '\0' &&
	    xsp_name_common(s->timeline, name, s->title, sizeof(s->title)) == name)
		snprintf(s->title, sizeof(s->title), "%s", name);
}

/* A step that was recorded from its beginning to its end. */
static int add_whole(struct xsp_steps *s, const struct xsp_step *step)
{
	if (s->whole++ == 0)
		xsp_timeline_window(s->timeline, &s->over_time.start_ns, &(uint64_t){0});
	xsp_growth_step(&s->over_time, step->start_ns, step->end_ns);
	return step->first ? xsp_u64map_set(&s->processes, step->pid, 0) : 0;
}

static XSP_ORDER(by_length, struct step, XSP_COMPARE(step_length(y), step_length(x)));

/* Keeps the slowest steps, slowest first, with copies of their shares. */
static int rank(struct xsp_steps *s, struct step step)
{
	const bool full = s->slowest_count == XSP_STEPS_SLOWEST;
	const struct step *last = &s->slowest[XSP_STEPS_SLOWEST - 1];

	if (full && by_length(&step, last) >= 0)
		return 0;
	struct xsp_step_share *shares = calloc(step.share_count + 1, sizeof(*shares));
	if (shares == NULL)
		return -ENOMEM;
	if (step.share_count > 0)
		memcpy(shares, step.shares, step.share_count * sizeof(*shares));
	step.shares = shares;
	if (full)
		free(last->shares);
	XSP_RANK(s->slowest, &s->slowest_count, XSP_STEPS_SLOWEST, &step, by_length);
	return 0;
}

static void count_step(struct xsp_steps *s, const struct step *step, uint64_t probe_ns)
{
	struct track *k = &s->tracks[step->track];
	const uint64_t ns = step_length(step);
	const double away = (double)ns - s->mean;

	if (s->steps == 0 || ns < s->min_ns)
		s->min_ns = ns;
	if (ns > s->max_ns)
		s->max_ns = ns;
	if (ns > k->max_ns)
		k->max_ns = ns;
	s->steps++;
	s->sum_ns += ns;
	s->probe_ns += probe_ns;
	s->calls += step->calls;
	s->mean += away / (double)s->steps;
	s->squares += away * ((double)ns - s->mean);
	k->steps++;
	k->sum_ns += ns;
	k->calls += step->calls;
}

/* The step counts, or is warm-up. */
static int add_judged(struct xsp_steps *s, const struct xsp_step *judged,
		      const struct xsp_step_share *shares, size_t share_count)
{
	struct step step = {.number = judged->number,
			    .start_ns = judged->start_ns,
			    .end_ns = judged->end_ns,
			    .track = judged->thread,
			    .shares = (struct xsp_step_share *)(uintptr_t)shares,
			    .share_count = share_count};

	for (size_t i = 0; i < share_count; i++)
		step.calls += shares[i].calls;
	if (judged->news == XSP_STEP_WARM_UP) {
		step.shares = NULL;
		return XSP_APPEND(s->warm_up, s->warm_up_capacity, s->warm_up_count, step);
	}
	count_step(s, &step, judged->probe_ns);
	int rc = xsp_histogram_add(&s->times, step_length(&step));
	return rc < 0 ? rc : rank(s, step);
}

static int note_thread(struct xsp_steps *s, uint32_t pid, uint32_t tid, uint32_t thread)
{
	if (xsp_grow_zeroed(&s->tracks, &s->track_capacity, (size_t)thread + 1) < 0)
		return -ENOMEM;
	s->track_count = s->track_count > thread ? s->track_count : thread + 1;
	s->tracks[thread].pid = pid;
	s->tracks[thread].tid = tid;
	return 0;
}

int xsp_steps_step(struct xsp_steps *s, const struct xsp_step *step)
{
	const struct xsp_step_share *shares;
	size_t count;
	int rc = xsp_step_shares_step(s->shares, step, &shares, &count);

	if (step->news == XSP_STEP_FORGET)
		clear(s);
	s->left_out += step->news == XSP_STEP_UNFOLLOWED;
	if (rc < 0 || step->news == XSP_STEP_FORGET || step->news == XSP_STEP_UNFOLLOWED)
		return rc;
	rc = note_thread(s, step->pid, step->tid, step->thread);
	if (rc < 0)
		return rc;
	set_title(s, step->name);
	s->by_ends = step->by_ends;
	s->not_whole += step->news == XSP_STEP_PARTIAL;
	if (step->news == XSP_STEP_ENDED)
		return add_whole(s, step);
	return step->news == XSP_STEP_COUNTS || step->news == XSP_STEP_WARM_UP
		       ? add_judged(s, step, shares, count)
		       : 0;
}

int xsp_steps_in_step(struct xsp_steps *s, const struct xsp_span *span, uint32_t thread,
		      xsp_name_id name)
{
	return xsp_step_shares_add(s->shares, span, thread, name, span->self_ns);
}

/* ---- queries ---- */

const struct xsp_growth_steps *xsp_steps_over_time(const struct xsp_steps *s)
{
	return s->whole > 0 ? &s->over_time : NULL;
}

size_t xsp_steps_processes(const struct xsp_steps *s)
{
	return s->processes.count > 0 ? s->processes.count : 1;
}

uint64_t xsp_steps_calls(const struct xsp_steps *s, xsp_name_id name, uint64_t *self_ns)
{
	return xsp_step_shares_calls(s->shares, name, self_ns);
}

uint64_t xsp_steps_quantile(const struct xsp_steps *s, double share)
{
	const uint64_t ns = xsp_histogram_quantile(&s->times, share);

	return ns < s->min_ns ? s->min_ns : ns > s->max_ns ? s->max_ns : ns;
}

struct xsp_steps_figures xsp_steps_figures(const struct xsp_steps *s)
{
	struct xsp_steps_figures out = {.steps = s->steps,
					.sum_ns = s->sum_ns,
					.mean_ns = s->steps > 0 ? s->sum_ns / s->steps : 0,
					.probe_ns = s->probe_ns,
					.median_ns = xsp_steps_quantile(s, 0.5),
					.warm_up = s->warm_up_count,
					.not_whole = s->not_whole,
					.by_ends = s->by_ends};

	for (size_t i = 0; i < s->warm_up_count; i++) {
		const struct step *step = &s->warm_up[i];
		if (i == 0 || step->start_ns < out.warm_up_from_ns)
			out.warm_up_from_ns = step->start_ns;
		if (step->end_ns > out.warm_up_to_ns)
			out.warm_up_to_ns = step->end_ns;
		out.warm_up_ns += step_length(step);
	}
	return out;
}
