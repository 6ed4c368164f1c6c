/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cut.c - the exit sites: the cheapest set that every way out crosses exactly once, with no call
 * after it.
 *
 * 1. The region: instructions from which the return is certain - no call, no loop, no path that
 * ends elsewhere - and at most TAIL_MAX instructions away. It is closed: the successors of an
 * instruction in the region are in the region.
 * 2. A minimum cut between the edges that lead into the region and the instructions that leave. The
 * price of an instruction is that of its class times the number of times it probably runs. The two
 * edges of a conditional jump can be cut separately, as the event's condition distinguishes them.
 * Arcs of infinite capacity against the flow keep the far side closed, so that no path crosses
 * twice.
 * 3. Among the cheapest cuts, the one nearest to the return.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/flow.h"
#include "placement/placement_private.h"

#define TAIL_MAX 40 /* most instructions after an exit site */
#define POINT_MAX 16 /* the same for a span of one hit */
#define NO_SITE (INT64_C(1) << 40) /* it must leave here, but no site is possible */
#define SCALE 64.0

enum crossing { CROSS_ANY, CROSS_FALL, CROSS_TAKEN };

/* What is known of the stack pointer before an instruction; each holds for more paths than the one
 * before. */
enum depth_known { DEPTH_UNSEEN, DEPTH_CERTAIN, DEPTH_BEHIND_CALLS, DEPTH_UNKNOWN };

struct depth {
	int64_t down; /* entry sp - sp */
	uint8_t known; /* enum depth_known */
};

struct cut {
	struct xsp_graph *g;
	const struct xsp_site_costs *costs;
	uint32_t entry; /* the instruction of the entry site, which is no exit */
	/* by instruction: 1 + most instructions to the way out; 0: not in the region */
	uint16_t *far;
	double *often; /* expected number of runs in a call */
	uint32_t *node; /* by instruction: its node, or UINT32_MAX */
	uint32_t *work, *stack; /* scratch */
	uint8_t *mark; /* scratch */
	uint8_t *result; /* by instruction of the region: where the result is before it runs */
	struct depth *depth; /* by instruction */
	bool lifted; /* at a way out, the stack pointer may differ from that at entry */
	bool described; /* then: .eh_frame says where it is */
	bool pushes_returns; /* it may return to an address that it has pushed */
	struct xsp_flow flow; /* after source and sink: in and out of each instruction */
};

/* ---- 1. the region --------------------------------------------------------------- */

static bool quick(const struct xsp_insn *i)
{
	return !(i->flags & XSP_INSN_LOST) &&
	       (i->kind == XSP_INSN_PLAIN || i->kind == XSP_INSN_NOP || i->kind == XSP_INSN_JUMP ||
		i->kind == XSP_INSN_BRANCH || i->kind == XSP_INSN_FORK ||
		i->kind == XSP_INSN_INDIRECT);
}

/* Where the result is before an instruction, from where it is after it: all successors must
 * agree. */
static uint8_t result_before(struct cut *c, uint32_t at)
{
	const struct xsp_insn *i = &c->g->insns[at];
	uint8_t after = XSP_RESULT_NONE;

	if (!c->g->at_return)
		return XSP_RESULT_RETURN;
	if (xsp_insn_leaves(i))
		return i->kind == XSP_INSN_RETURN ? XSP_RESULT_RETURN : XSP_RESULT_NONE;
	if (xsp_insn_leaves_taken(i))
		return XSP_RESULT_NONE;
	for (uint32_t e = i->succ; e; e = c->g->edges[e - 1].next_succ) {
		uint8_t next = c->result[c->g->edges[e - 1].to];

		if (e != i->succ && next != after)
			return XSP_RESULT_NONE;
		after = next;
	}
	return c->g->result(c->g, at, after);
}

/* Adds an instruction to the region if all its successors are in it. */
static bool try_region(struct cut *c, uint32_t at)
{
	const struct xsp_insn *i = &c->g->insns[at];
	uint16_t most = xsp_insn_leaves_taken(i) ? 1 : 0;

	if (c->far[at] || !quick(i) || !(i->flags & XSP_INSN_SEEN))
		return false;
	if (!i->succ)
		return false;
	for (uint32_t e = i->succ; e; e = c->g->edges[e - 1].next_succ) {
		uint16_t far = c->far[c->g->edges[e - 1].to];

		if (!far || far > TAIL_MAX)
			return false;
		if (far > most)
			most = far;
	}
	/* one side leaves the function */
	if (i->kind == XSP_INSN_BRANCH && !(i->flags & XSP_INSN_LEAVES) &&
	    !c->g->edges[i->succ - 1].next_succ)
		return false;
	c->far[at] = (uint16_t)(most + 1);
	c->result[at] = result_before(c, at);
	return true;
}

