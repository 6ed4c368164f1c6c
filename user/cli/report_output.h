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
	bool top_given;
	size_t top; /* rows; 0: all */
	const char
		*schema; /* the verb, of whose reports the schema is asked for; NULL: it is not */
};

/* --format: 0, or -EINVAL: there is no such. */
int xsp_report_output_format(struct xsp_report_output *o, const char *name);
/* Behind all options: the ending says the format, where --format does not. 0 or a negative errno. */
int xsp_report_output_choose(struct xsp_report_output *o, struct xsp_error *err);
/* `report` is not looked at where the schema is asked for. 0 or a negative errno. */
int xsp_report_output_write(const struct xsp_report_output *o, const struct xsp_report *report,
			    struct xsp_error *err);

#endif
