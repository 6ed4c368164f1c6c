/* SPDX-License-Identifier: BSD-2-Clause */
/* cut_options.h - the options that cut a part out of a capture, for the verbs that read one. */
#ifndef XSP_CLI_CUT_OPTIONS_H
#define XSP_CLI_CUT_OPTIONS_H

#include "base/error.h"
#include "capture/capture.h"
#include "timeline/timeline.h"

struct xsp_cut_options {
	struct xsp_cut cut; /* what does not depend on the capture */
	const char *from, *to; /* as given, or NULL */
	const char *step; /* --step */
	pid_t *tids;
	const char **comms;
	struct xsp_cut_pattern *patterns;
	char *text; /* all of them, for outputs */
	bool given; /* any of them */
};

/* Rows of a table for getopt_long, and their codes. */
enum {
	XSP_CUT_FROM = 512,
	XSP_CUT_TO,
	XSP_CUT_COMM,
	XSP_CUT_MIN,
	XSP_CUT_DEPTH,
	XSP_CUT_STEP,
};
#define XSP_CUT_LONGS                                                                              \
	{"from", required_argument, NULL, XSP_CUT_FROM},                                           \
		{"to", required_argument, NULL, XSP_CUT_TO},                                       \
		{"tid", required_argument, NULL, 't'},                                             \
		{"comm", required_argument, NULL, XSP_CUT_COMM},                                   \
		{"event", required_argument, NULL, 'e'},                                           \
		{"min-duration", required_argument, NULL, XSP_CUT_MIN},                            \
		{"max-depth", required_argument, NULL, XSP_CUT_DEPTH},                             \
	{                                                                                          \
		"step", required_argument, NULL, XSP_CUT_STEP                                      \
	}
#define XSP_CUT_SHORTS "t:e:"
extern const char xsp_cut_help[];

/* 1: the option is one of them and was taken; 0: it is none; a negative errno: it was wrong, and *err names
 * it. `value` is kept by reference. */
int xsp_cut_option(struct xsp_cut_options *o, int code, const char *value, struct xsp_error *err);
/* Behind them all: finds times and steps in the capture; then o->cut is whole. Reads the capture where steps
 * are asked for. 0 or a negative errno. */
int xsp_cut_resolve(struct xsp_cut_options *o, struct xsp_capture_reader *r, struct xsp_error *err);
void xsp_cut_clear(struct xsp_cut_options *o);

/* What is left of a capture beside spans and values, as a sink counts it. */
struct xsp_cut_left {
	uint64_t waits, samples, activities, memory;
};
struct xsp_timeline_sink xsp_cut_left_sink(struct xsp_cut_left *left);
/*
 * Behind the run: 0, or -ENOENT and XSP_STATUS_NO_MATCH where nothing of the capture is left, or no span, and it is spans that
 * the cut chooses among (-e, --min-duration).
 */
int xsp_cut_check_left(const struct xsp_cut_options *o, const struct xsp_timeline_counts *counts,
		       const struct xsp_cut_left *left, struct xsp_error *err);

#endif
