/* SPDX-License-Identifier: BSD-2-Clause */
/* export.c - `xsptrace export FILE -o OUT`: a capture becomes any format, later, without root. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cut_options.h"
#include "cli/help.h"
#include "cli/input.h"
#include "cli/job.h"
#include "cli/outputs.h"
#include "export/export.h"

static const char usage[] =
	"Usage: xsptrace export FILE... [-o OUT]... [--weight W] [--by WHAT]...\n"
	"                       [--summary [json]] [--rows N|all] [-q] [A PART OF IT]\n"
	"\n"
	"Turns a capture (.xspt), or a Chrome trace (.json, .json.gz: torch.profiler's,\n"
	"xsptrace's), into other formats; the ending of OUT decides:\n"
	"  " XSP_EXPORT_SUFFIXES "\n"
	"or clickhouse://HOST[:PORT]/DATABASE (docs/sql.md), clickhouses:// by TLS. Of a\n"
	"trace -o NAME.xspt keeps the capture that is made of it. Without -o, or with\n"
	"--summary, prints the summary table. Needs no root. Several captures, or a\n"
	"folder of them, are the ranks of a job: one page (.html) or Chrome trace\n"
	"(.json, .json.gz), in real time, corrected by their collectives\n"
	"(docs/ranks.md).\n"
	"\n"
	"  --weight W     what .perf, .folded, .svg and .pb.gz add up: wall; of captures\n"
	"                 with --waits cpu or off-cpu; samples (the default where they\n"
	"                 were asked for; else wall)\n"
	"  --summary json all that the table and the lines below it say, on standard\n"
	"                 output\n"
	"  --by thread    their outermost frame is each thread, not all threads of a name\n"
	"  --by line|module   the summary by line of Python that called, by\n"
	"                     torch.nn.Module\n"
	"  --python=rows  of captures with --python: Chrome traces have a row of lines\n"
	"                 for each thread\n"
	"\n";
static const char example[] =
	"\nExample: xsptrace export run.xspt -o run.json.gz -o run.svg\n"
	"         xsptrace export run.xspt --from step:10..20 -e 'aten::*' -o steps.json\n"
	"         xsptrace export rank0.xspt rank1.xspt -o job.json.gz\n";

enum { OPT_SUMMARY = 256, OPT_ROWS, OPT_WEIGHT, OPT_BY, OPT_PYTHON };

static const struct option longs[] = {
	{"output", required_argument, NULL, 'o'},
	{"summary", optional_argument, NULL, OPT_SUMMARY},
	{"rows", required_argument, NULL, OPT_ROWS},
	{"weight", required_argument, NULL, OPT_WEIGHT},
	{"by", required_argument, NULL, OPT_BY},
	{"python", required_argument, NULL, OPT_PYTHON},
	XSP_CUT_LONGS,
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static bool is_summary(const char *word)
{
	return strcmp(word, "json") == 0 || strcmp(word, "text") == 0;
}

static int bad(const char *text)
{
	xsp_say("%s: see xsptrace export --help", text);
	return XSP_STATUS_USAGE;
}

/* Several captures: what cannot be said of them together is refused. */
static int export_job(struct xsp_outputs *o, const struct xsp_cut_options *cut, char **paths,
		      size_t count, const char *keep)
{
	struct xsp_capture_reader *reader = NULL;
	struct xsp_error err = {0};
	struct xsp_job job = {.ranks = NULL};
	int status;

	if (keep != NULL)
		return bad("-o NAME.xspt keeps one trace, not several");
	if (o->count == 0 || o->summary)
		return bad("several captures have no summary: xsptrace analyze tells of their "
			   "ranks, -o FILE.json writes one trace");
	if (cut->text != NULL) {
		xsp_say("%s: cuts one capture, not several: see xsptrace export --help", cut->text);
		return XSP_STATUS_USAGE;
	}
	o->job = &job;
	o->step = cut->step;
	if (xsp_job_read(&job, paths, count, cut->step, &err) < 0 ||
	    xsp_job_refuse_outputs(&job, o->paths, o->count, &err) < 0 ||
	    xsp_input_open(job.files.paths[0], &(struct xsp_input_options){.keep = NULL}, &reader,
			   &err) < 0)
		status = xsp_say_error(&err);
	else
		status = xsp_write_outputs(reader, o);
	xsp_capture_close(reader);
	xsp_job_clear(&job);
	return status;
}

struct options {
	struct xsp_cut_options cut;
	struct xsp_outputs outputs;
	struct xsp_input_options input;
	const char **paths; /* of outputs */
	bool help;
};

static int parse_output(struct options *o, const char *path)
{
	if (xsp_is_capture_name(path)) {
		if (o->input.keep != NULL)
			return bad("give one -o NAME.xspt");
		o->input.keep = path;
		return 0;
	}
	if (xsp_export_format_for(path) == NULL) {
		xsp_say("-o %s: the ending must be one of " XSP_EXPORT_SUFFIXES
			", or it is clickhouse://HOST/DATABASE",
			path);
		return XSP_STATUS_USAGE;
	}
	for (size_t i = 0; i < o->outputs.count; i++)
		if (strcmp(o->paths[i], path) == 0) {
			xsp_say("-o %.200s is given twice", path);
			return XSP_STATUS_USAGE;
		}
	o->paths[o->outputs.count++] = path;
	return 0;
}

static int parse_summary(struct options *o, const char *how, int argc, char **argv)
{
	/* the last word may be the capture's name */
	if (how == NULL && optind < argc && is_summary(argv[optind]) &&
	    (optind < argc - 1 || access(argv[optind], F_OK) != 0))
		how = argv[optind++];
	o->outputs.summary = true;
	o->outputs.json = how != NULL && strcmp(how, "json") == 0;
	return how != NULL && !is_summary(how) ? bad("--summary takes text or json") : 0;
}

