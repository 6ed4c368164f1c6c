/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * batch.h - rows of one table on their way to ClickHouse, in its format RowBinary: the run, the number of the
 * batch, the table's columns; integers little-endian, texts behind their length, and before each value that may be
 * NULL a byte that says whether it is.
 */
#ifndef XSP_EXPORT_SQL_BATCH_H
#define XSP_EXPORT_SQL_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "export/sql/engine.h"

struct xsp_sql_batch {
	uint8_t *bytes;
	size_t size, capacity;
	size_t *rows; /* where each begins */
	size_t count, row_capacity;
};

/* -ENOMEM; -EOVERFLOW: a number that the column cannot hold; -EINVAL: a value of another type. Then the batch is as
 * it was. */
int xsp_sql_batch_add(struct xsp_sql_batch *b, int64_t run, const struct xsp_sql_column *columns,
		      const struct xsp_sql_value *values);
/* Gives all its rows that number. */
void xsp_sql_batch_number(struct xsp_sql_batch *b, uint64_t number);
/* Empties it; the memory stays. */
void xsp_sql_batch_clear(struct xsp_sql_batch *b);
void xsp_sql_batch_free(struct xsp_sql_batch *b);

#endif
