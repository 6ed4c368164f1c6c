/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/brake/costs.h"

#include <stdlib.h>
#include <string.h>

void xsp_costs_add_new(struct xsp_costs *c, uint32_t tid, uint32_t pid, uint32_t probe, uint64_t ns,
		       uint64_t calls)
{
	const struct xsp_cost first = {.tid = tid, .probe = probe, .pid = pid};
	uint64_t key = xsp_u64_pair(tid, probe);
	struct xsp_cost *row = xsp_tally_row(&c->of, key, &first);

	if (row == NULL)
		return;
	c->last = xsp_tally_index(&c->of, row);
	row->ns += ns;
	row->calls += calls;
}

void xsp_costs_clear(struct xsp_costs *c)
{
	xsp_tally_begin_anew(&c->of);
}

void xsp_costs_free(struct xsp_costs *c)
{
	xsp_tally_free(&c->of);
}
