/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rows.h - rows put into the tables of a database, and the names and lines that they mention by number.
 */
#ifndef XSP_EXPORT_SQL_ROWS_H
#define XSP_EXPORT_SQL_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "export/sql/engine.h"
#include "model/stacks/stacks.h"

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

/* *out is to be freed also after an error. */
int xsp_sql_new(struct xsp_export *x, const struct xsp_sql_engine *engine, struct xsp_sql **out);
/* Writes stacks and names, and completes the engine's work: nothing after it but free. */
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