static void find_region(struct cut *c)
{
	struct xsp_graph *g = c->g;
	uint32_t depth = 0;

	for (uint32_t i = 0; i < g->count; i++) {
		if (!xsp_insn_leaves(&g->insns[i]) || !(g->insns[i].flags & XSP_INSN_SEEN))
			continue;
		c->far[i] = 1;
		c->result[i] = result_before(c, i);
		c->work[depth++] = i;
	}
	if (g->hidden || (g->at_return && !g->result))
		return; /* hidden: unseen jumps may lead past any earlier site */
	for (uint32_t i = 0; i < g->count; i++) {
		/* the jump may go to the next instruction: two edges with the same end */
		if (xsp_insn_leaves_taken(&g->insns[i]) && try_region(c, i))
			c->work[depth++] = i;
	}
	while (depth) {
		uint32_t at = c->work[--depth];

		for (uint32_t e = g->insns[at].pred; e; e = g->edges[e - 1].next_pred) {
			if (try_region(c, g->edges[e - 1].from))
				c->work[depth++] = g->edges[e - 1].from;
		}
	}
}

/* ---- 2. the network -------------------------------------------------------------- */

/* Is it on the straight line from the start of the function to the entry site? An exit there would
 * come before the entry. */
static bool before_entry(const struct cut *c, uint32_t at)
{
	uint64_t addr = c->g->insns[at].addr;

	return addr >= c->g->entry && addr <= c->g->insns[c->entry].addr;
}

static int64_t price(const struct cut *c, uint32_t at)
{
	const struct xsp_insn *i = &c->g->insns[at];
	double ns = c->costs->ns[i->cls] * c->often[at] * SCALE;

	if (at == c->entry || !(i->flags & XSP_INSN_PROBE) || i->cls == XSP_SITE_NOP5)
		return NO_SITE;
	return ns < (double)NO_SITE / 4 ? (int64_t)ns + 1 : NO_SITE / 4;
}

/* The price of stopping at the instruction itself, whatever path follows. */
static int64_t node_price(const struct cut *c, uint32_t at)
{
	const struct xsp_insn *i = &c->g->insns[at];

	if (xsp_insn_leaves(i)) /* the last chance: it is a way out even if no site is possible */
		return price(c, at);
	/* also those that are single-stepped: what leaves may be refused (notrack jmp, retaa) */
	if (i->kind == XSP_INSN_INDIRECT || i->kind == XSP_INSN_FORK || before_entry(c, at) ||
	    !(i->flags & XSP_INSN_PROBE) || c->result[at] == XSP_RESULT_NONE)
		return XSP_FLOW_NEVER;
	return price(c, at);
}

static int64_t edge_price(const struct cut *c, const struct xsp_edge *e)
{
	const struct xsp_insn *i = &c->g->insns[e->from];

	if (c->g->hidden || i->kind != XSP_INSN_BRANCH || !(i->flags & XSP_INSN_PROBE) ||
	    e->from == c->entry || i->cls == XSP_SITE_SINGLESTEP)
		return XSP_FLOW_NEVER;
	/* both edges of a jump in the region may become one site */
	if (c->result[e->to] == XSP_RESULT_NONE ||
	    (c->far[e->from] && c->result[e->from] == XSP_RESULT_NONE))
		return XSP_FLOW_NEVER;
	return price(c, e->from);
}

static int connect_node(struct cut *c, uint32_t at)
{
	struct xsp_graph *g = c->g;
	const struct xsp_insn *i = &g->insns[at];
	uint32_t in = c->node[at], out = in + 1;
	int error = xsp_flow_add(&c->flow, in, out, node_price(c, at), at, CROSS_ANY);

	if (!error && xsp_insn_leaves(i))
		error = xsp_flow_add(&c->flow, out, 1, XSP_FLOW_NEVER, UINT32_MAX, CROSS_ANY);
	if (!error && at == xsp_graph_find(g, g->entry))
		error = xsp_flow_add(&c->flow, 0, in, XSP_FLOW_NEVER, UINT32_MAX, CROSS_ANY);
	if (!error && (i->flags & XSP_INSN_ROOT))
		error = xsp_flow_add(&c->flow, 0, in, XSP_FLOW_NEVER, UINT32_MAX, CROSS_ANY);
	for (uint32_t e = i->pred; !error && e; e = g->edges[e - 1].next_pred) {
		const struct xsp_edge *edge = &g->edges[e - 1];
		uint32_t from = c->far[edge->from] ? c->node[edge->from] + 1 : 0;

		if (!(g->insns[edge->from].flags & XSP_INSN_SEEN))
			continue;
		error = xsp_flow_add(&c->flow, from, in, edge_price(c, edge), edge->from,
				     edge->kind == XSP_EDGE_NEXT ? CROSS_FALL : CROSS_TAKEN);
	}
	return error;
}

