/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * batch.h - rows of one table for ClickHouse, in its format RowBinary. A row is the run, the
 * batch's number and the table's columns. Integers are little-endian, and a length precedes each
 * text. A byte before each value that may be NULL says whether it is.
 */
#ifndef XSP_EXPORT_SQL_BATCH_H
#define XSP_EXPORT_SQL_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "export/sql/engine.h"

struct xsp_sql_batch {
	uint8_t *bytes;
	size_t size, capacity;
	size_t *rows; /* where each row begins */
	size_t count, row_capacity;
};

/* -ENOMEM; -EOVERFLOW: the column cannot hold the number; -EINVAL: a value of another type. After
 * an error the batch is as it was. */
int xsp_sql_batch_add(struct xsp_sql_batch *b, int64_t run, const struct xsp_sql_column *columns,
		      const struct xsp_sql_value *values);
/* Sets the batch's number in all of its rows. */
void xsp_sql_batch_number(struct xsp_sql_batch *b, uint64_t number);
/* Removes the rows and keeps the memory. */
void xsp_sql_batch_clear(struct xsp_sql_batch *b);
void xsp_sql_batch_free(struct xsp_sql_batch *b);

#endif
