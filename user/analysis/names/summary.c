/* SPDX-License-Identifier: BSD-2-Clause */
/* summary.c - collects each name's figures for the table at the end of a run. */
#include "analysis/names/summary_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/order.h"

int xsp_summary_new_names(struct xsp_timeline *t, struct xsp_summary **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = t;
	(*out)->row_of.timeline = t;
	int rc = xsp_summary_gpu_new(t, &(*out)->gpu);
	if (rc < 0) {
		free(*out);
		*out = NULL;
	}
	return rc;
}

int xsp_summary_new(struct xsp_timeline *t, struct xsp_summary **out)
{
	int rc = xsp_summary_new_names(t, out);
	if (rc < 0)
		return rc;
	/* memory and allocations are only known for the whole recording */
	const bool whole = xsp_timeline_cut_text(t) == NULL;
	rc = xsp_steps_new(t, &(*out)->steps);
	if (rc == 0)
		rc = xsp_window_shares_new(t, &(*out)->shares);
	if (rc == 0 && whole)
		rc = xsp_summary_memory_new(t, &(*out)->memory);
	if (rc == 0 && whole)
		rc = xsp_summary_allocations_new(t, &(*out)->allocations);
	if (rc == 0)
		rc = xsp_summary_waits_new(t, &(*out)->waits);
	if (rc == 0)
		rc = xsp_summary_samples_new(t, &(*out)->samples);
	if (rc == 0)
		rc = xsp_summary_python_new(t, &(*out)->python);
	if (rc < 0) {
		xsp_summary_free(*out);
		*out = NULL;
	}
	return rc;
}

void xsp_summary_free(struct xsp_summary *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->name_count; i++) {
		xsp_histogram_clear(&s->names[i].durations);
		free(s->names[i].shares);
	}
	xsp_window_shares_free(s->shares);
	xsp_steps_free(s->steps);
	xsp_name_rows_free(&s->row_of);
	xsp_arena_free(&s->texts);
	xsp_summary_gpu_free(s->gpu);
	xsp_summary_memory_free(s->memory);
	xsp_summary_allocations_free(s->allocations);
	xsp_summary_waits_free(s->waits);
	xsp_summary_samples_free(s->samples);
	xsp_summary_python_free(s->python);
	xsp_tally_free(&s->values);
	free(s->names);
	free(s->rows);
	free(s);
}

static inline int name_of(struct xsp_summary *s, xsp_name_id id, struct summary_name **out)
{
	if (id >= s->name_count) {
		int rc = xsp_grow_zeroed(&s->names, &s->name_capacity, (size_t)id + 1);
		if (rc < 0)
			return rc;
		s->name_count = (size_t)id + 1;
	}
	*out = &s->names[id];
	return 0;
}

static int on_span(void *ctx, const struct xsp_span *span)
{
	struct xsp_summary *s = ctx;
	struct summary_name *n = NULL;
	xsp_name_id row;
	int rc = xsp_name_rows_of(&s->row_of, span->name, &row);
	if (rc == 0)
		rc = name_of(s, row, &n);
	if (rc == 0)
		rc = xsp_summary_gpu_span(s->gpu, span);
	if (rc == 0)
		rc = xsp_summary_waits_span(s->waits, span);
	if (rc == 0)
		rc = xsp_summary_python_span(s->python, span);
	if (rc == 0)
		rc = xsp_window_shares_add(s->shares, &n->shares, span);
	if (rc != 0)
		return rc;
	const uint64_t duration = span->end_ns - span->start_ns;
	struct xsp_summary_row *r = &n->row;
	s->rows_current = false;
	r->calls++;
	r->unwound += (span->flags & XSP_SPAN_UNWOUND) != 0;
	r->unfinished += (span->flags & XSP_SPAN_UNFINISHED) != 0;
	r->points += (span->flags & XSP_SPAN_POINT) != 0;
	if (span->in_total) {
		r->outermost++;
		r->total_ns += span->total_ns;
		n->cpu_unknown += span->total_cpu_ns == XSP_CPU_UNKNOWN;
		r->cpu_ns += span->total_cpu_ns == XSP_CPU_UNKNOWN ? 0 : span->total_cpu_ns;
	}
	if (!xsp_span_has_duration(span))
		return 0;
	r->timed++;
	r->self_ns += span->self_ns;
	r->self_cpu_ns += span->self_cpu_ns == XSP_CPU_UNKNOWN ? 0 : span->self_cpu_ns;
	const uint64_t own_ns =
		span->self_ns > span->self_probe_ns ? span->self_ns - span->self_probe_ns : 0;
	r->own_ns += own_ns;
	if (span->self_cpu_ns == XSP_CPU_UNKNOWN) {
		r->own_cpu_unknown_ns += own_ns;
		if (own_ns > r->own_cpu_unknown_max_ns)
			r->own_cpu_unknown_max_ns = own_ns;
	}
	if (span->flags & XSP_SPAN_CUT) /* its full duration is another one */
		return 0;
	if (n->durations.count == 0) {
		r->min_ns = n->first_ns = duration;
		r->max_start_ns = span->start_ns;
	}
	if (duration < r->min_ns)
		r->min_ns = duration;
	if (duration > r->max_ns) {
		r->max_ns = duration;
		r->max_start_ns = span->start_ns;
	}
	const double off = (double)(int64_t)(duration - n->first_ns);
	n->squares += off * off;
	n->sum_ns += duration;
	n->mostly_probes += xsp_span_is_mostly_probes(span);
	return xsp_histogram_add(&n->durations, duration);
}

