/* SPDX-License-Identifier: BSD-2-Clause */
/* tables.h - the tables that do not grow with the events: written at the beginning or at the
 * end. */
#ifndef XSP_EXPORT_SQL_TABLES_H
#define XSP_EXPORT_SQL_TABLES_H

#include "export/sql/rows.h"
#include "model/spans/category.h"

/* xsp_export.state begins with it. */
struct xsp_database {
	struct xsp_sql *rows;
	struct xsp_categories categories;
	/* start of the recording, CLOCK_MONOTONIC: times in a range are those in the whole */
	uint64_t start_ns;
	uint64_t length_ns; /* length of the range that is written */
};

/* A time. */
static inline struct xsp_sql_value xsp_sql_at(const struct xsp_database *d, uint64_t ns)
{
	return xsp_sql_integer(ns - d->start_ns);
}

void xsp_sql_put_first(struct xsp_export *x);
void xsp_sql_put_last(struct xsp_export *x);

#endif
