/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * list.h - rows by the same columns as a report's tables, one at a time: the lines that a recording prints at its end,
 * and the lists of --summary json.
 */
#ifndef XSP_REPORT_LIST_H
#define XSP_REPORT_LIST_H

#include "base/json_writer.h"
#include "report/report.h"

/* Columns of a list: those of a table of reports, then those that lists alone have. */
struct xsp_list {
	const struct xsp_report_column *columns;
	size_t count;
	const struct xsp_report_column *more;
	size_t more_count;
};
#define XSP_LIST(columns)                                                                          \
	{                                                                                          \
		columns, sizeof(columns) / sizeof((columns)[0]), NULL, 0                           \
	}
#define XSP_LIST_MORE(columns, more)                                                               \
	{                                                                                          \
		columns, sizeof(columns) / sizeof((columns)[0]), more,                             \
			sizeof(more) / sizeof((more)[0])                                           \
	}

/* A member of a JSON object; `key` NULL: of an array. What is not known is null. */
void xsp_cell_json(struct xsp_json_writer *j, const char *key, const struct xsp_cell *cell);
/*
 * Members of a JSON object, in the order of `keys`: "name calls total_ns?". Of a key with a question mark an absent value
 * is left out, else it is null.
 */
void xsp_list_json(struct xsp_json_writer *j, const struct xsp_list *list, const char *keys,
		   const void *of, const void *row);

/* An array of such objects: rows of `size` bytes each. */
void xsp_list_json_rows(struct xsp_json_writer *j, const char *name, const struct xsp_list *list,
			const char *keys, const void *of, const void *rows, size_t size,
			size_t count);

/* A column of a list as text. */
struct xsp_list_column {
	const char *key;
	const char *title; /* NULL: the column's own */
	int width; /* at least; < 0: a text from the left, cut at it; 0: the last one, a text as long as it is */
	const char *format; /* of numbers; NULL: as in reports */
	double times; /* ... of so many times the number; 0: 1 */
	unsigned spare; /* what a narrow terminal does without: the highest first; 0: never */
};

struct xsp_list_text {
	const struct xsp_list *list;
	const struct xsp_list_column *columns;
	size_t count;
	size_t room; /* struct xsp_report_at.room */
};

/* The line of titles. */
void xsp_list_head(const struct xsp_list_text *t, FILE *f, bool color);
/* The cells of a row, without the end of the line. */
void xsp_list_row(const struct xsp_list_text *t, FILE *f, const void *of, const void *row);

/* Rows beside each other of which each column is as wide as it must be, as far as a terminal has room: then the first
 * column, a name, is cut, and spare ones are not shown. */
#define XSP_LIST_MOST 16 /* columns */
struct xsp_list_fit {
	int widths[XSP_LIST_MOST]; /* of all columns but the first one; -1: not shown */
	size_t name;
	bool cut; /* names that are longer; else these push their line aside */
	bool narrow; /* spare columns are not shown */
};
/* width: of a terminal; 0: it is none. */
void xsp_list_fit(const struct xsp_list_text *t, const void *of, const void *rows, size_t size,
		  size_t count, int width, struct xsp_list_fit *out);
void xsp_list_fitted(const struct xsp_list_text *t, const struct xsp_list_fit *fit, FILE *f,
		     const void *of, const void *rows, size_t size, size_t count, bool color);
/* A line that names the columns that are not shown; nothing if all are. */
void xsp_list_hidden(const struct xsp_list_text *t, const struct xsp_list_fit *fit, FILE *f);

#endif