static int build_network(struct cut *c)
{
	struct xsp_graph *g = c->g;
	int error = 0;

	for (uint32_t i = 0; i < g->count; i++)
		c->node[i] = c->far[i] ? xsp_flow_nodes(&c->flow, 2) : UINT32_MAX;
	for (uint32_t i = 0; !error && i < g->count; i++) {
		const struct xsp_insn *x = &g->insns[i];

		if (c->far[i])
			error = connect_node(c, i);
		if (error || !xsp_insn_leaves_taken(x) || !(x->flags & XSP_INSN_SEEN))
			continue;
		error = xsp_flow_add(&c->flow, c->far[i] ? c->node[i] + 1 : 0, 1, price(c, i), i,
				     CROSS_TAKEN);
	}
	return error;
}

/* ---- 3. the sites ---------------------------------------------------------------- */

/* Do all ways out after `at` leave by tail call? */
static bool all_tail(struct cut *c, uint32_t at, enum crossing how)
{
	struct xsp_graph *g = c->g;
	uint32_t depth = 0, *stack = c->stack, reset = 0, *touched = c->work;
	bool tail = true;

	if (how == CROSS_TAKEN && xsp_insn_leaves_taken(&g->insns[at]))
		return true;
	for (bool first = true; first || depth; first = false) {
		uint32_t from = first ? at : stack[--depth];

		tail &= g->insns[from].kind != XSP_INSN_RETURN;
		for (uint32_t e = g->insns[from].succ; e; e = g->edges[e - 1].next_succ) {
			uint32_t to = g->edges[e - 1].to;

			if (first && how != CROSS_ANY &&
			    (g->edges[e - 1].kind == XSP_EDGE_NEXT) != (how == CROSS_FALL))
				continue;
			if (c->mark[to] & 8)
				continue;
			c->mark[to] |= 8;
			touched[reset++] = to;
			stack[depth++] = to;
		}
	}
	while (reset)
		c->mark[touched[--reset]] &= (uint8_t)~8;
	return tail;
}

/*
 * The entry sp - sp at the site, summed along one way out. At its end, the stack pointer is what it
 * was at entry, whatever .eh_frame says (for assembly often nothing, or wrong). False: an
 * instruction on the way sets it in a way that cannot be followed.
 */
static bool add_up(struct cut *c, uint32_t at, enum crossing how, int64_t *delta)
{
	struct xsp_graph *g = c->g;
	bool first = true;

	*delta = 0;
	if (how == CROSS_TAKEN && xsp_insn_leaves_taken(&g->insns[at]))
		return true;
	for (unsigned n = 0; n <= TAIL_MAX + 1; n++, first = false) {
		const struct xsp_insn *i = &g->insns[at];
		uint32_t next = UINT32_MAX;

		if (xsp_insn_leaves(i) && !(i->flags & XSP_INSN_FALLS))
			return true;
		if (i->sp_change == XSP_SP_UNKNOWN)
			return false;
		*delta += i->sp_change;
		if (xsp_insn_leaves(i))
			return true;
		for (uint32_t e = i->succ; e; e = g->edges[e - 1].next_succ) {
			if (first && how != CROSS_ANY &&
			    (g->edges[e - 1].kind == XSP_EDGE_NEXT) != (how == CROSS_FALL))
				continue;
			next = g->edges[e - 1].to;
		}
		if (next == UINT32_MAX) /* a conditional tail call after the site */
			return xsp_insn_leaves_taken(i);
		at = next;
	}
	return false;
}

/* Merges what is known from another path; true: less is known than before. */
static bool join_depth(struct depth *to, struct depth from)
{
	uint8_t known = to->known > from.known ? to->known : from.known;

	if (to->known == DEPTH_UNSEEN) {
		*to = from;
		return true;
	}
	if (to->down != from.down)
		known = DEPTH_UNKNOWN;
	if (known == to->known)
		return false;
	to->known = known;
	return true;
}

/* The position of the stack pointer relative to the entry, up to a call whatever .eh_frame says. A
 * call is assumed to leave it unchanged; functions of Swift and V8 pop their arguments. */
