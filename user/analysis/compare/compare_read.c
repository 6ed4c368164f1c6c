/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/compare/compare_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analyses.h"
#include "model/health.h"

/* Called after the run, because damage is found while reading. */
static int copy_description(const struct xsp_capture_reader *r, struct xsp_compare_capture *out)
{
	const struct xsp_capture_process *processes;
	const size_t n = xsp_capture_processes(r, &processes);
	const char *host = xsp_capture_info(r, "host"), *version = xsp_capture_info(r, "version");
	const char *filters = xsp_capture_info(r, "filters");
	const char *command = n == 0				? ""
			      : processes[0].cmdline[0] != '\0' ? processes[0].cmdline
								: processes[0].comm;
	const struct xsp_health health = xsp_health_of(r);
	const struct xsp_capture_window *windows;

	out->command = strdup(command);
	out->host = strdup(host != NULL ? host : "");
	out->version = strdup(version != NULL ? version : "");
	out->filters = strdup(filters != NULL ? filters : "");
	out->lost = health.events_lost;
	out->lost_known = health.known;
	out->late = xsp_capture_info(r, "libraries") != NULL ||
		    xsp_capture_info(r, "changed code") != NULL ||
		    xsp_capture_info(r, "calls unseen") != NULL;
	out->windows = xsp_capture_windows(r, &windows);
	out->damaged = xsp_health_is_damaged(&health);
	return out->command != NULL && out->host != NULL && out->version != NULL &&
			       out->filters != NULL
		       ? 0
		       : -ENOMEM;
}

/* A capture being read. */
struct reading {
	const struct xsp_compare_how *how;
	struct xsp_compare_capture *out;
	struct xsp_series *series;
};

static int begin_reading(void *ctx, struct xsp_capture_reader *reader, struct xsp_timeline *t,
			 struct xsp_sinks *sinks, struct xsp_error *err)
{
	struct reading *r = ctx;
	const struct xsp_pass_listener *beside = &r->how->beside;

	if (xsp_series_new(t, &r->series) < 0)
		return -ENOMEM;
	r->out->series = r->series;
	if (xsp_sinks_add(sinks, xsp_series_sink(r->series)) < 0)
		return -ENOMEM;
	return beside->begin != NULL ? beside->begin(beside->ctx, reader, t, sinks, err) : 0;
}

static int end_reading(void *ctx, struct xsp_timeline *t, struct xsp_error *err)
{
	const struct reading *r = ctx;
	const struct xsp_pass_listener *beside = &r->how->beside;
	const struct xsp_cut *cut = r->how->cut;
	int rc = 0;

	xsp_series_end(r->series);
	if (beside->end != NULL)
		rc = beside->end(beside->ctx, t, err);
	if (rc == 0 && cut != NULL && cut->pattern_count > 0 && xsp_timeline_counts(t)->spans == 0)
		rc = xsp_error_set(err, -ENOENT, XSP_STATUS_NO_MATCH,
				   "%.300s: no span of %.200s is left", cut->text, r->out->path);
	return rc;
}

int xsp_compare_read(struct xsp_capture_reader *r, const char *path,
		     const struct xsp_compare_how *how, struct xsp_compare_capture *out,
		     struct xsp_error *err)
{
	struct reading reading = {.how = how, .out = out};
	struct xsp_report *report = NULL, *nearly = NULL;

	*out = (struct xsp_compare_capture){.path = strdup(path)};
	int rc = out->path == NULL || xsp_report_new(&report) < 0 || xsp_report_new(&nearly) < 0
			 ? xsp_out_of_memory(err)
			 : 0;
	out->report = report;
	out->nearly = nearly;
	const struct xsp_analyze_options analysis = {
		.cut = how->cut,
		.step = how->step,
		.nearly = nearly,
		.beside = {&reading, begin_reading, end_reading, NULL}};
	if (rc == 0)
		rc = xsp_analyze(r, &analysis, report, err);
	return rc == 0 && copy_description(r, out) < 0 ? xsp_out_of_memory(err) : rc;
}

void xsp_compare_clear(struct xsp_compare_capture *c)
{
	xsp_series_free((struct xsp_series *)(uintptr_t)c->series);
	xsp_report_free((struct xsp_report *)(uintptr_t)c->report);
	xsp_report_free((struct xsp_report *)(uintptr_t)c->nearly);
	free((char *)(uintptr_t)c->path);
	free((char *)(uintptr_t)c->command);
	free((char *)(uintptr_t)c->host);
	free((char *)(uintptr_t)c->version);
	free((char *)(uintptr_t)c->filters);
}
