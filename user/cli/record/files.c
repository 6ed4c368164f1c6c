/* SPDX-License-Identifier: BSD-2-Clause */
/* files.c - writes the files of a recording. */
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>

#include "analysis/analyses.h"
#include "cli/cli.h"
#include "cli/outputs.h"
#include "cli/record/private.h"

/* Runs as the user who will write the outputs, and before there is anything to lose. */
int xsp_record_check_outputs(struct recording *r, struct xsp_error *err)
{
	int rc = 0;

	r->before = calloc(r->o.outputs.count + 1, sizeof(*r->before));
	if (r->before == NULL)
		return xsp_out_of_memory(err);
	for (size_t i = 0; rc == 0 && i < r->o.outputs.count; i++) {
		rc = xsp_export_check(r->o.outputs.words[i], err);
		r->before[i] = xsp_standing_at(r->o.outputs.words[i]);
	}
	return rc;
}

/* Names the capture as soon as it has events: then they stay, whatever ends us. */
static int keep_capture(const struct recording *r, struct xsp_error *err)
{
	struct xsp_new_file *f = xsp_recorder_file(r->recorder);

	xsp_record_put_at_stake(r->may_keep ? f : NULL, r->keep_capture);
	if (!r->keep_capture || xsp_new_file_name(f) != NULL)
		return 0;
	int rc = xsp_new_file_place(f, true);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "cannot write %s: %s", r->capture,
				     strerror(-rc));
	if (xsp_new_file_elsewhere(f))
		xsp_say_elsewhere(r->capture, xsp_new_file_name(f));
	return 0;
}

/* Was there ever anything to record? A launched program may have had nothing that -e names. */
bool xsp_record_is_traced(const struct recording *r)
{
	const struct xsp_plan *plan = xsp_recorder_plan(r->recorder);
	const bool profiled =
		!r->o.wishes.names_probes && (xsp_records(&r->what, XSP_FEATURE_WAITS) ||
					      xsp_records(&r->what, XSP_FEATURE_SAMPLES));
	bool traced = r->launch == NULL || r->what.needs_no_probes || profiled ||
		      xsp_recorder_wanted(r->recorder) > 0;

	for (size_t i = 0; i < plan->count; i++)
		traced |= plan->modules[i]->is_agent;
	return traced;
}

int xsp_record_keep_events(const struct recording *r, bool flush, struct xsp_error *err)
{
	if (xsp_record_is_at_stake() || !r->may_keep || !xsp_record_is_traced(r) ||
	    !xsp_recorder_has_events(r->recorder, flush))
		return 0;
	return keep_capture(r, err);
}

/* Was the recording meant to have spans? */
bool xsp_record_says_why_nothing(const struct recording *r)
{
	return !r->what.profile && (xsp_recorder_wanted(r->recorder) > 0 ||
				    (!r->what.needs_no_probes && r->o.wishes.names_probes));
}

/* A summary without spans needs a reason. */
static void say_why_nothing(const struct recording *r, const struct xsp_timeline_counts *c,
			    uint64_t filtered)
{
	if (c->orphan_exits > 0)
		xsp_say("no call began during the recording: those that ended in it had been entered before");
	else if (filtered > 0)
		xsp_say("no call is shown: the filters held back all of them");
	else if (r->idle[0] != '\0')
		xsp_say("%s", r->idle);
}

static struct xsp_outputs outputs_of(struct recording *r, struct xsp_timeline_counts *counts)
{
	struct xsp_outputs o = {
		.paths = r->o.outputs.words,
		.count = r->o.outputs.count,
		.before = r->before,
		.owner_uid = (uid_t)-1, /* the outputs belong to us */
		.owner_gid = (gid_t)-1,
		.summary = r->o.summary && !r->o.no_summary,
		.json = r->o.summary_json,
		.rows = r->o.limit,
		.weight = r->o.weight,
		.by = r->o.by,
		.step = r->o.part.step,
		.progress = r->o.progress,
		.quiet = r->o.quiet,
		.counts = counts,
	};

