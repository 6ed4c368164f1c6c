/* SPDX-License-Identifier: BSD-2-Clause */
/* name_rows.h - names that only number ("ProfilerStep#17") have one row, which is the first of them that was met. */
#ifndef XSP_ANALYSIS_NAME_ROWS_H
#define XSP_ANALYSIS_NAME_ROWS_H

#include "base/rows/u64map.h"
#include "timeline/timeline.h"

/* A name that numbers without its number ("ProfilerStep#*"), cut to fit into `out`; another name as it is. */
const char *xsp_name_common(const struct xsp_timeline *t, const char *name, char *out, size_t size);

/* Zeros, and the timeline, to begin with. */
struct xsp_name_rows {
	const struct xsp_timeline *timeline;
	xsp_name_id *row_of; /* by name id; those that are not known yet are not in it */
	size_t count, capacity;
	struct xsp_u64map first_of; /* hash of what such names have in common → the first one */
	struct xsp_u64map several; /* the first ones that are not alone */
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

/* What several names have in common, in `out`; the name of one that is alone. */
#define XSP_NAME_ROW_TEXT (XSP_NAME_MAX + 2)
const char *xsp_name_rows_text(const struct xsp_name_rows *r, xsp_name_id row,
			       char out[XSP_NAME_ROW_TEXT]);

#endif
