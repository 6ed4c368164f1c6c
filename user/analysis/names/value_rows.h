/* SPDX-License-Identifier: BSD-2-Clause */
/* value_rows.h - figures of the values that a program reports, by name. Its memory is bounded by
 * the number of names. */
#ifndef XSP_ANALYSIS_VALUE_ROWS_H
#define XSP_ANALYSIS_VALUE_ROWS_H

#include "base/rows/tally.h"
#include "timeline/timeline.h"

struct xsp_value_row {
	xsp_name_id name;
	uint64_t count;
	uint64_t finite; /* finite numbers, which the next three cover */
	double min, mean, max;
	double last; /* may be any number */
	uint64_t last_ns;
};

struct xsp_value_rows {
	XSP_TALLY(struct xsp_value_row);
};

int xsp_value_rows_add(struct xsp_value_rows *r, const struct xsp_value *v); /* 0 or -ENOMEM */

#endif
