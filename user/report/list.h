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

#endif
