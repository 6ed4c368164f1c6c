/* SPDX-License-Identifier: BSD-2-Clause */
/* analyze.c - `xsptrace analyze FILE`: what is slow, why, and what to do about it. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/analyses.h"
#include "analysis/rules/rules.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/job.h"
#include "cli/moment.h"
#include "cli/options/options.h"

struct analyzing {
	struct xsp_options o;
	double *thresholds;
};

/* ---- options ---- */

static int parse_threshold(struct analyzing *a, const char *value, struct xsp_error *err)
{
	const size_t length = strcspn(value, "=");
	const long rule = xsp_rule_index(value, length);
	char *end = NULL;
	const double number = value[length] == '=' ? strtod(value + length + 1, &end) : -1;

	if (rule < 0)
		return xsp_wrong_value(err, "--threshold", value,
				       "RULE=VALUE, with a rule of xsptrace analyze --help");
	const bool share = xsp_rules[rule].unit == XSP_UNIT_SHARE;
	if (end == NULL || end == value + length + 1 ||
	    strcmp(end, share && *end != '\0' ? "%" : "") != 0 || !isfinite(number) || number < 0)
		return xsp_wrong_value(err, "--threshold", value,
				       share ? "a number from 0 on, in %, behind the '='"
					     : "a number from 0 on behind the '='");
	a->thresholds[rule] = share ? number / 100 : number;
	return 0;
}

static int read_options(struct analyzing *a, struct xsp_error *err)
{
	const struct xsp_words *thresholds = &a->o.thresholds;
	int rc = 0;

	a->thresholds = calloc(xsp_rule_count + 1, sizeof(*a->thresholds));
	if (a->thresholds == NULL)
		return xsp_out_of_memory(err);
	for (size_t i = 0; i < xsp_rule_count; i++)
		a->thresholds[i] = xsp_rules[i].threshold;
	for (size_t i = 0; rc == 0 && i < thresholds->count; i++)
		rc = parse_threshold(a, thresholds->words[i], err);
	return rc < 0 ? rc : xsp_report_output_choose(&a->o.report, err);
}

/* A capture that is being read: shows the progress now and then. */
struct reading {
	const struct xsp_options *options;
	struct xsp_capture_reader *reader;
	struct xsp_cut_left left;
	uint64_t spans;
	bool progress_shown;
};

static int show_progress(void *ctx, const struct xsp_span *span)
{
	struct reading *r = ctx;

	(void)span;
	if (++r->spans % (1 << 20) != 0)
		return 0;
	r->progress_shown = true;
	fprintf(stderr, "\ranalysing: %3.0f%%\033[K", 100 * xsp_capture_progress(r->reader));
	return 0;
}

static int begin_reading(void *ctx, struct xsp_capture_reader *reader, struct xsp_timeline *t,
			 struct xsp_sinks *sinks, struct xsp_error *err)
{
	struct reading *r = ctx;
	int rc = 0;

	(void)t;
	(void)err;
	r->reader = reader;
	if (r->options->part.given)
		rc = xsp_sinks_add(sinks, xsp_cut_left_sink(&r->left));
	if (rc == 0 && r->options->progress)
		rc = xsp_sinks_add(sinks,
				   (struct xsp_timeline_sink){.ctx = r, .span = show_progress});
	return rc;
}

static int end_reading(void *ctx, struct xsp_timeline *t, struct xsp_error *err)
{
	const struct reading *r = ctx;

	return xsp_cut_check_left(&r->options->part, xsp_timeline_counts(t), &r->left, err);
}

/* least: enum xsp_severity + 1; 0: nothing fails. */
static bool fails(const struct xsp_report *report, unsigned least)
{
	const struct xsp_report_found *found;
	const size_t count = xsp_report_findings(report, &found);

	return least > 0 && count > 0 && found[0].finding.severity + 1U >= least;
}

static int analyze(struct analyzing *a, const char *path, struct xsp_report *report,
		   struct xsp_error *err)
{
	struct xsp_options *o = &a->o;
	struct xsp_capture_reader *reader = NULL;
	const struct xsp_input_options input = {.progress = o->progress};
	int rc = o->report.path == NULL ? 0 : xsp_refuse_input_as_output(path, o->report.path, err);

