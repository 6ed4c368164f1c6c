/* SPDX-License-Identifier: BSD-2-Clause */
/* analyze.c - `xsptrace analyze FILE`: what is slow, why, and what to do about it. */
#include <errno.h>
#include <getopt.h>
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
#include "cli/cut_options.h"
#include "cli/input.h"
#include "cli/job.h"
#include "cli/report_output.h"

static const char usage[] =
	"Usage: xsptrace analyze FILE... [-o OUT] [--format text|json|csv]\n"
	"                        [--fail-on low|medium|high] [--threshold RULE=VALUE]...\n"
	"                        [--batch-size NAME] [--top N|all] [-q] [A PART OF IT]\n"
	"\n"
	"Says what is slow, why, and what to do about it; then the figures: operations,\n"
	"steps, threads, memory. docs/analyze.md says what each rule and each key means.\n"
	"Needs no root.\n"
	"\n"
	"Several captures, or a folder of them, are the ranks of a job: who comes late to\n"
	"collectives, what the others wait for (docs/ranks.md).\n"
	"\n"
	"  -o OUT               a file instead of standard output; its ending (.txt,\n"
	"                       .json, .csv) is its format, where --format does not say\n"
	"                       another\n"
	"      --fail-on LEAST  exit status 10 if there is a finding of at least that\n"
	"                       severity\n"
	"      --threshold RULE=VALUE   from where on a rule finds something, see below\n"
	"      --batch-size NAME   the value (XSP_RECORD_VALUE, ...) that is the samples\n"
	"                          of a step\n"
	"                       (default: batch_size)\n"
	"      --top N|all      rows of each table (default: 20 in text, else all)\n"
	"      --json-schema    instead of a report: the JSON Schema of --format json\n"
	"  -q, --quiet          no progress\n"
	"\n";
static const char example[] =
	"\nExample: xsptrace analyze run.xspt\n"
	"         xsptrace analyze run.xspt --from step:10..20 -o report.json --fail-on high\n"
	"         xsptrace analyze rank0.xspt rank1.xspt\n";

enum { OPT_FAIL_ON = 256, OPT_THRESHOLD, OPT_BATCH };

static const struct option longs[] = {
	{"fail-on", required_argument, NULL, OPT_FAIL_ON},
	{"threshold", required_argument, NULL, OPT_THRESHOLD},
	{"batch-size", required_argument, NULL, OPT_BATCH},
	XSP_CUT_LONGS,
	XSP_REPORT_LONGS,
	{0},
};

struct options {
	struct xsp_cut_options cut;
	struct xsp_report_output output;
	int fail_on; /* enum xsp_severity; -1: nothing */
	double *thresholds;
	const char *batch; /* --batch-size, or NULL */
};

/* ---- options ---- */

static int parse_severity(struct options *o, const char *name, struct xsp_error *err)
{
	for (int s = XSP_SEVERITY_LOW; s <= XSP_SEVERITY_HIGH; s++)
		if (strcmp(xsp_severity_name((enum xsp_severity)s), name) == 0) {
			o->fail_on = s;
			return 0;
		}
	return xsp_wrong_value(err, "--fail-on", name, "low, medium or high");
}

static int parse_threshold(struct options *o, const char *value, struct xsp_error *err)
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
	o->thresholds[rule] = share ? number / 100 : number;
	return 0;
}

static int parse_option(struct options *o, int code, char **argv, struct xsp_error *err)
{
	const int handled = xsp_cut_option(&o->cut, code, optarg, err);

	if (handled != 0)
		return handled < 0 ? handled : 0;
	switch (code) {
	case 'o':
		o->output.path = optarg;
		return 0;
	case OPT_FAIL_ON:
		return parse_severity(o, optarg, err);
	case OPT_THRESHOLD:
		return parse_threshold(o, optarg, err);
	case OPT_BATCH:
		o->batch = optarg;
		return 0;
	default:
		return xsp_report_output_option(&o->output, code, argv, "analyze", err);
	}
}

static int parse_options(struct options *o, int argc, char **argv, struct xsp_error *err)
{
	int code, rc = 0;

	optind = 1;
	opterr = 0;
	while (rc == 0 && (code = getopt_long(argc, argv, ":" XSP_REPORT_SHORTS XSP_CUT_SHORTS,
					      longs, NULL)) != -1)
		rc = parse_option(o, code, argv, err);
	if (rc < 0 || o->output.help)
		return rc;
	if (optind >= argc && o->output.schema == NULL)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "no capture file given: see xsptrace analyze --help");
	return xsp_report_output_choose(&o->output, err);
}

static void print_help(void)
{
	printf("%s%s\nRules, and from where on they find something:\n", usage, xsp_cut_help);
	for (size_t i = 0; i < xsp_rule_count; i++) {
		const struct xsp_rule *rule = &xsp_rules[i];
		const bool share = rule->unit == XSP_UNIT_SHARE;
		printf("  %s=%.10g%s\n      %s\n", rule->key,
		       share ? 100 * rule->threshold : rule->threshold, share ? "%" : "",
		       rule->what);
	}
	fputs(example, stdout);
}

