/* SPDX-License-Identifier: BSD-2-Clause */
/* span_kinds.h - what many spans share, under dense numbers: the name, the category, and whether the end was seen. */
#ifndef XSP_MODEL_SPAN_KINDS_H
#define XSP_MODEL_SPAN_KINDS_H

#include "base/u64map.h"
#include "model/spans/category.h"

struct xsp_span_kind {
	xsp_name_id name;
	unsigned category; /* of struct xsp_categories */
	enum xsp_ending ending; /* XSP_UNFINISHED, XSP_EXIT_LOST; the others are XSP_RETURNED */
	bool cut; /* XSP_SPAN_CUT, if the caller wants that */
};

struct xsp_span_kinds {
	struct xsp_categories categories;
	struct xsp_span_kind *list;
	size_t count, capacity;
	struct xsp_u64map index;
	bool cuts; /* cut spans are a kind of their own */
};

/* *f is all zeros. Each returns 0 or -ENOMEM. */
int xsp_span_kinds_init(struct xsp_span_kinds *f, const struct xsp_view *v);
int xsp_span_kind_of(struct xsp_span_kinds *f, const struct xsp_span *span, uint32_t *number);
void xsp_span_kinds_free(struct xsp_span_kinds *f); /* zeros are allowed */

#endif