static int on_step(void *ctx, const struct xsp_step *step)
{
	return xsp_steps_step(((struct xsp_summary *)ctx)->steps, step);
}

static int on_span_in_step(void *ctx, const struct xsp_span *span, uint32_t thread)
{
	struct xsp_summary *s = ctx;
	xsp_name_id row;
	int rc = xsp_name_rows_of(&s->row_of, span->name, &row);

	return rc < 0 ? rc : xsp_steps_in_step(s->steps, span, thread, row);
}

static int on_activity(void *ctx, const struct xsp_gpu_activity *a)
{
	return xsp_summary_gpu_activity(((struct xsp_summary *)ctx)->gpu, a);
}

static int on_memory(void *ctx, const struct xsp_memory_event *e)
{
	struct xsp_summary *s = ctx;
	int rc = xsp_summary_gpu_memory(s->gpu, e);

	return rc == 0 ? xsp_summary_allocations_event(s->allocations, e) : rc;
}

static int on_process_memory(void *ctx, const struct xsp_process_memory_at *at)
{
	return xsp_summary_memory_process(((struct xsp_summary *)ctx)->memory, at);
}

static int on_wait(void *ctx, const struct xsp_wait *wait)
{
	return xsp_summary_waits_wait(((struct xsp_summary *)ctx)->waits, wait);
}

static int on_sample(void *ctx, const struct xsp_sample *sample)
{
	return xsp_summary_samples_sample(((struct xsp_summary *)ctx)->samples, sample);
}

static int on_value(void *ctx, const struct xsp_value *value)
{
	return xsp_value_rows_add(&((struct xsp_summary *)ctx)->values, value);
}

struct xsp_timeline_sink xsp_summary_sink(struct xsp_summary *s)
{
	return (struct xsp_timeline_sink){
		.ctx = s,
		.span = on_span,
		.step = s->steps != NULL ? on_step : NULL,
		.in_step = s->steps != NULL ? on_span_in_step : NULL,
		.gpu = on_activity,
		.untimed = on_activity,
		.memory = on_memory,
		.process_memory = on_process_memory,
		.wait = on_wait,
		.sample = on_sample,
		.value = on_value,
	};
}

/* Differences from one of the values keep their digits where all values are large and alike. */
static double deviation(const struct summary_name *n)
{
	const double count = (double)n->durations.count;
	const double off = (double)n->sum_ns - count * (double)n->first_ns;
	const double squares = count > 1 ? n->squares - off * off / count : 0;

	return squares > 0 ? sqrt(squares / (count - 1)) : 0;
}

/* By time without probes: with them, the cheapest functions would come first. */
static XSP_ORDER(by_own_time, struct xsp_summary_row,
	  XSP_FALLING(own_ns) ?: XSP_FALLING(self_ns) ?: XSP_FALLING(calls) ?: XSP_RISING(name));

const char *xsp_summary_text(const struct xsp_summary *s, const struct xsp_summary_row *row)
{
	return row->text != NULL ? row->text : xsp_timeline_name(s->timeline, row->name);
}

static int name_row(struct xsp_summary *s, struct summary_name *n)
{
	char common[XSP_NAME_ROW_TEXT];

	if (n->row.text != NULL ||
	    xsp_name_rows_text(&s->row_of, (xsp_name_id)(n - s->names), common) != common)
		return 0;
	n->row.text = xsp_arena_copy(&s->texts, common, strlen(common));
	return n->row.text != NULL ? 0 : -ENOMEM;
}

static int end_row(struct xsp_summary *s, struct summary_name *n)
{
	struct xsp_summary_row *r = &n->row;

	r->name = (xsp_name_id)(n - s->names);
	r->cpu_known = r->outermost > 0 && n->cpu_unknown == 0;
	r->std_ns = deviation(n);
	r->measured = n->durations.count;
	r->mean_ns = r->measured > 0 ? n->sum_ns / r->measured : 0;
	r->p50_ns = xsp_histogram_quantile(&n->durations, 0.50);
	r->p99_ns = xsp_histogram_quantile(&n->durations, 0.99);
	r->share_known = xsp_window_shares_of(s->shares, n->shares, &r->share, &r->share_error);
	r->mostly_probes = 2 * n->mostly_probes > r->measured;
	return name_row(s, n);
}

size_t xsp_summary_rows(struct xsp_summary *s, const struct xsp_summary_row **rows)
{
	*rows = s->rows;
	if (s->rows_current)
		return s->row_count;
	s->row_count = 0;
	for (size_t i = 0; i < s->name_count; i++) {
		struct summary_name *n = &s->names[i];
		if (n->row.calls == 0)
			continue;
		if (end_row(s, n) < 0 ||
		    XSP_APPEND(s->rows, s->row_capacity, s->row_count, n->row) < 0)
			return 0;
	}
	XSP_SORT(s->rows, s->row_count, by_own_time);
	s->rows_current = true;
	*rows = s->rows;
	return s->row_count;
}
