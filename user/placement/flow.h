/* SPDX-License-Identifier: BSD-2-Clause */
/* flow.h - a minimum cut between node 0, the source, and node 1, the sink (Dinic's algorithm). */
#ifndef XSP_PLACEMENT_FLOW_H
#define XSP_PLACEMENT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XSP_FLOW_NEVER (INT64_C(1) << 60) /* the room of an arc that is never cut */

struct xsp_flow_arc {
	uint32_t to;
	uint32_t next; /* index + 1 */
	int64_t room;
	uint32_t insn; /* of the caller, as `how` */
	uint8_t how;
	bool forward;
};

struct xsp_flow {
	struct xsp_flow_arc *arcs;
	size_t arc_count, arc_capacity;
	uint32_t *head; /* index + 1 of a node's first arc */
	uint32_t *level;
	uint32_t *iter;
	uint32_t *queue;
	uint32_t nodes;
};

/* For at most `most` nodes. 0 or -ENOMEM; then, too, xsp_flow_clear() frees what there is. */
int xsp_flow_init(struct xsp_flow *f, size_t most);
void xsp_flow_clear(struct xsp_flow *f);
/* Adds `count` nodes; returns the first one. */
uint32_t xsp_flow_nodes(struct xsp_flow *f, uint32_t count);
int xsp_flow_add(struct xsp_flow *f, uint32_t from, uint32_t to, int64_t room, uint32_t insn,
		 unsigned how);
/* Finds the cut that is nearest to the sink. */
void xsp_flow_run(struct xsp_flow *f);
/* The next arc of the cut, by node: *arc is its index + 1. Both are 0 at first. */
bool xsp_flow_next(const struct xsp_flow *f, uint32_t *node, uint32_t *arc);

#endif
