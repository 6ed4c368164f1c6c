/* SPDX-License-Identifier: BSD-2-Clause */
/* top_page.h - the tables of `xsptrace top`: on a screen's lines, or as plain text. */
#ifndef XSP_CLI_TOP_PAGE_H
#define XSP_CLI_TOP_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "analysis/names/live.h"
#include "record/recorder.h"

enum xsp_top_table { XSP_TOP_NAMES, XSP_TOP_THREADS, XSP_TOP_TABLES };

struct xsp_top_page {
	FILE *f;
	unsigned width; /* columns; 0: as wide as it is (names are never cut in a pipe) */
	bool color;
	/* what is shown */
	const struct xsp_capture_reader *capture;
	const struct xsp_timeline *timeline;
	const struct xsp_live *live;
	struct xsp_recorder_status status;
	const char *process; /* "name (pid)" */
	double cpu; /* shares of a core in the interval; negative: not known */
	/* how: of each table */
	unsigned sort[XSP_TOP_TABLES]; /* number of a column */
	const char *filter; /* "": none */
	unsigned column; /* private: where the line at hand is */
};

/* The process, its events, what is lost and what it costs: a line. */
void xsp_top_print_process(struct xsp_top_page *p);
/* At most `rows` lines, the titles among them, without the first `skipped` rows; 0: all. Returns how many rows there are to be
 * shown, or -ENOMEM. */
long xsp_top_print_table(struct xsp_top_page *p, enum xsp_top_table which, size_t rows,
			 size_t skipped);
/* What the columns are. */
void xsp_top_print_help(struct xsp_top_page *p);
/* A line of text; what is wider than the page is left out. */
void xsp_top_print_line(struct xsp_top_page *p, const char *text);

/* The number of the column with this title in any of the tables; false: there is none such. */
bool xsp_top_column(const char *title, enum xsp_top_table *which, unsigned *column);
const char *xsp_top_title(enum xsp_top_table which, unsigned column);
unsigned xsp_top_columns(enum xsp_top_table which); /* by which it can be sorted */

#endif
