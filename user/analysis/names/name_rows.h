/* SPDX-License-Identifier: BSD-2-Clause */
/* name_rows.h - numbered names ("ProfilerStep#17") share one row, that of the first such name. */
#ifndef XSP_ANALYSIS_NAME_ROWS_H
#define XSP_ANALYSIS_NAME_ROWS_H

#include "base/rows/u64map.h"
#include "timeline/timeline.h"

/* A numbered name without its number ("ProfilerStep#*"), elided to fit into `out`; any other
 * name unchanged. */
const char *xsp_name_common(const struct xsp_timeline *t, const char *name, char *out, size_t size);

/* Initialise with zeros and the timeline. */
struct xsp_name_rows {
	const struct xsp_timeline *timeline;
	xsp_name_id *row_of; /* by name id; only names met so far */
	size_t count, capacity;
	struct xsp_u64map first_of; /* hash of the common name → the first such name */
	struct xsp_u64map several; /* first names that are not alone */
};

void xsp_name_rows_free(struct xsp_name_rows *r);
int xsp_name_rows_learn(struct xsp_name_rows *r, xsp_name_id id); /* 0 or -ENOMEM */
/* 0 or -ENOMEM. */
static inline int xsp_name_rows_of(struct xsp_name_rows *r, xsp_name_id id, xsp_name_id *row)
{
	const int rc = id < r->count ? 0 : xsp_name_rows_learn(r, id);

	*row = rc == 0 ? r->row_of[id] : 0;
	return rc;
}

/* The common name of several, in `out`; a single name as it is. */
#define XSP_NAME_ROW_TEXT (XSP_NAME_MAX + 2)
const char *xsp_name_rows_text(const struct xsp_name_rows *r, xsp_name_id row,
			       char out[XSP_NAME_ROW_TEXT]);

#endif