static void find_depths(struct cut *c)
{
	struct xsp_graph *g = c->g;
	uint32_t waiting = 0, *stack = c->work;

	for (uint32_t i = 0; i < g->count; i++) {
		const bool entry = g->insns[i].addr == g->entry;
		if (!entry && !(g->insns[i].flags & XSP_INSN_ROOT))
			continue;
		c->depth[i].known = entry ? DEPTH_CERTAIN : DEPTH_UNKNOWN;
		c->mark[i] |= 16;
		stack[waiting++] = i;
	}
	while (waiting) {
		const uint32_t at = stack[--waiting];
		const struct xsp_insn *i = &g->insns[at];
		struct depth behind = c->depth[at];

		c->mark[at] &= (uint8_t)~16;
		if (i->kind == XSP_INSN_CALL && behind.known < DEPTH_BEHIND_CALLS)
			behind.known = DEPTH_BEHIND_CALLS;
		if (i->sp_change == XSP_SP_UNKNOWN)
			behind.known = DEPTH_UNKNOWN;
		else
			behind.down -= i->sp_change;
		for (uint32_t e = i->succ; e; e = g->edges[e - 1].next_succ) {
			const uint32_t to = g->edges[e - 1].to;
			if (!join_depth(&c->depth[to], behind) || (c->mark[to] & 16))
				continue;
			c->mark[to] |= 16;
			stack[waiting++] = to;
		}
	}
}

/*
 * The function pops its return address before it can branch. V8's ContinueTo... builtins discard a
 * frame of their caller, and CallApiGetter puts arguments above the address. Then only .eh_frame
 * knows the stack pointer at a way out (vfork, which pushes it again, has one).
 */
static bool lifts_stack(struct xsp_graph *g, bool *described)
{
	uint32_t at = xsp_graph_find(g, g->entry);
	int64_t above = 0;
	uint64_t last = 0;

	while (at != UINT32_MAX && above <= 0) {
		const struct xsp_insn *i = &g->insns[at];

		if ((i->kind != XSP_INSN_PLAIN && i->kind != XSP_INSN_NOP) || !i->succ ||
		    i->sp_change == XSP_SP_UNKNOWN)
			return false;
		above += i->sp_change;
		last = i->addr;
		at = g->edges[i->succ - 1].to;
	}
	/* it says nothing of the arguments that Swift's pop */
	*described = above > 0 && (xsp_graph_at_entry_sp(g, last) != 1 ||
				   xsp_graph_at_entry_sp(g, g->insns[at].addr) != 1);
	return above > 0;
}

/* Where the result is at a site that counts when control leaves it by `how`. */
static uint8_t result_behind(const struct cut *c, uint32_t at, enum crossing how)
{
	const struct xsp_graph *g = c->g;

	if (!g->at_return)
		return XSP_RESULT_RETURN;
	for (uint32_t e = g->insns[at].succ; e && how != CROSS_ANY; e = g->edges[e - 1].next_succ)
		if ((g->edges[e - 1].kind == XSP_EDGE_NEXT) == (how == CROSS_FALL))
			return c->result[g->edges[e - 1].to];
	return c->far[at] ? c->result[at] : XSP_RESULT_NONE;
}

static void describe(struct cut *c, uint32_t at, enum crossing how, struct xsp_site *s)
{
	const struct xsp_insn *i = &c->g->insns[at];
	const struct depth *d = &c->depth[at];

	*s = (struct xsp_site){.addr = i->addr,
			       .cls = (enum xsp_site_class)i->cls,
			       .role = XSP_ROLE_EXIT,
			       .cond = how == CROSS_ANY ? 0 : i->cond,
			       .taken = how == CROSS_TAKEN,
			       .tail = all_tail(c, at, how)};
	s->result = result_behind(c, at, how);
	s->exact = !c->lifted && add_up(c, at, how, &s->delta);
	if (!c->lifted && !c->g->hidden && d->known == DEPTH_CERTAIN && d->down >= 0) {
		s->exact = true;
		s->delta = d->down;
		return;
	}
	/* Swift's asynchronous functions jump on with fewer or more arguments on the stack */
	if (s->exact && s->tail && d->down != s->delta &&
	    (d->known == DEPTH_CERTAIN || d->known == DEPTH_BEHIND_CALLS)) {
		s->exact = false;
		s->delta = 0;
		return;
	}
	if (s->exact && s->delta >= 0)
		return;
	if (s->exact) { /* V8's builtins pop the address and push it again elsewhere */
		xsp_graph_incomplete(c->g, "a return to what the function has pushed");
		c->pushes_returns = true;
		s->exact = false;
		s->delta = 0;
		return;
	}
	s->exact = (!c->lifted || c->described) &&
		   xsp_module_entry_sp_rule(c->g->m, i->addr, &s->frame_pointer, &s->delta) == 0;
	if (!s->exact) {
		s->frame_pointer = false;
		s->delta = 0;
		if (c->lifted && c->described)
			xsp_graph_incomplete(c->g, "the return address is taken off the stack");
	}
}

