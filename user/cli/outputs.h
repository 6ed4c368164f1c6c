/* SPDX-License-Identifier: BSD-2-Clause */
/* outputs.h - writes a capture to the files that the user asked for, in one pass. */
#ifndef XSP_CLI_OUTPUTS_H
#define XSP_CLI_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/capture.h"
#include "export/export.h"
#include "timeline/timeline.h"

/* --by: what outputs show separately. */
enum xsp_by {
	XSP_BY_THREAD = 1 << 0, /* stacks */
	XSP_BY_LINE = 1 << 1, /* in the summary, instead of names */
	XSP_BY_MODULE = 1 << 2,
	XSP_BY_PYTHON = 1 << 3, /* in a trace, rows of Python lines: --python=rows */
	XSP_BY_STEP = 1 << 4, /* stacks: names that only count stay apart */
};
#define XSP_BY_NAMES "thread, step, line or module"
/* 0: unknown word. */
unsigned xsp_by_of(const char *word);

/* Does this argument of -o name the capture itself (NAME.xspt)? A database on a server keeps its
 * name. */
bool xsp_is_capture_name(const char *path);

struct xsp_job;
struct xsp_report;

struct xsp_outputs {
	const char *const *paths; /* .xspt names are ignored: they are the capture */
	size_t count;
	/* each path's state when the user asked for it; NULL: take it now */
	const struct xsp_standing *before;
	uid_t owner_uid;
	gid_t owner_gid;
	enum xsp_weight weight; /* weight of stacks */
	unsigned by; /* enum xsp_by */
	bool summary; /* print the table on standard output */
	bool json; /* print the whole summary as JSON */
	size_t rows;
	const char *name; /* the input's name, for readers; NULL: the output's name */
	const char *step; /* what marks a step (timeline/steps.h); NULL: the known names */
	bool progress; /* show progress on a terminal when it takes long */
	bool quiet;
	const struct xsp_cut *cut; /* the range; NULL: all */
	/* cli/job.h: several captures, of which the first one is given; NULL: one capture */
	const struct xsp_job *job;
	/* filled by the same pass; set to NULL if it failed; NULL: not wanted */
	struct xsp_report **report;
	struct xsp_timeline_counts *counts; /* the run's counts, at its end; NULL: not wanted */
	const struct xsp_timeline_sink *beside; /* one more sink; NULL: none */
	/* gets the names of the files, which are then not said: "a.json, a.svg"; malloc'd, or NULL: none was written */
	char **wrote;
};

/*
 * Reads the capture once, and writes every output and the summary. If an output fails, the others
 * go on. Says what went wrong and returns the exit status.
 */
int xsp_write_outputs(struct xsp_capture_reader *capture, const struct xsp_outputs *o);

#endif
