/* SPDX-License-Identifier: BSD-2-Clause */
/* outputs.h - from a capture to the files that were asked for, in one pass. */
#ifndef XSP_CLI_OUTPUTS_H
#define XSP_CLI_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/capture.h"
#include "export/export.h"
#include "timeline/timeline.h"

/* --by: what is shown apart. */
enum xsp_by {
	XSP_BY_THREAD = 1 << 0, /* stacks */
	XSP_BY_LINE = 1 << 1, /* the summary, instead of by name */
	XSP_BY_MODULE = 1 << 2,
	XSP_BY_PYTHON = 1 << 3, /* the trace has rows of lines: --python=rows */
};
#define XSP_BY_NAMES "thread, line or module"
/* 0: there is no such. */
unsigned xsp_by_of(const char *word);

/* Does that name, of -o, ask for the capture itself? NAME.xspt; of a database on a server it is the name. */
bool xsp_is_capture_name(const char *path);

struct xsp_job;

struct xsp_outputs {
	const char *const *paths; /* .xspt ones are left out: that is the capture */
	size_t count;
	const struct xsp_standing
		*before; /* at each of them, when they were asked for; NULL: now */
	uid_t owner_uid;
	gid_t owner_gid;
	enum xsp_weight weight; /* of stacks, and */
	unsigned by; /* enum xsp_by */
	bool summary; /* the table on standard output, or */
	bool json; /* all that it says as JSON */
	size_t rows;
	const char *name; /* of what is read, for people; NULL: that of the output */
	const char *step; /* what marks a step (timeline/steps.h); NULL: the known names */
	bool progress; /* a line on a terminal when it takes long */
	bool quiet;
	const struct xsp_cut *cut; /* a part of it; NULL: all */
	const struct xsp_job
		*job; /* cli/job.h: of several captures, the first of which is given; NULL: one */
	struct xsp_timeline_counts *counts; /* of the run, at its end; NULL: not asked for */
	const struct xsp_timeline_sink *beside; /* is fed as well; NULL: none */
};

/*
 * Reads the capture once and writes every output and the summary. An output that fails does not
 * stop the others. Returns the exit status, having said what went wrong.
 */
int xsp_write_outputs(struct xsp_capture_reader *capture, const struct xsp_outputs *o);

#endif
