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
#include "base/text.h"
#include "export/export.h"

static const char usage[] =
	"Usage: xsptrace export FILE... [-o OUT]... [--weight W] [--by WHAT]...\n"
	"                       [--summary [json]] [--rows N|all] [-q] [A PART OF IT]\n"
	"\n"
	"Turns a capture (.xspt), or a Chrome trace (.json, .json.gz: torch.profiler's, "
	"xsptrace's),\n"
	"into other formats; the ending of OUT decides:\n"
	"  " XSP_EXPORT_SUFFIXES "\n"
	"or clickhouse://HOST[:PORT]/DATABASE (docs/sql.md), clickhouses:// by TLS.\n"
	"Of a trace -o NAME.xspt keeps the capture that is made of it.\n"
	"Without -o, or with --summary, prints the summary table. Needs no root.\n"
	"Several captures, or a folder of them, are the ranks of a job: one Chrome trace, .json "
	"or\n"
	".json.gz, in real time, corrected by their collectives (docs/ranks.md).\n"
	"\n"
	"  --weight W     what .perf, .folded, .svg and .pb.gz add up: wall; of captures with "
	"--waits\n"
	"                 cpu or off-cpu; samples (the default where there are such; else wall)\n"
	"  --summary json all that the table and the lines below it say, on standard output\n"
	"  --by thread    their outermost frame is each thread, not all threads of a name\n"
	"  --by line|module   the summary by line of Python that called, by "
	"torch.nn.Module\n"
	"\n";
static const char example[] =
	"\nExample: xsptrace export run.xspt -o run.json.gz -o run.svg\n"
	"         xsptrace export run.xspt --from step:10..20 -e 'aten::*' -o steps.json\n"
	"         xsptrace export rank0.xspt rank1.xspt -o job.json.gz\n";

enum { OPT_SUMMARY = 256, OPT_ROWS, OPT_WEIGHT, OPT_BY };

