/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/value_rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int xsp_value_rows_add(struct xsp_value_rows *r, const struct xsp_value *v)
{
	const long at = xsp_u64map_index(&r->row_of, v->name, &r->rows, &r->capacity, r->count);

	if (at < 0)
		return -ENOMEM;
	struct xsp_value_row *row = &r->rows[at];
	if ((size_t)at == r->count) {
		*row = (struct xsp_value_row){.name = v->name, .min = INFINITY, .max = -INFINITY};
		r->count++;
	}
	row->count++;
	if (v->time_ns >= row->last_ns) { /* other threads may be ahead */
		row->last_ns = v->time_ns;
		row->last = v->value;
	}
	if (!isfinite(v->value))
		return 0;
	row->finite++;
	row->min = fmin(row->min, v->value);
	row->max = fmax(row->max, v->value);
	/* so that it stays finite where the sum would not */
	row->mean += v->value / (double)row->finite - row->mean / (double)row->finite;
	return 0;
}

void xsp_value_rows_clear(struct xsp_value_rows *r)
{
	xsp_u64map_free(&r->row_of);
	free(r->rows);
	*r = (struct xsp_value_rows){.rows = NULL};
}
