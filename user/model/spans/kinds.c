/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/spans/kinds.h"

#include <errno.h>
#include <stdlib.h>

#include "base/grow.h"

int xsp_span_kinds_init(struct xsp_span_kinds *f, const struct xsp_view *v)
{
	return xsp_categories_init(&f->categories, v);
}

int xsp_span_kind_of(struct xsp_span_kinds *f, const struct xsp_span *span, uint32_t *number)
{
	const enum xsp_ending ending = xsp_ending_of(span);
	const struct xsp_span_kind frame = {
		.name = span->name,
		.category = xsp_category_of(&f->categories, span),
		.ending =
			ending == XSP_UNFINISHED || ending == XSP_EXIT_LOST ? ending : XSP_RETURNED,
		.cut = f->cuts && (span->flags & XSP_SPAN_CUT) != 0,
	};
	const uint64_t key = (uint64_t)frame.name << 32 | (uint64_t)frame.category << 16 |
			     (uint64_t)frame.cut << 8 | frame.ending;
	const uint32_t *known = xsp_u64map_get(&f->index, key);

	if (known != NULL) {
		*number = *known;
		return 0;
	}
	*number = (uint32_t)f->count;
	if (xsp_grow(&f->list, &f->capacity, f->count + 1) < 0 ||
	    xsp_u64map_set(&f->index, key, *number) < 0)
		return -ENOMEM;
	f->list[f->count++] = frame;
	return 0;
}

void xsp_span_kinds_free(struct xsp_span_kinds *f)
{
	xsp_categories_clear(&f->categories);
	xsp_u64map_free(&f->index);
	free(f->list);
}
