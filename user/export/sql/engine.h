/* SPDX-License-Identifier: BSD-2-Clause */
/* engine.h - where the rows of a database go: a SQLite file, a ClickHouse server. */
#ifndef XSP_EXPORT_SQL_ENGINE_H
#define XSP_EXPORT_SQL_ENGINE_H

#include <stdint.h>

#include "export/export_private.h"
#include "export/sql/schema.h"

/* One value of a row. */
struct xsp_sql_value {
	enum { XSP_SQL_NULL, XSP_SQL_INTEGER, XSP_SQL_REAL, XSP_SQL_TEXT } type;
	int64_t integer;
	double real; /* finite */
	const char *text; /* any bytes: ill-formed UTF-8 becomes U+FFFD */
};

/* All return 0 or a negative errno; x->why gets the details. */
struct xsp_sql_engine {
	/* Makes the tables unless they exist. `run` begins each row. Free *store unless it is NULL,
	 * also after an error. */
	int (*open)(struct xsp_export *x, int64_t run, void **store);
	/* `values` are in the order of the table's columns. */
	int (*put)(void *store, enum xsp_sql_table table, const struct xsp_sql_value *values);
	/* Call it after the last row: from now on others see all rows, and until now none. */
	int (*complete)(void *store);
	void (*free)(void *store);
};

extern const struct xsp_sql_engine xsp_sql_sqlite; /* sqlite.c */
extern const struct xsp_sql_engine xsp_sql_clickhouse; /* clickhouse.c */

#endif
