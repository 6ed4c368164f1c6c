/* SPDX-License-Identifier: BSD-2-Clause */
/* engine.h - what takes the rows of a database: a SQLite file, a ClickHouse server. */
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

/* All return 0 or a negative errno; what is to be said of it beyond that goes to x->why. */
struct xsp_sql_engine {
	/* Makes the tables, if they are not there. `run`: what each row begins with. *store is to be
	 * freed also after an error, unless it is NULL. */
	int (*open)(struct xsp_export *x, int64_t run, void **store);
	/* `values`: those of the table's columns, in their order. */
	int (*put)(void *store, enum xsp_sql_table table, const struct xsp_sql_value *values);
	/* Behind the last row: from here on others see all of them. Until here, none. */
	int (*complete)(void *store);
	void (*free)(void *store);
};

extern const struct xsp_sql_engine xsp_sql_sqlite; /* sqlite.c */
extern const struct xsp_sql_engine xsp_sql_clickhouse; /* clickhouse.c */

#endif
