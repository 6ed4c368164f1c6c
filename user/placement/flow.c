/* SPDX-License-Identifier: BSD-2-Clause */
#include "placement/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"

int xsp_flow_init(struct xsp_flow *f, size_t most)
{
	*f = (struct xsp_flow){
		.head = calloc(most, sizeof(*f->head)),
		.level = calloc(most, sizeof(*f->level)),
		.iter = calloc(most, sizeof(*f->iter)),
		.queue = calloc(most, sizeof(*f->queue)),
		.nodes = 2,
	};
	return f->head && f->level && f->iter && f->queue ? 0 : -ENOMEM;
}

void xsp_flow_clear(struct xsp_flow *f)
{
	free(f->head);
	free(f->level);
	free(f->iter);
	free(f->queue);
	free(f->arcs);
}

uint32_t xsp_flow_nodes(struct xsp_flow *f, uint32_t count)
{
	f->nodes += count;
	return f->nodes - count;
}

int xsp_flow_add(struct xsp_flow *f, uint32_t from, uint32_t to, int64_t room, uint32_t insn,
		 unsigned how)
{
	if (xsp_grow(&f->arcs, &f->arc_capacity, f->arc_count + 2) < 0)
		return -ENOMEM;
	f->arcs[f->arc_count++] = (struct xsp_flow_arc){.to = to,
							.next = f->head[from],
							.room = room,
							.insn = insn,
							.how = (uint8_t)how,
							.forward = true};
	f->head[from] = (uint32_t)f->arc_count;
	/* the way back is free: the cut would have to sever it if the far side were not closed */
	f->arcs[f->arc_count++] = (struct xsp_flow_arc){
		.to = from, .next = f->head[to], .room = XSP_FLOW_NEVER, .insn = UINT32_MAX};
	f->head[to] = (uint32_t)f->arc_count;
	return 0;
}

static bool find_levels(struct xsp_flow *f)
{
	uint32_t first = 0, last = 0;

	memset(f->level, 0, f->nodes * sizeof(*f->level));
	f->level[0] = 1;
	f->queue[last++] = 0;
	while (first < last) {
		uint32_t at = f->queue[first++];

		for (uint32_t a = f->head[at]; a; a = f->arcs[a - 1].next) {
			const struct xsp_flow_arc *arc = &f->arcs[a - 1];

			if (arc->room <= 0 || f->level[arc->to])
				continue;
			f->level[arc->to] = f->level[at] + 1;
			f->queue[last++] = arc->to;
		}
	}
	return f->level[1] != 0;
}

/* Pushes along one shortest path; 0: there is none left. `path` is in f->queue. */
static int64_t augment(struct xsp_flow *f)
{
	uint32_t *path = f->queue, depth = 0, at = 0;

	while (at != 1) {
		uint32_t a = f->iter[at];

		while (a && (f->arcs[a - 1].room <= 0 ||
			     f->level[f->arcs[a - 1].to] != f->level[at] + 1))
			a = f->arcs[a - 1].next;
		f->iter[at] = a;
		if (a) {
			path[depth++] = a;
			at = f->arcs[a - 1].to;
			continue;
		}
		if (!depth)
			return 0;
		f->level[at] = 0;
		depth--;
		at = f->arcs[(path[depth] - 1) ^ 1].to;
	}
	int64_t most = XSP_FLOW_NEVER;
	for (uint32_t k = 0; k < depth; k++) {
		if (f->arcs[path[k] - 1].room < most)
			most = f->arcs[path[k] - 1].room;
	}
	for (uint32_t k = 0; k < depth; k++) {
		f->arcs[path[k] - 1].room -= most;
		f->arcs[(path[k] - 1) ^ 1].room += most;
	}
	return most;
}

/* Sets level[n] = 1 for what can still reach the sink: the far side of the latest cut. */
static void find_far_side(struct xsp_flow *f)
{
	uint32_t first = 0, last = 0;

	memset(f->level, 0, f->nodes * sizeof(*f->level));
	f->level[1] = 1;
	f->queue[last++] = 1;
	while (first < last) {
		uint32_t at = f->queue[first++];

		for (uint32_t a = f->head[at]; a; a = f->arcs[a - 1].next) {
			uint32_t from = f->arcs[a - 1].to;

			if (f->level[from] || f->arcs[(a - 1) ^ 1].room <= 0)
				continue;
			f->level[from] = 1;
			f->queue[last++] = from;
		}
	}
}

void xsp_flow_run(struct xsp_flow *f)
{
	while (find_levels(f)) {
		memcpy(f->iter, f->head, f->nodes * sizeof(*f->iter));
		while (augment(f) > 0)
			;
	}
	find_far_side(f);
}

bool xsp_flow_next(const struct xsp_flow *f, uint32_t *node, uint32_t *arc)
{
	bool begins = *arc == 0;

	for (; *node < f->nodes; ++*node, begins = true) {
		if (f->level[*node])
			continue;
		*arc = begins ? f->head[*node] : f->arcs[*arc - 1].next;
		for (; *arc; *arc = f->arcs[*arc - 1].next)
			if (f->arcs[*arc - 1].forward && f->level[f->arcs[*arc - 1].to])
				return true;
	}
	return false;
}