static int add_site(struct cut *c, uint32_t at, enum crossing how, struct xsp_placement *out)
{
	const struct xsp_insn *i = &c->g->insns[at];

	if (at == c->entry && xsp_insn_leaves(i)) {
		out->sites[0].role = XSP_ROLE_BOTH;
		out->sites[0].tail = i->kind != XSP_INSN_RETURN;
		return 0;
	}
	if (!(i->flags & XSP_INSN_PROBE) || at == c->entry) {
		xsp_graph_incomplete(c->g, "the kernel takes no uprobe on a way out");
		return 0;
	}
	/* both edges of a jump: it counts whichever way it goes */
	for (size_t k = 1; k < out->count; k++) {
		if (out->sites[k].addr != i->addr)
			continue;
		if (out->sites[k].taken != (how == CROSS_TAKEN)) {
			describe(c, at, CROSS_ANY, &out->sites[k]);
		}
		return 0;
	}
	if (out->count == XSP_MAX_SITES) {
		xsp_graph_incomplete(c->g, "more exit sites than a function may have");
		return 0;
	}
	describe(c, at, how, &out->sites[out->count++]);
	return 0;
}

static int collect(struct cut *c, struct xsp_placement *out)
{
	int error = 0;

	for (uint32_t n = 0, a = 0; !error && xsp_flow_next(&c->flow, &n, &a);) {
		const struct xsp_flow_arc *arc = &c->flow.arcs[a - 1];

		if (arc->insn != UINT32_MAX)
			error = add_site(c, arc->insn, (enum crossing)arc->how, out);
	}
	/* then its other returns may go to such an address as well */
	for (size_t k = 1; c->pushes_returns && !c->g->described && k < out->count; k++) {
		out->sites[k].exact = false;
		out->sites[k].delta = 0;
	}
	return error;
}

/* A short leaf with only single-stepped exits: one hit that says both entry and exit costs a
 * fraction. The time between two hits would be less than either takes. */
static bool is_point(struct cut *c, const struct xsp_placement *out)
{
	uint32_t start = xsp_graph_find(c->g, c->g->entry);

	if (c->g->at_return || !c->far[start] || c->far[start] > POINT_MAX || out->count < 2 ||
	    c->g->incomplete)
		return false;
	for (size_t k = 1; k < out->count; k++) {
		if (out->sites[k].cls == XSP_SITE_SINGLESTEP)
			return true;
	}
	return false;
}

static int allocate(struct cut *c)
{
	size_t n = (size_t)c->g->count + 1;

	c->far = calloc(n, sizeof(*c->far));
	c->often = calloc(n, sizeof(*c->often));
	c->node = calloc(n, sizeof(*c->node));
	c->work = calloc(n, sizeof(*c->work));
	c->stack = calloc(n, sizeof(*c->stack));
	c->mark = calloc(n, sizeof(*c->mark));
	c->result = calloc(n, sizeof(*c->result));
	c->depth = calloc(n, sizeof(*c->depth));
	return c->far && c->often && c->node && c->work && c->stack && c->mark && c->result &&
			       c->depth
		       ? xsp_flow_init(&c->flow, 2 * n + 2)
		       : -ENOMEM;
}

static void release(struct cut *c)
{
	xsp_flow_clear(&c->flow);
	free(c->far);
	free(c->often);
	free(c->node);
	free(c->work);
	free(c->stack);
	free(c->mark);
	free(c->result);
	free(c->depth);
}

int xsp_cut(struct xsp_graph *g, uint32_t entry, const struct xsp_site_costs *costs,
	    struct xsp_placement *out)
{
	struct cut c = {.g = g, .costs = costs, .entry = entry};
	int error = allocate(&c);

	c.lifted = lifts_stack(g, &c.described);
	if (!error)
		error = xsp_graph_estimate(g, c.often);
	if (!error) {
		find_region(&c);
		error = build_network(&c);
	}
	if (!error && c.flow.arcs != NULL) { /* none: there is no way out */
		xsp_flow_run(&c.flow);
		find_depths(&c);
		error = collect(&c, out);
	}
	if (!error && is_point(&c, out)) {
		out->count = 1;
		out->sites[0].role = XSP_ROLE_BOTH;
		out->sites[0].tail = all_tail(&c, entry, CROSS_ANY);
	}
	release(&c);
	return error;
}