	if (rc == 0)
		rc = xsp_input_open(path, &input, &reader, err);
	if (rc == 0)
		rc = xsp_cut_resolve(&o->part, reader, err);
	if (rc == 0) {
		struct reading reading = {.options = o};
		const struct xsp_analyze_options how = {
			.cut = xsp_cut_of(&o->part),
			.step = o->part.step,
			.batch = o->batch,
			.thresholds = a->thresholds,
			.beside = {&reading, begin_reading, end_reading, NULL},
		};
		rc = xsp_analyze(reader, &how, report, err);
		if (reading.progress_shown)
			fputs("\r\033[K", stderr);
	}
	xsp_capture_close(reader);
	return rc;
}

/* The first screen of a snapshot has it. */
static char *moment(const struct xsp_options *o)
{
	const struct xsp_input_options input = {.progress = false};
	struct xsp_capture_reader *reader = NULL;
	struct xsp_error err = {0};
	char *text = NULL;

	if (o->rest_count != 1 || o->part.given || !xsp_report_output_is_screen(&o->report))
		return NULL;
	if (xsp_input_open(o->rest[0], &input, &reader, &err) == 0)
		text = xsp_moment_text(reader);
	xsp_capture_close(reader);
	return text;
}

/* Captures that are no job have nothing late: that must not pass as good. */
static int check_ranks(const struct analyzing *a, const struct xsp_job *job, struct xsp_error *err)
{
	static const char why[] =
		"no rank of a job is in the %zu captures (no RANK in the environment of their processes, no collective); all other rules look at one capture at a time: xsptrace analyze %s";

	if (xsp_ranks_known(job->ranks))
		return 0;
	if (xsp_ranks_count(job->ranks) == 0 || a->o.fail_on > 0)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE, why, job->files.count,
				     job->files.paths[0]);
	xsp_say(why, job->files.count, job->files.paths[0]);
	return 0;
}

/* Several captures: finds what their ranks did to each other. */
static int analyze_job(const struct analyzing *a, struct xsp_report *report, struct xsp_error *err)
{
	const struct xsp_options *o = &a->o;
	struct xsp_job job = {.ranks = NULL};

	int rc = xsp_cut_refuse_several(&o->part, "analyze", err);

	if (rc == 0)
		rc = xsp_job_read(&job, o->rest, o->rest_count, o->part.step, err);
	if (rc == 0)
		rc = xsp_job_refuse_outputs(&job, &o->report.path, 1, err);
	if (rc == 0)
		rc = check_ranks(a, &job, err);
	if (rc == 0)
		rc = xsp_analyze_ranks(job.ranks, a->thresholds, report);
	xsp_job_clear(&job);
	return rc;
}

static int analyze_all(struct analyzing *a, struct xsp_report **report, struct xsp_error *err)
{
	int rc = xsp_report_new(report);

	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_FAILED, "%s", strerror(-rc));
	rc = xsp_capture_files_several(a->o.rest, a->o.rest_count)
		     ? analyze_job(a, *report, err)
		     : analyze(a, a->o.rest[0], *report, err);
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_FAILED, "%s", strerror(-rc)) : 0;
}

int xsp_cmd_analyze(int argc, char **argv)
{
	struct analyzing a = {.thresholds = NULL};
	struct xsp_report *report = NULL;
	struct xsp_error err = {0};
	char *when = NULL;
	int status;

	signal(SIGPIPE, SIG_IGN); /* if a reader goes away, it is an error of the output */
	signal(SIGXFSZ, SIG_IGN);
	if (xsp_options_take(argc, argv, XSP_VERB_ANALYZE, &a.o, &status)) {
		int rc = read_options(&a, &err);
		if (rc == 0 && a.o.report.schema == NULL)
			rc = analyze_all(&a, &report, &err);
		if (rc == 0)
			a.o.report.moment = when = moment(&a.o);
		if (rc == 0)
			rc = xsp_report_output_write(&a.o.report, report, &err);
		if (rc < 0)
			status = xsp_say_error(&err);
		else if (report != NULL && fails(report, a.o.fail_on))
			status = XSP_STATUS_FOUND;
	}
	free(when);
	xsp_report_free(report);
	xsp_options_clear(&a.o);
	free(a.thresholds);
	return status;
}
