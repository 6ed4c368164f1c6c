/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * schema.h - the tables and views of a database. docs/sql.md explains each column, and a test
 * compares the two.
 *
 * One text serves all engines: numbers and texts, the run in every row. A view joins only two
 * tables at a time, as ClickHouse 18.16 joins no more. Each change here changes XSP_SQL_VERSION:
 * rows never go to tables of another version.
 */
#ifndef XSP_EXPORT_SQL_SCHEMA_H
#define XSP_EXPORT_SQL_SCHEMA_H

#include <stdbool.h>

#define XSP_SQL_VERSION "3"

enum xsp_sql_table {
	XSP_SQL_META,
	XSP_SQL_RUNS,
	XSP_SQL_PROCESSES,
	XSP_SQL_THREADS,
	XSP_SQL_THREAD_WAITS,
	XSP_SQL_NAMES,
	XSP_SQL_FUNCTIONS,
	XSP_SQL_LINES,
	XSP_SQL_CATEGORIES,
	XSP_SQL_ENDINGS,
	XSP_SQL_SPANS,
	XSP_SQL_COUNTERS,
	XSP_SQL_VALUES,
	XSP_SQL_STACKS,
	XSP_SQL_SAMPLES,
	XSP_SQL_STATES,
	XSP_SQL_GPU,
	XSP_SQL_MEMORY,
	XSP_SQL_WINDOWS,
	XSP_SQL_LOSSES,
	XSP_SQL_TABLES
};

enum xsp_sql_type {
	XSP_SQL_I64,
	/* narrower, for tables with many rows: engines that store columns are faster with it */
	XSP_SQL_U32,
	XSP_SQL_U8,
	XSP_SQL_F64,
	XSP_SQL_STRING,
	XSP_SQL_TYPES
};

struct xsp_sql_column {
	const char *name;
	enum xsp_sql_type type;
	bool null; /* it may be NULL */
};

struct xsp_sql_table_text {
	const char *name;
	/* the columns of a row after its `run`; NULL ends them */
	const struct xsp_sql_column *columns;
	const char *order; /* the columns that sort rows, after the run: none of them is NULL */
	const char *derived,
		*derived_from; /* one more column, and the expression for it; or NULL */
};
extern const struct xsp_sql_table_text xsp_sql_tables[XSP_SQL_TABLES];

struct xsp_sql_view {
	const char *name, *select;
};
/* A view may use those before it; a NULL name ends them. The first view holds the version and uses
 * none. */
extern const struct xsp_sql_view xsp_sql_views[];

#endif
