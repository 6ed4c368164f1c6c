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

static void put_names(struct xsp_summary *s, const struct xsp_steps_figures *steps,
		      struct xsp_report *report)
{
	const struct xsp_summary_names names = {.summary = s, .steps = steps->steps};
	const struct xsp_summary_row *rows;
	const size_t count = xsp_summary_rows(s, &rows);
	struct xsp_report_table *t = xsp_report_table(
		xsp_report_section(report, "operations", "Operations"), &xsp_summary_names_shape);

	for (size_t i = 0; i < count; i++)
		xsp_report_add(t, &names, &rows[i]);
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
