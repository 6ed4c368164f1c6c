/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/rows/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"

void *xsp_tally_add_raw(struct xsp_tally *t, uint64_t key, size_t size, const void *first)
{
	if (t->most > 0 && t->count >= t->most) {
		t->left_out++;
		return NULL;
	}
	if ((t->count >= t->capacity &&
	     xsp_grow_raw(&t->rows, &t->capacity, t->count + 1, size) < 0) ||
	    xsp_u64map_set(&t->index_of, key, (uint32_t)t->count) < 0) {
		t->error = -ENOMEM;
		return NULL;
	}
	return memcpy((char *)t->rows + t->count++ * size, first, size);
}

int xsp_tally_alias_raw(struct xsp_tally *t, uint64_t key, uint32_t index)
{
	if (xsp_u64map_set(&t->index_of, key, index) < 0)
		t->error = -ENOMEM;
	return t->error;
}

void xsp_tally_free_raw(struct xsp_tally *t)
{
	xsp_u64map_free(&t->index_of);
	free(t->rows);
	*t = (struct xsp_tally){.most = t->most};
}

void xsp_tally_begin_anew_raw(struct xsp_tally *t)
{
	xsp_u64map_clear(&t->index_of);
	t->count = 0;
	t->left_out = 0;
}

void xsp_tally_sort_raw(struct xsp_tally *t, size_t size, xsp_order_fn order)
{
	xsp_u64map_free(&t->index_of);
	xsp_sort_raw(t->rows, t->count, size, order);
}
