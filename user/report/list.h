/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * list.h - summaries: the text that a recording prints at its end, and --summary json.
 *
 * The same functions fill a full report (analyze) and a summary. A list says which columns each of
 * them has. Its rows are a table in a full report, an array of objects in JSON, and lines in text.
 */
#ifndef XSP_REPORT_LIST_H
#define XSP_REPORT_LIST_H

#include "report/report.h"

/* A column in text. */
struct xsp_list_column {
	const char *key;
	const char *title; /* NULL: the column's own */
	/* the least width; < 0: left-aligned, and elided to -width; 0: the last column, a text
	 * of any length */
	int width;
	const char *format; /* for numbers; NULL: as in reports */
	double times; /* multiplies the number for `format`; 0: 1 */
	unsigned spare; /* a narrow terminal hides the highest first; 0: never hidden */
};

/* Columns: those of a full report's table, and `more`, which only summaries have and which go
 * first. */
struct xsp_list {
	const struct xsp_report_column *columns;
	size_t count;
	const struct xsp_report_column *more;
	size_t more_count;
	/* The table in full reports; NULL: none. */
	const struct xsp_report_shape *full;
	bool known; /* values: full reports omit absent ones */
	/* For JSON: "gpu.kernels", and the members in order, "name calls total_ns?". An absent
	 * value is null, or is missing if its key ends in a question mark. A key with a dot is a
	 * member of a member. NULL: not in JSON. */
	const char *json, *keys;
	/* For text; NULL: not in text. */
	const struct xsp_list_column *text;
	size_t text_count;
	const char *rows; /* plural for "... and 12 more kernels"; NULL: no such line */
};
#define XSP_LIST_COLUMNS(of) .columns = (of), .count = sizeof(of) / sizeof((of)[0])
#define XSP_LIST_MORE(of) .more = (of), .more_count = sizeof(of) / sizeof((of)[0])
#define XSP_LIST_TEXT(of) .text = (of), .text_count = sizeof(of) / sizeof((of)[0])

/* The forms of a report. */
enum xsp_report_form { XSP_FORM_FULL, XSP_FORM_TEXT, XSP_FORM_JSON };
/* A summary: XSP_FORM_TEXT or XSP_FORM_JSON. 0 or -ENOMEM. */
int xsp_report_new_summary(enum xsp_report_form form, const struct xsp_report_how *how,
			   struct xsp_report **out);
enum xsp_report_form xsp_report_form(const struct xsp_report *r);
const struct xsp_report_how *xsp_report_how(const struct xsp_report *r);
/* 0, -ENOMEM or -EIO. */
int xsp_report_write_summary(struct xsp_report *r, FILE *f);

/* ---- in every form ---- */

/* Add its rows with xsp_report_add(). NULL: this form does not have the table. */
struct xsp_report_table *xsp_list_table(struct xsp_report_section *s, const struct xsp_list *list);
/* A table of `count` rows of `size` bytes each. Text shows the first `most` (0: all), and says
 * how many more there are. If the first column has no width, each column is as wide as needed
 * and as the terminal allows. Then names are elided, and spare columns are hidden, which a line
 * says. */
void xsp_list_rows(struct xsp_report_section *s, const struct xsp_list *list, const void *of,
		   const void *rows, size_t size, size_t count, size_t most);
/* Values: all of the list's columns in full reports, members of the object `json` in JSON. */
void xsp_list_values(struct xsp_report_section *s, const struct xsp_list *list, const void *of,
		     const void *row);

/* ---- for JSON; other forms do nothing ---- */

/* "gpu.calls"; an unknown value is null. */
void xsp_list_member(struct xsp_report *r, const char *path, struct xsp_cell value);
/* A member of the last row. A path that ends in '.' is an object, which may stay empty. */
void xsp_list_row_member(struct xsp_report_table *t, const char *path, struct xsp_cell value);
/* An array in the last row, with the name list->json. */
struct xsp_report_table *xsp_list_in_row(struct xsp_report_table *t, const struct xsp_list *list);

/* ---- for text; other forms return NULL, or do nothing ---- */

/* For lines below the last table that belong to it. */
FILE *xsp_list_below(struct xsp_report *r);
/* An empty line below the last table. */
void xsp_list_gap(struct xsp_report *r);
/* Continues the line of the last row. */
FILE *xsp_list_in_line(struct xsp_report *r);
/* For lines after all tables. */
FILE *xsp_list_lines(struct xsp_report *r);
/* Such a line, as a warning. */
void xsp_list_warn(struct xsp_report *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "what: 12", or nothing for 0. */
void xsp_list_count(struct xsp_report *r, bool warn, const char *what, uint64_t count);
/* How many of `count` rows text shows: at most `most`, 0: all. Other forms show all. */
size_t xsp_list_most(const struct xsp_report *r, size_t most, size_t count);
/* "... and 12 more kernels". */
void xsp_list_more(struct xsp_report *r, const struct xsp_list *list, size_t more);

#endif
