/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/sql/batch.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/format/json.h"

#define LONGEST 16 /* bytes of a value without its text: one byte for NULL, ten for a length */

/* The caller has made room. */
static void put_integer(struct xsp_sql_batch *b, uint64_t value, size_t bytes)
{
	const uint64_t little = htole64(value);

	memcpy(b->bytes + b->size, &little, bytes);
	b->size += bytes;
}

static int put_text(struct xsp_sql_batch *b, const char *text)
{
	size_t length;
	char *clean = xsp_utf8_shown(text, &length);
	int rc = clean == NULL || xsp_grow(&b->bytes, &b->capacity, b->size + LONGEST + length) < 0
			 ? -ENOMEM
			 : 0;

	if (rc == 0) {
		size_t left = length;
		for (; left >= 0x80; left >>= 7)
			b->bytes[b->size++] = (uint8_t)(left | 0x80);
		b->bytes[b->size++] = (uint8_t)left;
		memcpy(b->bytes + b->size, clean, length);
		b->size += length;
	}
	free(clean);
	return rc;
}

static int put_value(struct xsp_sql_batch *b, const struct xsp_sql_column *c,
		     const struct xsp_sql_value *v)
{
	static const size_t widths[XSP_SQL_TYPES] = {
		[XSP_SQL_I64] = 8, [XSP_SQL_U32] = 4, [XSP_SQL_U8] = 1, [XSP_SQL_F64] = 8};
	const size_t width = widths[c->type]; /* 0: a text */

	if (xsp_grow(&b->bytes, &b->capacity, b->size + LONGEST) < 0)
		return -ENOMEM;
	if (c->null)
		b->bytes[b->size++] = v->type == XSP_SQL_NULL;
	if (v->type == XSP_SQL_NULL)
		return c->null ? 0 : -EINVAL;
	if ((v->type == XSP_SQL_TEXT) != (width == 0) ||
	    (v->type == XSP_SQL_REAL) != (c->type == XSP_SQL_F64))
		return -EINVAL;
	if (width == 0)
		return put_text(b, v->text);
	if (v->type == XSP_SQL_REAL) {
		uint64_t bits;
		memcpy(&bits, &v->real, sizeof(bits));
		put_integer(b, bits, width);
		return 0;
	}
	if (width < 8 && (uint64_t)v->integer >> 8 * width != 0)
		return -EOVERFLOW;
	put_integer(b, (uint64_t)v->integer, width);
	return 0;
}

int xsp_sql_batch_add(struct xsp_sql_batch *b, int64_t run, const struct xsp_sql_column *columns,
		      const struct xsp_sql_value *values)
{
	const size_t begin = b->size;
	int rc = 0;

	if (xsp_grow(&b->rows, &b->row_capacity, b->count + 1) < 0 ||
	    xsp_grow(&b->bytes, &b->capacity, begin + 2 * LONGEST) < 0)
		return -ENOMEM;
	put_integer(b, (uint64_t)run, sizeof(run));
	put_integer(b, 0, sizeof(uint64_t)); /* the batch's number comes later */
	for (size_t i = 0; rc == 0 && columns[i].name != NULL; i++)
		rc = put_value(b, &columns[i], &values[i]);
	if (rc < 0)
		b->size = begin;
	else
		b->rows[b->count++] = begin;
	return rc;
}

void xsp_sql_batch_number(struct xsp_sql_batch *b, uint64_t number)
{
	const uint64_t little = htole64(number);

	for (size_t i = 0; i < b->count; i++)
		memcpy(b->bytes + b->rows[i] + sizeof(int64_t), &little, sizeof(little));
}

void xsp_sql_batch_clear(struct xsp_sql_batch *b)
{
	b->size = 0;
	b->count = 0;
}

void xsp_sql_batch_free(struct xsp_sql_batch *b)
{
	free(b->bytes);
	free(b->rows);
}
