/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/brake/costs.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void xsp_costs_add_new(struct xsp_costs *c, uint32_t tid, uint32_t probe, uint64_t ns,
		       uint64_t calls)
{
	uint64_t key = (uint64_t)tid << 32 | probe;
	const uint32_t *at = xsp_u64map_get(&c->index, key);

	if (at == NULL) {
		if (xsp_grow(&c->rows, &c->room, c->count + 1) < 0 ||
		    xsp_u64map_set(&c->index, key, (uint32_t)c->count) < 0)
			return;
		c->rows[c->count] = (struct xsp_cost){.tid = tid, .probe = probe};
		c->last = c->count++;
	} else {
		c->last = *at;
	}
	c->rows[c->last].ns += ns;
	c->rows[c->last].calls += calls;
}

void xsp_costs_clear(struct xsp_costs *c)
{
	c->count = 0;
	if (c->index.slots != NULL)
		memset(c->index.slots, 0, (c->index.mask + 1) * sizeof(*c->index.slots));
	c->index.count = 0;
}

void xsp_costs_free(struct xsp_costs *c)
{
	xsp_u64map_free(&c->index);
	free(c->rows);
	*c = (struct xsp_costs){0};
}