/* An exit status; 0: go on. */
static int parse_option(struct options *o, int code, int argc, char **argv)
{
	uint64_t rows = 0;

	switch (code) {
	case 'o':
		return parse_output(o, optarg);
	case OPT_SUMMARY:
		return parse_summary(o, optarg, argc, argv);
	case OPT_ROWS:
		if (strcmp(optarg, "all") != 0 && xsp_parse_number(optarg, 1, 1000000, &rows) < 0)
			return bad("--rows wants a number or all");
		o->outputs.rows = (size_t)rows;
		return 0;
	case OPT_WEIGHT:
		o->outputs.weight = xsp_weight_of(optarg);
		return o->outputs.weight < XSP_WEIGHTS
			       ? 0
			       : bad("--weight wants wall, cpu, off-cpu or samples");
	case OPT_BY:
		o->outputs.by |= xsp_by_of(optarg);
		return xsp_by_of(optarg) != 0 ? 0 : bad("--by wants " XSP_BY_NAMES);
	case OPT_PYTHON:
		o->outputs.by |= XSP_BY_PYTHON;
		return strcmp(optarg, "rows") == 0 ? 0 : bad("--python wants rows");
	case 'q':
		o->outputs.quiet = true;
		o->outputs.progress = false;
		return 0;
	case 'h':
		o->help = true;
		return 0;
	default:
		xsp_say("%.200s: unknown option or missing value: see xsptrace export --help",
			argv[optind - 1]);
		return XSP_STATUS_USAGE;
	}
}

static int parse_options(struct options *o, int argc, char **argv)
{
	struct xsp_error err = {0};
	int code, status = 0;

	optind = 1;
	opterr = 0;
	while (status == 0 && !o->help &&
	       (code = getopt_long(argc, argv, ":o:qh" XSP_CUT_SHORTS, longs, NULL)) != -1) {
		const int handled = xsp_cut_option(&o->cut, code, optarg, &err);
		if (handled < 0)
			status = xsp_say_error(&err);
		else if (handled == 0)
			status = parse_option(o, code, argc, argv);
	}
	if (status == 0 && !o->help && optind >= argc)
		status = bad("no capture file given");
	if (status == 0 && o->input.keep != NULL && o->cut.given)
		status = bad("-o NAME.xspt keeps all of the trace, not a part of it");
	return status;
}

static int refuse_outputs(const struct options *o, const char *path, struct xsp_error *err)
{
	int rc = o->input.keep != NULL ? xsp_refuse_input_as_output(path, o->input.keep, err) : 0;

	for (size_t i = 0; i < o->outputs.count && rc == 0; i++)
		rc = xsp_refuse_input_as_output(path, o->paths[i], err);
	return rc;
}

static int export_one(struct options *o, const char *path)
{
	struct xsp_timeline_counts counts = {.spans = 1};
	struct xsp_cut_left left = {0};
	const struct xsp_timeline_sink beside = xsp_cut_left_sink(&left);
	struct xsp_capture_reader *reader = NULL;
	struct xsp_error err = {0};
	int status = XSP_STATUS_OK;

	if (o->outputs.count == 0 && o->input.keep == NULL)
		o->outputs.summary = true;
	o->input.progress = o->outputs.progress;
	if (refuse_outputs(o, path, &err) < 0 ||
	    xsp_input_open(path, &o->input, &reader, &err) < 0 ||
	    xsp_cut_resolve(&o->cut, reader, &err) < 0) {
		status = xsp_say_error(&err);
	} else if (o->outputs.count > 0 || o->outputs.summary) {
		o->outputs.step = o->cut.step;
		o->outputs.cut = o->cut.given ? &o->cut.cut : NULL;
		o->outputs.counts = o->cut.given ? &counts : NULL;
		o->outputs.beside = o->cut.given ? &beside : NULL;
		o->outputs.name = path;
		status = xsp_write_outputs(reader, &o->outputs);
		if (status == XSP_STATUS_OK &&
		    xsp_cut_check_left(&o->cut, &counts, &left, &err) < 0)
			status = xsp_say_error(&err);
	}
	xsp_capture_close(reader);
	return status;
}

int xsp_cmd_export(int argc, char **argv)
{
	const char **paths = calloc((size_t)argc, sizeof(*paths));
	struct options o = {.paths = paths,
			    .outputs = {.paths = paths,
					.rows = 25,
					.progress = isatty(STDERR_FILENO),
					.owner_uid = (uid_t)-1,
					.owner_gid = (gid_t)-1}};

	if (paths == NULL)
		return XSP_STATUS_FAILED;
	signal(SIGPIPE, SIG_IGN); /* a reader that goes away is an error of that output */
	signal(SIGXFSZ, SIG_IGN);
	int status = parse_options(&o, argc, argv);
	if (status == 0 && o.help) {
		xsp_wrap_stdout();
		printf("%s%s%s", usage, xsp_cut_help, example);
	} else if (status == 0) {
		const size_t count = (size_t)(argc - optind);
		xsp_sudo_user(&o.outputs.owner_uid, &o.outputs.owner_gid);
		status =
			xsp_capture_files_several(argv + optind, count)
				? export_job(&o.outputs, &o.cut, argv + optind, count, o.input.keep)
				: export_one(&o, argv[optind]);
	}
	xsp_cut_clear(&o.cut);
	free(paths);
	return status;
}
