/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/rows/nested.h"

#include <errno.h>
#include <stdlib.h>

#include "timeline/cut.h"

int xsp_nested_init(struct xsp_nested *n, struct xsp_view *v, const char *path)
{
	int rc = xsp_thread_rows_new(v, &n->rows);

	if (rc == 0)
		rc = xsp_categories_init(&n->categories, v);
	return rc == 0 ? xsp_ordered_new(path, &n->spans) : rc;
}

void xsp_nested_clear(struct xsp_nested *n)
{
	xsp_thread_rows_free(n->rows);
	xsp_ordered_free(n->spans);
	xsp_categories_clear(&n->categories);
	xsp_tally_free(&n->kinds);
}

/* Its number; negative: out of memory. */
static long kind_of(struct xsp_nested *n, const struct xsp_span *span)
{
	const enum xsp_ending ending = xsp_ending_of(span);
	const struct xsp_span_kind kind = {
		.name = span->name,
		.category = xsp_category_of(&n->categories, span),
		.ending =
			ending == XSP_UNFINISHED || ending == XSP_EXIT_LOST ? ending : XSP_RETURNED,
		.cut = n->cuts && (span->flags & XSP_SPAN_CUT) != 0,
	};
	const uint64_t key = (uint64_t)kind.name << 32 | (uint64_t)kind.category << 16 |
			     (uint64_t)kind.cut << 8 | kind.ending;
	const struct xsp_span_kind *known = xsp_tally_row(&n->kinds, key, &kind);

	return known != NULL ? (long)xsp_tally_index(&n->kinds, known) : -ENOMEM;
}

int xsp_nested_span(struct xsp_nested *n, const struct xsp_span *span)
{
	const struct xsp_thread_row *row = xsp_thread_rows_get(n->rows, span);
	const long kind = row != NULL ? kind_of(n, span) : -ENOMEM;
	const struct xsp_ordered_span o = {
		.start_ns = span->start_ns,
		.end_ns = span->end_ns,
		.name = (uint32_t)kind,
		.depth = span->depth,
	};

	return kind < 0 ? -ENOMEM
			: xsp_ordered_add(n->spans, row->index, &o, xsp_span_passed(span));
}
