/* SPDX-License-Identifier: BSD-2-Clause */
/* export.c - `xsptrace export FILE -o OUT`: a capture becomes any format, later, without root. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/input.h"
#include "cli/job.h"
#include "cli/options/options.h"
#include "cli/outputs.h"
#include "export/export.h"

static int bad(const char *text)
{
	xsp_say("%s: see xsptrace export --help", text);
	return XSP_STATUS_USAGE;
}

static struct xsp_outputs outputs_of(const struct xsp_options *o)
{
	struct xsp_outputs outputs = {.paths = o->outputs.words,
				      .count = o->outputs.count,
				      .weight = o->weight,
				      .by = o->by,
				      .summary = o->summary,
				      .json = o->summary_json,
				      .rows = o->limit,
				      .step = o->part.step,
				      .progress = o->progress,
				      .quiet = o->quiet};

	xsp_sudo_user(&outputs.owner_uid, &outputs.owner_gid);
	return outputs;
}

/* Several captures: refuses what needs a single one. */
static int export_job(const struct xsp_options *o)
{
	struct xsp_capture_reader *reader = NULL;
	struct xsp_error err = {0};
	struct xsp_job job = {.ranks = NULL};
	struct xsp_outputs outputs = outputs_of(o);
	int status;

	if (o->keep != NULL)
		return bad("-o NAME.xspt keeps one trace, not several");
	if (outputs.count == 0 || outputs.summary)
		return bad(
			"several captures have no summary: xsptrace analyze tells of their ranks, -o FILE.json writes one trace");
	outputs.job = &job;
	if (xsp_cut_refuse_several(&o->part, "export", &err) < 0 ||
	    xsp_job_read(&job, o->rest, o->rest_count, o->part.step, &err) < 0 ||
	    xsp_job_refuse_outputs(&job, outputs.paths, outputs.count, &err) < 0 ||
	    xsp_input_open(job.files.paths[0], &(struct xsp_input_options){.keep = NULL}, &reader,
			   &err) < 0)
		status = xsp_say_error(&err);
	else
		status = xsp_write_outputs(reader, &outputs);
	xsp_capture_close(reader);
	xsp_job_clear(&job);
	return status;
}

static int refuse_outputs(const struct xsp_options *o, const char *path, struct xsp_error *err)
{
	int rc = o->keep != NULL ? xsp_refuse_input_as_output(path, o->keep, err) : 0;

	for (size_t i = 0; i < o->outputs.count && rc == 0; i++)
		rc = xsp_refuse_input_as_output(path, o->outputs.words[i], err);
	return rc;
}

static int export_one(struct xsp_options *o)
{
	const char *path = o->rest[0];
	struct xsp_timeline_counts counts = {.spans = 1};
	struct xsp_cut_left left = {0};
	const struct xsp_timeline_sink beside = xsp_cut_left_sink(&left);
	struct xsp_capture_reader *reader = NULL;
	struct xsp_error err = {0};
	struct xsp_outputs outputs = outputs_of(o);
	const struct xsp_input_options input = {.keep = o->keep, .progress = outputs.progress};
	int status = XSP_STATUS_OK;

	if (outputs.count == 0 && o->keep == NULL)
		outputs.summary = true;
	if (refuse_outputs(o, path, &err) < 0 || xsp_input_open(path, &input, &reader, &err) < 0 ||
	    xsp_cut_resolve(&o->part, reader, &err) < 0) {
		status = xsp_say_error(&err);
	} else if (outputs.count > 0 || outputs.summary) {
		outputs.cut = xsp_cut_of(&o->part);
		outputs.counts = o->part.given ? &counts : NULL;
		outputs.beside = o->part.given ? &beside : NULL;
		outputs.name = path;
		status = xsp_write_outputs(reader, &outputs);
		if (status == XSP_STATUS_OK &&
		    xsp_cut_check_left(&o->part, &counts, &left, &err) < 0)
			status = xsp_say_error(&err);
	}
	xsp_capture_close(reader);
	return status;
}

int xsp_cmd_export(int argc, char **argv)
{
	struct xsp_options o;
	int status;

	signal(SIGPIPE, SIG_IGN); /* if a reader goes away, it is an error of that output */
	signal(SIGXFSZ, SIG_IGN);
	if (!xsp_options_take(argc, argv, XSP_VERB_EXPORT, &o, &status))
		;
	else if (o.keep != NULL && o.part.given)
		status = bad("-o NAME.xspt keeps all of the trace, not a part of it");
	else
		status = xsp_capture_files_several(o.rest, o.rest_count) ? export_job(&o)
									 : export_one(&o);
	xsp_options_clear(&o);
	return status;
}
