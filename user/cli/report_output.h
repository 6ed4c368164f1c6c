/* SPDX-License-Identifier: BSD-2-Clause */
/* report_output.h - a report to standard output or a file, as text, JSON or CSV. */
#ifndef XSP_CLI_REPORT_OUTPUT_H
#define XSP_CLI_REPORT_OUTPUT_H

#include "analysis/report.h"
#include "base/error.h"

struct xsp_report_format;

/* Zero-initialise; `path` is the caller's to set. */
struct xsp_report_output {
	const struct xsp_report_format *format;
	const char *path; /* NULL: standard output */
	bool top_given;
	size_t top; /* rows; 0: all */
};

/* --format and --top. 0 or a negative errno. */
int xsp_report_output_format(struct xsp_report_output *o, const char *name, struct xsp_error *err);
int xsp_report_output_top(struct xsp_report_output *o, const char *value, struct xsp_error *err);
/* Behind all options: the ending says the format, where --format does not. 0 or a negative errno. */
int xsp_report_output_choose(struct xsp_report_output *o, struct xsp_error *err);
/* 0 or a negative errno. */
int xsp_report_output_write(const struct xsp_report_output *o, const struct xsp_report *report,
			    struct xsp_error *err);

#endif
