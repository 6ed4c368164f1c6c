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

static void put_names(struct xsp_summary *s, const struct xsp_capture_reader *r,
		      struct xsp_report *report)
{
	const struct xsp_summary_names names = {
		.summary = s, .reader = r, .steps = xsp_steps_figures(s->steps).steps};
	const struct xsp_summary_row *rows;
	const size_t count = xsp_summary_rows(s, &rows), most = xsp_report_how(report)->top;
	bool marked = false;

	xsp_list_rows(xsp_report_section(report, "operations", "Operations"),
		      s->shares != NULL			    ? &xsp_summary_names_in_windows
		      : xsp_timeline_has_waits(s->timeline) ? &xsp_summary_names_with_cpu
							    : &xsp_summary_names_list,
		      &names, rows, sizeof(*rows), count, most);
	if (xsp_report_form(report) != XSP_FORM_TEXT || count == 0)
		return;
	for (size_t i = 0; i < xsp_list_most(report, most, count); i++)
		marked = marked || rows[i].mostly_probes;
	if (marked)
		fputs("* in most calls most of the time is that of probes inside: without them it is less than half\n",
		      xsp_list_below(report));
	xsp_list_gap(report);
}

/* ---- the whole summary ---- */

static void put_values(struct xsp_summary *s, const char *batch, struct xsp_report *report)
{
	const struct xsp_steps_figures steps = xsp_steps_figures(s->steps);

	xsp_summary_values_report(&s->values, s->timeline, batch != NULL ? batch : "batch_size",
				  steps.steps > 0 ? (double)steps.sum_ns / (double)steps.steps : 0,
				  report);
}

static int report(void *state, struct xsp_report *out)
{
	const struct xsp_summary_analysis *a = state;
	struct xsp_summary *s = a->summary;

	xsp_steps_report(s->steps, a->reader, out);
	put_values(s, a->batch, out);
	put_names(s, a->reader, out);
	int rc = xsp_summary_waits_report(s->waits, a->reader, out);
	if (rc == 0)
		rc = xsp_summary_python_report(s->python, true, true, out);
	xsp_summary_gpu_report(s->gpu, a->reader, out);
	xsp_summary_samples_report(s->samples, a->reader, out);
	xsp_summary_memory_report(s->memory, a->reader, out);
	return rc == 0 ? xsp_summary_allocations_report(s->allocations, a->reader, out) : rc;
}

/* Fills the summary by line, by module or by name; `all`: without a limit on rows. */
static int put_summary(struct xsp_summary *s, struct xsp_capture_reader *r, bool by_line,
		       bool by_module, bool all, struct xsp_report *out)
{
	int rc = 0;

	xsp_summary_head(s, r, out);
	xsp_steps_report(s->steps, r, out);
	if (all || !(by_line || by_module))
		put_names(s, r, out);
	if (all || by_line || by_module)
		rc = xsp_summary_python_report(s->python, all || by_line, all || by_module, out);
	xsp_summary_gpu_report(s->gpu, r, out);
	put_values(s, NULL, out);
	xsp_summary_samples_report(s->samples, r, out);
	xsp_summary_memory_report(s->memory, r, out);
	if (rc == 0)
		rc = xsp_summary_allocations_report(s->allocations, r, out);
	if (rc == 0)
		rc = xsp_summary_waits_report(s->waits, r, out);
	xsp_summary_tail(s, r, out);
	return rc;
}

static int write_summary(struct xsp_summary *s, struct xsp_capture_reader *r, FILE *f,
			 enum xsp_report_form form, const struct xsp_summary_print *how)
{
	const struct xsp_report_how report_how = {
		.top = how->limit, .width = how->width, .color = how->color};
	struct xsp_report *out;
	int rc = xsp_report_new_summary(form, &report_how, &out);

	if (rc < 0)
		return rc;
	rc = put_summary(s, r, how->by_line, how->by_module, form == XSP_FORM_JSON, out);
	if (rc == 0)
		rc = xsp_report_write_summary(out, f);
	xsp_report_free(out);
	return rc;
}

int xsp_summary_write(struct xsp_summary *s, struct xsp_capture_reader *r, FILE *f,
		      const struct xsp_summary_print *how)
{
	return write_summary(s, r, f, XSP_FORM_TEXT, how);
}

int xsp_summary_write_json(struct xsp_summary *s, struct xsp_capture_reader *r, FILE *f)
{
	return write_summary(s, r, f, XSP_FORM_JSON, &(struct xsp_summary_print){.limit = 0});
}

const struct xsp_analysis xsp_analysis_summary = {
	.name = "summary",
	.begin = begin,
	.sink = sink,
	.report = report,
	.end = end,
	.configure = configure,
};