	if (r->default_json != NULL) {
		r->default_outputs[0] = r->default_json;
		o.paths = r->default_outputs;
		o.count = 1;
		o.before = NULL;
	}
	return o;
}

/* The answer on one screen is the last that is said; other endings are asked for. */
static bool ends_in_screen(const struct recording *r)
{
	return !r->o.quiet && !r->o.summary;
}

/* NULL: it does not stay. */
static const char *name_of_capture(const struct recording *r)
{
	return r->keep_capture ? xsp_new_file_name(xsp_recorder_file(r->recorder)) : NULL;
}

/* The capture's name and those of the outputs. NULL: no file is there, or no memory. */
static char *list_files(const char *capture, const char *outputs)
{
	char *text = NULL;

	if (capture == NULL && outputs == NULL)
		return NULL;
	return asprintf(&text, "%s%s%s", capture != NULL ? capture : "",
			capture != NULL && outputs != NULL ? ", " : "",
			outputs != NULL ? outputs : "") < 0
		       ? NULL
		       : text;
}

static void show_screen(const struct recording *r, const struct xsp_report *report,
			const char *outputs)
{
	const char *last = name_of_capture(r);
	char *capture = last != NULL ? xsp_record_all_parts(r, last) : NULL;
	char *files = list_files(capture, outputs);
	char next[600];

	if (r->parts != NULL)
		snprintf(next, sizeof(next), "xsptrace analyze --full %.*s.*.xspt",
			 (int)(strlen(r->whole) - strlen(".xspt")), r->whole);
	else if (capture != NULL)
		snprintf(next, sizeof(next), "xsptrace analyze --full %s", capture);
	else
		snprintf(next, sizeof(next),
			 "-o NAME.xspt keeps all of it, for xsptrace analyze NAME.xspt");
	xsp_report_output_screen(report, files, next, NULL);
	fflush(stdout);
	free(files);
	free(capture);
}

/* Keeps the capture if the user asked for it, or if the outputs failed. */
static int leave_capture(struct recording *r, int status)
{
	struct xsp_new_file *f = xsp_recorder_file(r->recorder);
	const char *capture = name_of_capture(r);

	if (capture != NULL && !r->o.quiet && !ends_in_screen(r))
		fprintf(stderr,
			"wrote %s (the capture: xsptrace analyze says what is slow in it, xsptrace export makes other formats of it)\n",
			capture);
	xsp_record_done(status == 0);
	if (r->keep_capture || status == 0 || !r->may_keep)
		return status;
	const int rc = xsp_new_file_place(f, false);
	if (rc == 0)
		xsp_say("the capture is kept: xsptrace export %s -o OUT tries again",
			xsp_new_file_name(f));
	else
		xsp_say("the capture could not be kept as %s: %s", r->capture, strerror(-rc));
	return status;
}

int xsp_record_write_outputs(struct recording *r)
{
	struct xsp_timeline_counts counts = {.spans = 1};
	struct xsp_outputs o = outputs_of(r, &counts);
	struct xsp_capture_reader *reader;
	struct xsp_report *report = NULL;
	struct xsp_error err = {0};
	char *wrote = NULL;
	int status = keep_capture(r, &err) < 0 ? xsp_say_error(&err) : 0;

	if (xsp_record_open_parts(r, &reader, &err) < 0)
		return xsp_say_error(&err);
	if (ends_in_screen(r) && xsp_report_new(&report) == 0) {
		o.wrote = &wrote;
		o.report = &report;
	}
	const int worse = xsp_write_outputs(reader, &o);
	if (counts.spans + counts.values == 0 && !r->o.quiet && xsp_record_says_why_nothing(r))
		say_why_nothing(r, &counts, xsp_capture_stats(reader)->filtered);
	fflush(stdout); /* both streams may go to one file */
	status = leave_capture(r, status == 0 ? worse : status);
	xsp_record_say_goes_on(r);
	if (report != NULL)
		show_screen(r, report, wrote);
	xsp_report_free(report);
	free(wrote);
	xsp_capture_close(reader);
	return status;
}
