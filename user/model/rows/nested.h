/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nested.h - the spans of each row as begins and ends in order of time. What is the same in many of them, the name, the
 * category and whether the end was seen, is a kind with a dense number.
 */
#ifndef XSP_MODEL_NESTED_H
#define XSP_MODEL_NESTED_H

#include "base/rows/tally.h"
#include "model/rows/ordered.h"
#include "model/rows/thread_rows.h"
#include "model/spans/category.h"

struct xsp_span_kind {
	xsp_name_id name;
	unsigned category; /* of struct xsp_categories */
	enum xsp_ending ending; /* XSP_UNFINISHED, XSP_EXIT_LOST; the others are XSP_RETURNED */
	bool cut; /* XSP_SPAN_CUT, if the caller wants that */
};

/* Of zeros. */
struct xsp_nested {
	struct xsp_thread_rows *rows;
	struct xsp_ordered *spans; /* by index of the row; named by their kinds */
	struct xsp_categories categories;
	XSP_TALLY(struct xsp_span_kind) kinds;
	bool cuts; /* cut spans are a kind of their own */
};

/* `path`: the output's name. Both return 0 or a negative errno. */
int xsp_nested_init(struct xsp_nested *n, struct xsp_view *v, const char *path);
int xsp_nested_span(struct xsp_nested *n, const struct xsp_span *span);
void xsp_nested_clear(struct xsp_nested *n);

#endif
