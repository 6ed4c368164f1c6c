/* SPDX-License-Identifier: BSD-2-Clause */
/* hand_over.h - an agent's records, one after the other, as events: rings.c says when, and of which ring. */
#ifndef XSP_RECORD_RINGS_HAND_OVER_H
#define XSP_RECORD_RINGS_HAND_OVER_H

#include "base/rows/u64map.h"
#include "record/rings/functions.h"
#include "record/rings/memory.h"
#include "record/rings/names.h"
#include "record/rings/node_names.h"
#include "record/rings/open_ranges.h"
#include "record/rings/placed.h"
#include "record/rings/rings.h"
#include "record/drain/stacks.h"
#include "record/rings/tsc.h"

/* Of one ring. */
struct reader {
	uint32_t ns_tid, tid; /* tid 0: not known yet */
	uint64_t tail, mark, lost;
	uint64_t last; /* the latest record's time, in the agent's clock */
	uint64_t last_ns; /* of the latest event that was handed over */
	struct xsp_node_text text; /* of the entry that follows */
	uint64_t stack; /* likewise, its place + 1; 0: it has none */
	struct xsp_open_nodes nodes; /* that callbacks tell of */
	uint64_t
		since_ns; /* when it began to be stuck, or its thread to be unknown; 0: it did not */
};

struct agent {
	pid_t pid;
	struct xsp_ring_memory *memory;
	struct reader ring[XSP_RINGS_COUNT];
	struct xsp_ring_functions functions;
	struct xsp_open_ranges open;
	struct xsp_ring_names names; /* of regions */
	struct xsp_ring_stacks stacks;
	uint64_t homeless, refused;
	uint64_t taken; /* rings whose threads are all known */
	bool tsc;
};

struct xsp_agent_rings {
	struct xsp_agent_rings_options options;
	int (*put)(void *ctx, const struct xsp_event *e);
	void *put_ctx;
	struct agent **agents;
	size_t count, room;
	struct xsp_u64map threads; /* process, its own id → id in the root namespace */
	struct xsp_u64map by_tid; /* id → index of the agent * XSP_RINGS_COUNT + ring */
	struct xsp_node_names names;
	struct xsp_tsc tsc;
	uint64_t from_ns, to_ns, now_ns, asked_ns;
	uint64_t marked_ns, turn_ns; /* the last mark, and the time since the one before */
	uint64_t fullest; /* records that a ring had at the last mark, at most */
	struct xsp_agent_rings_totals totals;
};

/* Passes over all that is in the ring: nobody knows whose it is, or what. */
void xsp_ring_pass_over(struct xsp_agent_rings *a, struct agent *g, unsigned i, uint64_t head);
/* Has it been waited for so long? Counted from the first time that this is asked. */
bool xsp_ring_has_waited(const struct xsp_agent_rings *a, struct reader *r, uint64_t most_ns);
/* Ids and places of records are 64 bits that only rise: what jumps has been forged. */
bool xsp_ring_is_plausible(const struct reader *r, uint64_t head);
/* The records up to `head` that are there, and are from before `before_ns`. `last`: nobody will write what is not there. 0, or what
 * put() returned. */
int xsp_ring_hand_over(struct xsp_agent_rings *a, struct agent *g, unsigned i, uint64_t head,
		       uint64_t before_ns, bool last);

#endif
