/* SPDX-License-Identifier: BSD-2-Clause */
/* report_output.h - writes a report to standard output or a file, as text, JSON or CSV. */
#ifndef XSP_CLI_REPORT_OUTPUT_H
#define XSP_CLI_REPORT_OUTPUT_H

#include "report/report.h"
#include "base/error.h"

struct xsp_report_format;

/* Zero-initialise; the caller sets `path`. */
struct xsp_report_output {
	const struct xsp_report_format *format;
	const char *path; /* NULL: standard output */
	bool full; /* text on standard output: all of it, not one screen */
	bool top_given;
	size_t top; /* rows; 0: all */
	const char *moment; /* cli/moment.h; or NULL */
	const char *schema; /* the verb whose schema is asked for; NULL: none is */
};

/* --format: 0, or -EINVAL for an unknown one. */
int xsp_report_output_format(struct xsp_report_output *o, const char *name);
/* Call it after the last option: without --format the file name's ending decides. 0 or a negative
 * errno. */
int xsp_report_output_choose(struct xsp_report_output *o, struct xsp_error *err);
/* After that: will it be one screen? */
bool xsp_report_output_is_screen(const struct xsp_report_output *o);
/* Ignores `report` if the schema is asked for. 0 or a negative errno. */
int xsp_report_output_write(const struct xsp_report_output *o, const struct xsp_report *report,
			    struct xsp_error *err);
/* The end of a recording: one screen on standard output. `files`: what was written; NULL: nothing. `moment`: cli/moment.h; or
 * NULL. */
void xsp_report_output_screen(const struct xsp_report *report, const char *files, const char *next,
			      const char *moment);

#endif
