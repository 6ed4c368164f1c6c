/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_report.c - the summary as an analysis: names, steps, threads, GPU, memory, samples. */
#include "analysis/summary_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analyses.h"

static int begin(struct xsp_timeline *t, struct xsp_capture_reader *r, void **state)
{
	struct xsp_summary_analysis *a = calloc(1, sizeof(*a));
	int rc = a != NULL ? xsp_summary_new(t, &a->summary) : -ENOMEM;

	if (rc < 0) {
		free(a);
		return rc;
	}
	a->timeline = t;
	a->reader = r;
	*state = a;
	return 0;
}

static void configure(void *state, const struct xsp_analyze_options *options)
{
	struct xsp_summary_analysis *a = state;

	a->batch = options->batch;
}

static struct xsp_timeline_sink sink(void *state)
{
	const struct xsp_summary_analysis *a = state;

	return xsp_summary_sink(a->summary);
}

static void end(void *state)
{
	struct xsp_summary_analysis *a = state;

	if (a != NULL)
		xsp_summary_free(a->summary);
	free(a);
}

/* ---- names ---- */

static struct xsp_cell if_known(bool known, uint64_t value)
{
	return known ? xsp_cell_integer(value) : xsp_cell_text(NULL);
}

static void put_names(struct xsp_summary *s, const struct xsp_steps_figures *steps,
		      struct xsp_report *report)
{
	static const struct xsp_report_column columns[] = {
		{"name", "name", XSP_UNIT_TEXT, true},
		{"calls", "calls", XSP_UNIT_COUNT, false},
		{"calls_per_step", "a step", XSP_UNIT_COUNT, false},
		{"total_ns", "total", XSP_UNIT_NS, false},
		{"self_ns", "self", XSP_UNIT_NS, false},
		{"cpu_ns", "on CPU", XSP_UNIT_NS, false},
		{"mean_ns", "mean", XSP_UNIT_NS, false},
		{"std_ns", "std", XSP_UNIT_NS, false},
		{"min_ns", "min", XSP_UNIT_NS, false},
		{"p50_ns", "p50", XSP_UNIT_NS, false},
		{"p99_ns", "p99", XSP_UNIT_NS, false},
		{"max_ns", "max", XSP_UNIT_NS, false},
		{"unfinished", "unfinished", XSP_UNIT_COUNT, false},
		{"unwound", "unwound", XSP_UNIT_COUNT, false},
	};
	XSP_REPORT_SHAPE(
		analyze, shape, "operations", "operations",
		"by self time; totals count recursion once, calls without an end are in no time",
		columns);
	const struct xsp_summary_row *rows;
	const size_t count = xsp_summary_rows(s, &rows);
	struct xsp_report_table *t =
		xsp_report_table(xsp_report_section(report, "operations", "Operations"), &shape);

	for (size_t i = 0; i < count; i++) {
		const struct xsp_summary_row *r = &rows[i];
		const uint64_t in_steps =
			steps->steps > 0 ? xsp_steps_calls(s->steps, r->name, NULL) : 0;
		const struct xsp_cell cells[] = {
			xsp_cell_text(xsp_summary_text(s, r)),
			xsp_cell_integer(r->calls),
			in_steps > 0 ? xsp_cell_real((double)in_steps / (double)steps->steps)
				     : xsp_cell_text(NULL),
			if_known(r->outermost > 0, r->total_ns),
			if_known(r->timed > 0, r->self_ns),
			if_known(r->cpu_known, r->cpu_ns),
			if_known(r->measured > 0, r->mean_ns),
			r->measured > 1 ? xsp_cell_real(r->std_ns) : xsp_cell_text(NULL),
			if_known(r->measured > 0, r->min_ns),
			if_known(r->measured > 0, r->p50_ns),
			if_known(r->measured > 0, r->p99_ns),
			if_known(r->measured > 0, r->max_ns),
			if_known(r->unfinished > 0, r->unfinished),
			if_known(r->unwound > 0, r->unwound),
		};
		xsp_report_row(t, cells);
	}
}

/* ---- all ---- */

static int report(void *state, struct xsp_report *out)
{
	const struct xsp_summary_analysis *a = state;
	struct xsp_summary *s = a->summary;
	const char *stacks = xsp_capture_info(a->reader, "wait stacks");
	const struct xsp_steps_figures steps = xsp_steps_figures(s->steps);
	int rc = xsp_steps_report(s->steps, a->reader, out);

	xsp_summary_values_report(
		&s->values, a->timeline, a->batch != NULL ? a->batch : "batch_size",
		steps.steps > 0 ? (double)steps.sum_ns / (double)steps.steps : 0, out);
	put_names(s, &steps, out);
	if (rc == 0)
		rc = xsp_summary_waits_report(s->waits,
					      stacks != NULL && strcmp(stacks, "off") != 0, out);
	if (rc == 0)
		rc = xsp_summary_python_report(s->python, out);
	xsp_summary_gpu_report(s->gpu, out);
	xsp_summary_samples_report(s->samples, out);
	xsp_summary_memory_report(s->memory, a->reader, out);
	return rc == 0 ? xsp_summary_allocations_report(s->allocations, out) : rc;
}

const struct xsp_analysis xsp_analysis_summary = {
	.name = "summary",
	.begin = begin,
	.sink = sink,
	.report = report,
	.end = end,
	.configure = configure,
};
