/* SPDX-License-Identifier: BSD-2-Clause */
/* top_page.h - the tables of `xsptrace top`, as the lines of a screen or as plain text. */
#ifndef XSP_CLI_TOP_PAGE_H
#define XSP_CLI_TOP_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "analysis/names/live.h"
#include "record/recorder.h"

enum xsp_top_table { XSP_TOP_NAMES, XSP_TOP_THREADS, XSP_TOP_TABLES };

struct xsp_top_page {
	FILE *f;
	unsigned width; /* columns; 0: any width (names are never shortened in a pipe) */
	bool color;
	/* what is shown */
	const struct xsp_capture_reader *capture;
	const struct xsp_timeline *timeline;
	const struct xsp_live *live;
	struct xsp_recorder_status status;
	const char *process; /* "name (pid)" */
	double cpu; /* cores used in the interval; negative: not known */
	/* where a thread (root namespace) is, raw bytes; NULL: not known. May be NULL */
	const char *(*place)(void *ctx, uint32_t tid);
	void *place_ctx;
	/* how each table is shown */
	unsigned sort[XSP_TOP_TABLES]; /* number of a column */
	const char *filter; /* "": none */
	unsigned column; /* private: the column that the current line has reached */
};

/* One line: the process, its events, its losses and its cost. */
void xsp_top_print_process(struct xsp_top_page *p);
/* Prints at most `rows` lines with the titles, after the first `skipped` rows; 0: all. Returns how
 * many rows there are, or -ENOMEM. */
long xsp_top_print_table(struct xsp_top_page *p, enum xsp_top_table which, size_t rows,
			 size_t skipped);
/* Says what the columns mean. */
void xsp_top_print_help(struct xsp_top_page *p);
/* Prints a line of text, as far as the page is wide. */
void xsp_top_print_line(struct xsp_top_page *p, const char *text);

/* Finds the column with this title in the tables; false: there is none. */
bool xsp_top_column(const char *title, enum xsp_top_table *which, unsigned *column);
const char *xsp_top_title(enum xsp_top_table which, unsigned column);
unsigned xsp_top_columns(enum xsp_top_table which); /* how many columns it can be sorted by */

#endif
