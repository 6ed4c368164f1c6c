/* SPDX-License-Identifier: BSD-2-Clause */
/* report_output.h - a report to standard output or a file, as text, JSON or CSV. */
#ifndef XSP_CLI_REPORT_OUTPUT_H
#define XSP_CLI_REPORT_OUTPUT_H

#include "report/report.h"
#include "base/error.h"

struct xsp_report_format;

/* Zero-initialise; `path` is the caller's to set. */
struct xsp_report_output {
	const struct xsp_report_format *format;
	const char *path; /* NULL: standard output */
	bool top_given, quiet, help;
	size_t top; /* rows; 0: all */
	const char
		*schema; /* the verb, of whose reports the schema is asked for; NULL: it is not */
};

/* The options of every verb that writes a report, but for -o. */
enum { XSP_REPORT_FORMAT = 768, XSP_REPORT_TOP, XSP_REPORT_SCHEMA };
#define XSP_REPORT_LONGS                                                                           \
	{"output", required_argument, NULL, 'o'},                                                  \
		{"format", required_argument, NULL, XSP_REPORT_FORMAT},                            \
		{"top", required_argument, NULL, XSP_REPORT_TOP},                                  \
		{"json-schema", no_argument, NULL, XSP_REPORT_SCHEMA},                             \
		{"quiet", no_argument, NULL, 'q'},                                                 \
	{                                                                                          \
		"help", no_argument, NULL, 'h'                                                     \
	}
#define XSP_REPORT_SHORTS "o:qh"
/* 0 or a negative errno; one that is none of them is wrong: `argv` and `verb` are for what is said then. */
int xsp_report_output_option(struct xsp_report_output *o, int code, char **argv, const char *verb,
			     struct xsp_error *err);
/* Behind all options: the ending says the format, where --format does not. 0 or a negative errno. */
int xsp_report_output_choose(struct xsp_report_output *o, struct xsp_error *err);
/* `report` is not looked at where the schema is asked for. 0 or a negative errno. */
int xsp_report_output_write(const struct xsp_report_output *o, const struct xsp_report *report,
			    struct xsp_error *err);

#endif