/* A capture being read: how far it is, is shown now and then. */
struct reading {
	const struct options *options;
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
	if (r->options->cut.given)
		rc = xsp_sinks_add(sinks, xsp_cut_left_sink(&r->left));
	if (rc == 0 && !r->options->output.quiet && isatty(STDERR_FILENO))
		rc = xsp_sinks_add(sinks,
				   (struct xsp_timeline_sink){.ctx = r, .span = show_progress});
	return rc;
}

static int end_reading(void *ctx, struct xsp_timeline *t, struct xsp_error *err)
{
	const struct reading *r = ctx;

	return xsp_cut_check_left(&r->options->cut, xsp_timeline_counts(t), &r->left, err);
}

static bool fails(const struct xsp_report *report, int least)
{
	const struct xsp_report_found *found;
	const size_t count = xsp_report_findings(report, &found);

	return least >= 0 && count > 0 && (int)found[0].finding.severity >= least;
}

static int analyze(struct options *o, const char *path, struct xsp_report *report,
		   struct xsp_error *err)
{
	struct xsp_capture_reader *reader = NULL;
	const struct xsp_input_options input = {.progress =
							!o->output.quiet && isatty(STDERR_FILENO)};
	int rc = o->output.path == NULL ? 0 : xsp_refuse_input_as_output(path, o->output.path, err);

	if (rc == 0)
		rc = xsp_input_open(path, &input, &reader, err);
	if (rc == 0)
		rc = xsp_cut_resolve(&o->cut, reader, err);
	if (rc == 0) {
		struct reading reading = {.options = o};
		const struct xsp_analyze_options how = {
			.cut = o->cut.given ? &o->cut.cut : NULL,
			.step = o->cut.step,
			.batch = o->batch,
			.thresholds = o->thresholds,
			.beside = {&reading, begin_reading, end_reading, NULL},
		};
		rc = xsp_analyze(reader, &how, report, err);
		if (reading.progress_shown)
			fputs("\r\033[K", stderr);
	}
	xsp_capture_close(reader);
	return rc;
}

/* Captures of no job: nothing is late there, and that must not pass as good. */
static int check_ranks(const struct options *o, const struct xsp_job *job, struct xsp_error *err)
{
	static const char why[] =
		"no rank of a job is in the %zu captures (no RANK in the environment of their "
		"processes, no collective); all other rules look at one capture at a time: "
		"xsptrace analyze %s";

	if (xsp_ranks_known(job->ranks))
		return 0;
	if (xsp_ranks_count(job->ranks) == 0 || o->fail_on >= 0)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE, why, job->files.count,
				     job->files.paths[0]);
	xsp_say(why, job->files.count, job->files.paths[0]);
	return 0;
}

/* Several captures: what their ranks did to each other. */
static int analyze_job(const struct options *o, char **paths, size_t count,
		       struct xsp_report *report, struct xsp_error *err)
{
	struct xsp_job job = {.ranks = NULL};

	if (o->cut.text != NULL)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "%.400s: cuts one capture, not several: see xsptrace analyze "
				     "--help",
				     o->cut.text);
	int rc = xsp_job_read(&job, paths, count, o->cut.step, err);
	if (rc == 0)
		rc = xsp_job_refuse_outputs(&job, &o->output.path, 1, err);
	if (rc == 0)
		rc = check_ranks(o, &job, err);
	if (rc == 0)
		rc = xsp_analyze_ranks(job.ranks, o->thresholds, report);
	xsp_job_clear(&job);
	return rc;
}

static int analyze_all(struct options *o, char **paths, size_t count, struct xsp_report **report,
		       struct xsp_error *err)
{
	int rc = xsp_report_new(report);

	if (rc < 0)
		return rc;
	return xsp_capture_files_several(paths, count) ? analyze_job(o, paths, count, *report, err)
						       : analyze(o, paths[0], *report, err);
}

int xsp_cmd_analyze(int argc, char **argv)
{
	struct options o = {.fail_on = -1,
			    .thresholds = calloc(xsp_rule_count + 1, sizeof(*o.thresholds))};
	struct xsp_report *report = NULL;
	struct xsp_error err = {0};
	int status = XSP_STATUS_OK;
	int rc = o.thresholds != NULL ? 0 : -ENOMEM;

	signal(SIGPIPE, SIG_IGN); /* a reader that goes away is an error of the output */
	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; rc == 0 && i < xsp_rule_count; i++)
		o.thresholds[i] = xsp_rules[i].threshold;
	if (rc == 0)
		rc = parse_options(&o, argc, argv, &err);
	if (rc == 0 && o.output.help) {
		xsp_wrap_stdout();
		print_help();
		goto out;
	}
	if (rc == 0 && o.output.schema == NULL)
		rc = analyze_all(&o, argv + optind, (size_t)(argc - optind), &report, &err);
	if (rc == 0)
		rc = xsp_report_output_write(&o.output, report, &err);
	if (rc < 0) {
		xsp_error_set(&err, rc, XSP_STATUS_FAILED, "%s", strerror(-rc));
		status = xsp_say_error(&err);
	} else if (report != NULL && fails(report, o.fail_on)) {
		status = XSP_STATUS_FOUND;
	}
out:
	xsp_report_free(report);
	xsp_cut_clear(&o.cut);
	free(o.thresholds);
	return status;
}
