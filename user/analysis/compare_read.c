/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/compare_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analyses.h"

static int out_of_memory(struct xsp_error *err)
{
	return xsp_error_set(err, -ENOMEM, XSP_STATUS_FAILED, "out of memory");
}

/* Behind the run: damage is met while reading. */
static int tell_facts(const struct xsp_capture_reader *r, struct xsp_compare_capture *out)
{
	const struct xsp_capture_process *processes;
	const size_t n = xsp_capture_processes(r, &processes);
	const char *host = xsp_capture_info(r, "host"), *version = xsp_capture_info(r, "version");
	const char *command = n == 0				? ""
			      : processes[0].cmdline[0] != '\0' ? processes[0].cmdline
								: processes[0].comm;
	const struct xsp_capture_stats *st = xsp_capture_stats(r);
	const struct xsp_capture_window *windows;
	uint64_t torn, chunks, events;

	xsp_capture_damage(r, &torn, &chunks, &events);
	out->command = strdup(command);
	out->host = strdup(host != NULL ? host : "");
	out->version = strdup(version != NULL ? version : "");
	out->lost = st->lost_entries + st->lost_exits + st->lost_other + st->missed_hits +
		    st->untracked;
	out->windows = xsp_capture_windows(r, &windows);
	out->damaged =
		torn + chunks + events > 0 || xsp_capture_how_ended(r) != XSP_CAPTURE_COMPLETE;
	return out->command != NULL && out->host != NULL && out->version != NULL ? 0 : -ENOMEM;
}

static int run(struct xsp_capture_reader *r, const struct xsp_compare_how *how,
	       struct xsp_compare_capture *out, struct xsp_error *err)
{
	struct xsp_timeline_sink sinks[1 + XSP_COMPARE_SINKS];
	struct xsp_timeline *t = NULL;
	struct xsp_series *series = NULL;
	size_t count = 0;
	int rc = xsp_timeline_new(r, &t, err);

	if (rc == 0 && how->cut != NULL && xsp_timeline_cut(t, how->cut) < 0)
		rc = out_of_memory(err);
	if (rc == 0 && xsp_series_new(t, &series) < 0)
		rc = out_of_memory(err);
	out->series = series;
	if (rc == 0) {
		xsp_series_mark_steps(series, how->step);
		sinks[count++] = xsp_series_sink(series);
	}
	if (rc == 0 && how->begin != NULL)
		rc = how->begin(how->ctx, r, t, sinks, &count, err);
	if (rc == 0)
		rc = xsp_timeline_run(t, sinks, count, err);
	if (rc == 0 && xsp_series_end(series) < 0)
		rc = out_of_memory(err);
	if (rc == 0 && how->end != NULL)
		rc = how->end(how->ctx, series, err);
	if (rc == 0 && how->cut != NULL && how->cut->pattern_count > 0 &&
	    xsp_timeline_counts(t)->spans == 0)
		rc = xsp_error_set(err, -ENOENT, XSP_STATUS_NO_MATCH,
				   "%.300s: no span of %.200s is left", how->cut->text, out->path);
	xsp_timeline_free(t);
	return rc;
}

int xsp_compare_read(struct xsp_capture_reader *r, const char *path,
		     const struct xsp_compare_how *how, struct xsp_compare_capture *out,
		     struct xsp_error *err)
{
	const struct xsp_analyze_options analysis = {.cut = how->cut, .step = how->step};
	struct xsp_report *report = NULL;

	*out = (struct xsp_compare_capture){.path = strdup(path)};
	int rc = out->path != NULL ? run(r, how, out, err) : out_of_memory(err);
	if (rc == 0 && (xsp_report_new(&report) < 0 || tell_facts(r, out) < 0))
		rc = out_of_memory(err);
	out->report = report;
	return rc == 0 ? xsp_analyze(r, &analysis, report, err) : rc;
}

void xsp_compare_clear(struct xsp_compare_capture *c)
{
	xsp_series_free((struct xsp_series *)(uintptr_t)c->series);
	xsp_report_free((struct xsp_report *)(uintptr_t)c->report);
	free((char *)(uintptr_t)c->path);
	free((char *)(uintptr_t)c->command);
	free((char *)(uintptr_t)c->host);
	free((char *)(uintptr_t)c->version);
}