static const struct option longs[] = {
	{"output", required_argument, NULL, 'o'},
	{"summary", optional_argument, NULL, OPT_SUMMARY},
	{"rows", required_argument, NULL, OPT_ROWS},
	{"weight", required_argument, NULL, OPT_WEIGHT},
	{"by", required_argument, NULL, OPT_BY},
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

/* Waits and samples may be what was wanted; names that nothing bears are not. */
static int nothing_left(const struct xsp_cut_options *cut)
{
	xsp_say("%s: no span of the capture is left", cut->text);
	return cut->cut.pattern_count > 0 ? XSP_STATUS_NO_MATCH : XSP_STATUS_OK;
}

/* Several captures: what cannot be said of them together is refused. */
static int export_job(struct xsp_outputs *o, const struct xsp_cut_options *cut, char **paths,
		      size_t count)
{
	struct xsp_capture_reader *reader = NULL;
	struct xsp_error err = {0};
	struct xsp_job job = {.count = 0};
	int status;

	if (o->count == 0 || o->summary)
		return bad("several captures have no summary: xsptrace analyze tells of their "
			   "ranks, -o FILE.json writes one trace");
	if (cut->text != NULL) {
		xsp_say("%s: cuts one capture, not several: see xsptrace export --help", cut->text);
		return XSP_STATUS_USAGE;
	}
	o->job = &job;
	if (xsp_job_read(&job, paths, count, cut->step, &err) < 0 ||
	    xsp_capture_open(job.paths[0], &reader, &err) < 0)
		status = xsp_say_error(&err);
	else
		status = xsp_write_outputs(reader, o);
	xsp_capture_close(reader);
	xsp_job_clear(&job);
	return status;
}

int xsp_cmd_export(int argc, char **argv)
{
	struct xsp_cut_options cut = {.given = false};
	struct xsp_capture_reader *reader = NULL;
	struct xsp_error err = {0};
	const char **paths = calloc((size_t)argc, sizeof(*paths));
	struct xsp_outputs o = {.paths = paths, .rows = 25, .progress = isatty(STDERR_FILENO)};
	struct xsp_input_options input = {.keep = NULL};
	int status = XSP_STATUS_FAILED, code;
	uint64_t rows;

	if (paths == NULL)
		return XSP_STATUS_FAILED;
	signal(SIGPIPE, SIG_IGN); /* a reader that goes away is an error of that output */
	signal(SIGXFSZ, SIG_IGN);
	optind = 1;
	opterr = 0;
	while ((code = getopt_long(argc, argv, ":o:qh" XSP_CUT_SHORTS, longs, NULL)) != -1) {
		status = XSP_STATUS_USAGE;
		const int taken = xsp_cut_option(&cut, code, optarg, &err);
		if (taken < 0) {
			status = xsp_say_error(&err);
			goto out;
		}
		if (taken > 0)
			continue;
		if (code == 'o') {
			if (xsp_ends_with(optarg, strlen(optarg), ".xspt")) {
				if (input.keep != NULL) {
					status = bad("give one -o NAME.xspt");
					goto out;
				}
				input.keep = optarg;
				continue;
			}
			if (xsp_export_format_for(optarg) == NULL) {
				xsp_say("-o %s: the ending must be one of " XSP_EXPORT_SUFFIXES
					", or it is clickhouse://HOST/DATABASE",
					optarg);
				goto out;
			}
			paths[o.count++] = optarg;
		} else if (code == OPT_SUMMARY) {
			o.summary = true;
			/* the last word may be the capture's name */
			if (optarg == NULL && optind < argc && is_summary(argv[optind]) &&
			    (optind < argc - 1 || access(argv[optind], F_OK) != 0))
				optarg = argv[optind++];
			o.json = optarg != NULL && strcmp(optarg, "json") == 0;
			if (optarg != NULL && !is_summary(optarg)) {
				status = bad("--summary takes text or json");
				goto out;
			}
		} else if (code == OPT_ROWS && strcmp(optarg, "all") == 0) {
			o.rows = 0;
		} else if (code == OPT_ROWS && xsp_parse_number(optarg, 1, 1000000, &rows) == 0) {
			o.rows = (size_t)rows;
		} else if (code == OPT_WEIGHT && xsp_weight_of(optarg) < XSP_WEIGHTS) {
			o.weight = xsp_weight_of(optarg);
		} else if (code == OPT_BY && xsp_by_of(optarg) != 0) {
			o.by |= xsp_by_of(optarg);
		} else if (code == '?' || code == ':') {
			xsp_say("%.200s: unknown option or missing value: see xsptrace export "
				"--help",
				argv[optind - 1]);
			goto out;
		} else if (code == 'q') {
			o.quiet = true;
			o.progress = false;
		} else if (code == 'h') {
			printf("%s%s%s", usage, xsp_cut_help, example);
			status = XSP_STATUS_OK;
			goto out;
		} else {
			status = bad(code == OPT_ROWS ? "--rows wants a number or all"
				     : code == OPT_WEIGHT
					     ? "--weight wants wall, cpu, off-cpu or samples"
					     : "--by wants " XSP_BY_WORDS);
			goto out;
		}
	}
	if (optind >= argc) {
		status = bad("no capture file given");
		goto out;
	}
	o.owner_uid = (uid_t)-1;
	o.owner_gid = (gid_t)-1;
	xsp_sudo_user(&o.owner_uid, &o.owner_gid);
	if (xsp_job_is_meant(argv + optind, (size_t)(argc - optind))) {
		status = export_job(&o, &cut, argv + optind, (size_t)(argc - optind));
		goto out;
	}
	if (o.count == 0 && input.keep == NULL)
		o.summary = true;
	if (input.keep != NULL && cut.given) {
		status = bad("-o NAME.xspt keeps all of the trace, not a part of it");
		goto out;
	}
	input.progress = o.progress;
	if (xsp_input_open(argv[optind], &input, &reader, &err) < 0 ||
	    xsp_cut_resolve(&cut, reader, &err) < 0) {
		status = xsp_say_error(&err);
		goto out;
	}
	if (o.count == 0 && !o.summary) {
		status = XSP_STATUS_OK;
		goto out;
	}
	struct xsp_timeline_counts counts = {.spans = 1};
	o.step = cut.step;
	o.cut = cut.given ? &cut.cut : NULL;
	o.counts = &counts;
	status = xsp_write_outputs(reader, &o);
	if (status == XSP_STATUS_OK && cut.given && counts.spans + counts.values == 0)
		status = nothing_left(&cut);
out:
	xsp_capture_close(reader);
	xsp_cut_clear(&cut);
	free(paths);
	return status;
}
