/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/names/value_rows.h"

#include <errno.h>
#include <math.h>

int xsp_value_rows_add(struct xsp_value_rows *r, const struct xsp_value *v)
{
	struct xsp_value_row *row = xsp_tally_row(
		r, v->name,
		&(struct xsp_value_row){.name = v->name, .min = INFINITY, .max = -INFINITY});

	if (row == NULL)
		return -ENOMEM;
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
	/* stays finite where a sum would overflow */
	row->mean += v->value / (double)row->finite - row->mean / (double)row->finite;
	return 0;
}
