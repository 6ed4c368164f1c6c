/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * schema.h - the tables and views of a database. docs/sql.md says what each column is; the test holds the
 * two against each other.
 *
 * Nothing in it is SQLite's own: integers and texts, a run in every row, so that other engines can take
 * the same rows. What is changed here changes XSP_SQL_VERSION.
 */
#ifndef XSP_EXPORT_SQL_SCHEMA_H
#define XSP_EXPORT_SQL_SCHEMA_H

#define XSP_SQL_VERSION 1

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
	XSP_SQL_STACKS,
	XSP_SQL_SAMPLES,
	XSP_SQL_STATES,
	XSP_SQL_GPU,
	XSP_SQL_MEMORY,
	XSP_SQL_WINDOWS,
	XSP_SQL_LOSSES,
	XSP_SQL_TABLES
};

struct xsp_sql_table_text {
	const char *name;
	const char *columns; /* behind "run INTEGER NOT NULL, " */
	unsigned count; /* of columns that a row brings, the run with them */
};
extern const struct xsp_sql_table_text xsp_sql_tables[XSP_SQL_TABLES];

/* What is done to the filled tables: statements, ended by NULL. */
extern const char *const xsp_sql_views[];

#endif
