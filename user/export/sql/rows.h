/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rows.h - rows put into the tables of a new database, and the names and lines that they mention by number.
 *
 * Everything is one transaction without a journal: a file that is not complete never gets a name.
 */
#ifndef XSP_EXPORT_SQL_ROWS_H
#define XSP_EXPORT_SQL_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "export/export_private.h"
#include "export/sql/schema.h"
#include "export/stacks.h"

/* One value of a row. */
struct xsp_sql_value {
	enum { XSP_SQL_NULL, XSP_SQL_INTEGER, XSP_SQL_TEXT } type;
	int64_t integer;
	const char *text; /* any bytes: ill-formed UTF-8 becomes U+FFFD */
};

static inline struct xsp_sql_value xsp_sql_integer(uint64_t value)
{
	return (struct xsp_sql_value){.type = XSP_SQL_INTEGER, .integer = (int64_t)value};
}

static inline struct xsp_sql_value xsp_sql_if(bool known, uint64_t value)
{
	return known ? xsp_sql_integer(value) : (struct xsp_sql_value){.type = XSP_SQL_NULL};
}

/* NULL: none. */
static inline struct xsp_sql_value xsp_sql_text(const char *text)
{
	return text != NULL ? (struct xsp_sql_value){.type = XSP_SQL_TEXT, .text = text}
			    : (struct xsp_sql_value){.type = XSP_SQL_NULL};
}

struct xsp_sql;

/* Makes the tables in the output's file. */
int xsp_sql_new(struct xsp_export *x, struct xsp_sql **out);
/* Writes names and views, and ends the transaction: nothing after it but free. */
int xsp_sql_complete(struct xsp_sql *q);
void xsp_sql_free(struct xsp_sql *q); /* NULL is allowed */

/* `values`: those of the table's columns behind the run, in their order. */
int xsp_sql_put(struct xsp_sql *q, enum xsp_sql_table table, const struct xsp_sql_value *values);
#define XSP_SQL_PUT(q, table, ...)                                                                 \
	xsp_sql_put((q), (table), (const struct xsp_sql_value[]){__VA_ARGS__})

/* The stacks of the spans, samples and waits; they are written at the end. */
struct xsp_stacks *xsp_sql_stacks(struct xsp_sql *q);

/* Numbers of `names`: of a name of the timeline's, and of any other text. Equal texts of the first kind have
 * the same number. 0 or -ENOMEM. */
int xsp_sql_name(struct xsp_sql *q, xsp_name_id id, uint64_t *number);
int xsp_sql_other_name(struct xsp_sql *q, const char *text, uint64_t *number);
/* Of `lines`; 0: the span's innermost line of Python is not known. */
int xsp_sql_line(struct xsp_sql *q, const struct xsp_span *span, uint64_t *number);

#endif
