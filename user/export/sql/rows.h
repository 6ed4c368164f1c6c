/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rows.h - puts rows into the tables of a database, and numbers the threads, names and lines in
 * them.
 *
 * The first error stays (xsp_sql_error), and then nothing more is put: callers need not check each
 * step.
 */
#ifndef XSP_EXPORT_SQL_ROWS_H
#define XSP_EXPORT_SQL_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "export/sql/engine.h"
#include "model/rows/thread_rows.h"
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

/* Free *out also after an error. */
int xsp_sql_new(struct xsp_export *x, const struct xsp_sql_engine *engine, struct xsp_sql **out);
/* Writes stacks and names, and completes the engine's work. Then only free it. 0 or the first
 * error. */
int xsp_sql_complete(struct xsp_sql *q);
void xsp_sql_free(struct xsp_sql *q); /* NULL is allowed */

int xsp_sql_error(const struct xsp_sql *q);
/* Keeps a negative rc if it is the first one. */
void xsp_sql_note(struct xsp_sql *q, int rc);

/* `values` are those of the table's columns after the run, in their order. */
void xsp_sql_put(struct xsp_sql *q, enum xsp_sql_table table, const struct xsp_sql_value *values);
#define XSP_SQL_PUT(q, table, ...)                                                                 \
	xsp_sql_put((q), (table), (const struct xsp_sql_value[]){__VA_ARGS__})

/* The stacks of spans, samples and waits; the end writes them. */
struct xsp_stacks *xsp_sql_stacks(struct xsp_sql *q);

/* The rows of all threads. For a row with number 0, index + 1 is the thread's number. */
struct xsp_thread_rows *xsp_sql_thread_rows(struct xsp_sql *q);
/* The number of a thread. */
struct xsp_sql_value xsp_sql_thread(struct xsp_sql *q, uint32_t pid, uint32_t tid);
/* Numbers in `names`: for a name of the timeline, and for any other text. Equal texts of the first
 * kind share a number. */
struct xsp_sql_value xsp_sql_name(struct xsp_sql *q, xsp_name_id id);
struct xsp_sql_value xsp_sql_other_name(struct xsp_sql *q, const char *text);
/* A number in `lines`; NULL: the span's innermost Python line is not known. */
struct xsp_sql_value xsp_sql_line(struct xsp_sql *q, const struct xsp_span *span);

#endif
