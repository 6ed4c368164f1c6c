/* SPDX-License-Identifier: BSD-2-Clause */
/* often.c - how often each instruction of a function probably runs in a call of it. */
#include <errno.h>
#include <stdlib.h>

#include "placement/placement_private.h"

/* How often a loop is assumed to run. It is more than the price of a single-stepped hit divided by
 * that of an emulated one on any known machine. A site after the loop costs that once; one in the
 * loop may be hit any number of times. */
#define LOOP_FACTOR 64
#define UNLIKELY 0.02

struct often {
	struct xsp_graph *g;
	double *often;
	uint8_t *mark; /* 1: on the depth-first stack, 2: done, | 4: can reach a way out */
	uint32_t *order, *stack, *edge;
	size_t ordered;
	int32_t *loops;
};

/* Appends to the order, last first. A loop is assumed to be what lies between the target and the
 * source of a backward edge. */
static void depth_first(struct often *c, uint32_t start)
{
	struct xsp_graph *g = c->g;
	uint32_t *stack = c->stack, *edge = c->edge, depth = 0;

	if (c->mark[start])
		return;
	c->mark[start] = 1;
	stack[depth] = start;
	edge[depth++] = g->insns[start].succ;
	while (depth) {
		uint32_t at = stack[depth - 1], e = edge[depth - 1], to;

		if (!e) {
			c->mark[at] = 2;
			c->order[c->ordered++] = at;
			depth--;
			continue;
		}
		edge[depth - 1] = g->edges[e - 1].next_succ;
		to = g->edges[e - 1].to;
		if (to <= at && c->mark[to] == 1) {
			c->loops[to]++;
			c->loops[at + 1]--;
		}
		if (c->mark[to])
			continue;
		c->mark[to] = 1;
		stack[depth] = to;
		edge[depth++] = g->insns[to].succ;
	}
}

/* Sets mark |= 4 for all that can reach a way out. */
static void mark_returning(struct often *c)
{
	struct xsp_graph *g = c->g;
	uint32_t depth = 0, *stack = c->stack;

	for (uint32_t i = 0; i < g->count; i++) {
		if (!xsp_insn_leaves(&g->insns[i]) && !xsp_insn_leaves_taken(&g->insns[i]))
			continue;
		c->mark[i] |= 4;
		stack[depth++] = i;
	}
	while (depth) {
		uint32_t at = stack[--depth];

		for (uint32_t e = g->insns[at].pred; e; e = g->edges[e - 1].next_pred) {
			uint32_t from = g->edges[e - 1].from;

			if (c->mark[from] & 4)
				continue;
			c->mark[from] |= 4;
			stack[depth++] = from;
		}
	}
}

static double weight(const struct often *c, const struct xsp_insn *from, uint32_t to)
{
	const struct xsp_insn *i = &c->g->insns[to];

	if (!(c->mark[to] & 4))
		return UNLIKELY * UNLIKELY;
	return (i->flags & XSP_INSN_COLD) && !(from->flags & XSP_INSN_COLD) ? UNLIKELY : 1.0;
}

static void spread(struct often *c, uint32_t at)
{
	const struct xsp_insn *i = &c->g->insns[at];
	double all = xsp_insn_leaves_taken(i) ? 1.0 : 0.0;

	for (uint32_t e = i->succ; e; e = c->g->edges[e - 1].next_succ)
		all += weight(c, i, c->g->edges[e - 1].to);
	for (uint32_t e = i->succ; e; e = c->g->edges[e - 1].next_succ) {
		uint32_t to = c->g->edges[e - 1].to;

		c->often[to] += c->often[at] * weight(c, i, to) / all;
	}
}

static void estimate(struct often *c)
{
	struct xsp_graph *g = c->g;
	const uint32_t start = xsp_graph_find(g, g->entry);
	int32_t inside = 0;

	depth_first(c, start);
	for (uint32_t i = 0; i < g->count; i++) {
		if (!(g->insns[i].flags & XSP_INSN_ROOT))
			continue;
		depth_first(c, i);
		c->often[i] = UNLIKELY;
	}
	mark_returning(c);
	c->often[start] = 1;
	/* Reverse finishing order. A back edge only adds to what is done: the loop factor includes
	 * its share. */
	while (c->ordered)
		spread(c, c->order[--c->ordered]);
	for (uint32_t i = 0; i < g->count; i++) {
		inside += c->loops[i];
		for (int32_t n = 0; n < inside && n < 4; n++)
			c->often[i] *= LOOP_FACTOR;
	}
}

int xsp_graph_estimate(struct xsp_graph *g, double *often)
{
	const size_t n = (size_t)g->count + 1;
	struct often c = {.g = g, .often = often};

	c.mark = calloc(n, sizeof(*c.mark));
	c.order = calloc(3 * n, sizeof(*c.order));
	c.loops = calloc(n, sizeof(*c.loops));
	const int error = c.mark && c.order && c.loops ? 0 : -ENOMEM;
	if (!error) {
		c.stack = c.order + n;
		c.edge = c.stack + n;
		estimate(&c);
	}
	free(c.mark);
	free(c.order);
	free(c.loops);
	return error;
}
