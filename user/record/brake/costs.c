/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/brake/costs.h"

#include <stdlib.h>
#include <string.h>

void xsp_costs_add_new(struct xsp_costs *c, uint32_t tid, uint32_t pid, uint32_t probe, uint64_t ns,
		       uint64_t calls)
{
	const struct xsp_cost first = {.tid = tid, .probe = probe, .pid = pid};
	uint64_t key = xsp_u64_pair(tid, probe);
	struct xsp_cost *row =
		xsp_u64map_element(&c->index, key, &c->rows, &c->room, &c->count, &first);

	if (row == NULL)
		return;
	c->last = (size_t)(row - c->rows);
	row->ns += ns;
	row->calls += calls;
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
