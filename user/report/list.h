/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * list.h - summaries: the text that a recording prints at its end, and --summary json.
 *
 * The same functions fill a full report (analyze) and a summary: a list says which columns each of them has. In
 * a full report its rows are a table; as JSON an array of objects; as text they are lines.
 */
#ifndef XSP_REPORT_LIST_H
#define XSP_REPORT_LIST_H

#include "report/report.h"

/* A column as text. */
struct xsp_list_column {
	const char *key;
	const char *title; /* NULL: the column's own */
	int width; /* at least; < 0: a text from the left, cut at it; 0: the last one, a text as long as it is */
	const char *format; /* of numbers; NULL: as in reports */
	double times; /* ... of so many times the number; 0: 1 */
	unsigned spare; /* what a narrow terminal does without: the highest first; 0: never */
};

/* Columns: those of a table of full reports, then those that summaries alone have, which go first. */
struct xsp_list {
	const struct xsp_report_column *columns;
	size_t count;
	const struct xsp_report_column *more;
	size_t more_count;
	/* Where full reports have it; NULL: nowhere. */
	const struct xsp_report_shape *full;
	bool known; /* values: full reports leave out those that are absent */
	/* As JSON: "gpu.kernels", and the members in their order, "name calls total_ns?". Of one with a question mark an
	 * absent value is left out, else it is null; one with a dot is a member of a member. NULL: not there. */
	const char *json, *keys;
	/* As text; NULL: not there. */
	const struct xsp_list_column *text;
	size_t text_count;
	const char *rows; /* what they are, for "... and 12 more kernels"; NULL: it does not say */
};
#define XSP_LIST_COLUMNS(of) .columns = (of), .count = sizeof(of) / sizeof((of)[0])
#define XSP_LIST_MORE(of) .more = (of), .more_count = sizeof(of) / sizeof((of)[0])
#define XSP_LIST_TEXT(of) .text = (of), .text_count = sizeof(of) / sizeof((of)[0])

/* What a report is for. */
enum xsp_report_form { XSP_FORM_FULL, XSP_FORM_TEXT, XSP_FORM_JSON };
/* A summary, of XSP_FORM_TEXT or XSP_FORM_JSON. 0 or -ENOMEM. */
int xsp_report_new_summary(enum xsp_report_form form, const struct xsp_report_how *how,
			   struct xsp_report **out);
enum xsp_report_form xsp_report_form(const struct xsp_report *r);
const struct xsp_report_how *xsp_report_how(const struct xsp_report *r);
/* 0, -ENOMEM or -EIO. */
int xsp_report_write_summary(struct xsp_report *r, FILE *f);

/* ---- in every form ---- */

/* Rows follow by xsp_report_add(). NULL: this form does not have it. */
struct xsp_report_table *xsp_list_table(struct xsp_report_section *s, const struct xsp_list *list);
/* A table of `count` rows of `size` bytes each, of which text shows the first `most`, 0: all, and says how many there are
 * more. Where the first column has no width each is as wide as it must be, as far as a terminal has room: then names
 * are cut, and spare columns are not shown, which a line says. */
void xsp_list_rows(struct xsp_report_section *s, const struct xsp_list *list, const void *of,
		   const void *rows, size_t size, size_t count, size_t most);
/* Values: in full reports all of the list's columns, as JSON the members of the object `json`. */
void xsp_list_values(struct xsp_report_section *s, const struct xsp_list *list, const void *of,
		     const void *row);

/* ---- as JSON; in other forms they do nothing ---- */

/* "gpu.calls"; what is not known is null. */
void xsp_list_member(struct xsp_report *r, const char *path, struct xsp_cell value);
/* Of the last row. A path that ends in '.' is an object, which may stay empty. */
void xsp_list_row_member(struct xsp_report_table *t, const char *path, struct xsp_cell value);
/* An array in the last row: list->json names it. */
struct xsp_report_table *xsp_list_in_row(struct xsp_report_table *t, const struct xsp_list *list);

/* ---- as text; in other forms they return NULL, or do nothing ---- */

/* Below the last table, for lines that belong to it. */
FILE *xsp_list_below(struct xsp_report *r);
/* An empty line there. */
void xsp_list_gap(struct xsp_report *r);
/* The line of the last row, to go on with. */
FILE *xsp_list_in_line(struct xsp_report *r);
/* After all tables. */
FILE *xsp_list_lines(struct xsp_report *r);
/* Such a line that the reader must not miss. */
void xsp_list_warn(struct xsp_report *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "what: 12", and nothing where the count is 0. */
void xsp_list_count(struct xsp_report *r, bool warn, const char *what, uint64_t count);
/* How many of `count` rows a text shows, `most` at most, 0: all; other forms have all of them. */
size_t xsp_list_most(const struct xsp_report *r, size_t most, size_t count);
/* "... and 12 more kernels". */
void xsp_list_more(struct xsp_report *r, const struct xsp_list *list, size_t more);

#endif
