/* SPDX-License-Identifier: BSD-2-Clause */
/* all_time.c - --weight all: time on a CPU outside of spans is shared out by samples, as the account does. */
#include <errno.h>
#include <stdlib.h>

#include "model/account/account.h"
#include "model/stacks/stacks_private.h"
#include "timeline/waits.h"

struct place {
	uint32_t root;
	bool in_call; /* a span that is no range is here or further out */
	uint64_t sampled, given, shared; /* of a root */
};

/* Parents have lower indexes than their children. */
static void find_places(const struct xsp_stack_node *nodes, uint32_t count, struct place *places)
{
	for (uint32_t i = 1; i < count; i++) {
		const struct xsp_stack_node *n = &nodes[i];
		struct place *p = &places[i];
		p->root = n->depth == 1 ? i : places[n->parent].root;
		p->in_call = places[n->parent].in_call || (n->span && !n->annotation);
		places[p->root].sampled += n->self_cpu_ns;
	}
}

/*
 * Of each root (depth 1) `outside[root]` ns are shared out to its nodes by their samples (self_cpu_ns), which are 0
 * afterwards; without samples it stays there. Ranges that only name a part of the program are no place: where there are
 * samples, their own time is shared out too.
 */
static int share(struct xsp_stack_node *nodes, uint32_t count, uint64_t *outside)
{
	struct place *places = calloc(count, sizeof(*places));

	if (places == NULL)
		return -ENOMEM;
	find_places(nodes, count, places);
	for (uint32_t i = 1; i < count; i++) {
		struct xsp_stack_node *n = &nodes[i];
		if (!n->annotation || places[i].in_call || places[places[i].root].sampled == 0)
			continue;
		outside[places[i].root] += n->self_ns;
		n->self_ns = 0;
	}
	for (uint32_t i = 1; i < count; i++) {
		struct xsp_stack_node *n = &nodes[i];
		struct place *root = &places[places[i].root];
		if (n->self_cpu_ns == 0)
			continue;
		root->given += n->self_cpu_ns;
		const uint64_t upto = (uint64_t)((unsigned __int128)outside[places[i].root] *
						 root->given / root->sampled);
		n->self_ns += upto - root->shared;
		root->shared = upto;
		n->self_cpu_ns = 0;
	}
	for (uint32_t i = 1; i < count; i++)
		if (places[i].sampled > 0)
			outside[i] = 0;
	free(places);
	return 0;
}

/* Time on a CPU outside of spans is kept as the root's total until end_all(). */
static int add_outside(void *ctx, const struct xsp_timeline_thread *thread, uint64_t ns)
{
	struct xsp_stacks *s = ctx;
	uint32_t node;
	int rc = xsp_stack_root_of(s, thread, &node);

	if (rc == 0)
		s->nodes[node].total_ns += ns;
	return rc;
}

/* ---- all time: what is known at the end only ---- */

static bool is_idle(const struct root *r, const struct xsp_off_reported *busy, uint64_t least)
{
	const uint64_t *ns = xsp_tally_find(&busy->ns, (uint64_t)r->pid << 32 | r->tid);

	return r->thread && ns != NULL && *ns < least;
}

/* Threads of a name are one now; idle ones are left out. */
static int join_roots(struct xsp_stacks *s, const struct xsp_off_reported *busy, uint64_t least)
{
	struct xsp_stack_node *old = s->nodes;
	const uint32_t count = s->count;
	uint32_t *to = calloc(count, sizeof(*to));
	int rc = to != NULL ? 0 : -ENOMEM;

	s->nodes = NULL;
	s->capacity = 0;
	s->count = 1;
	if (rc == 0)
		rc = xsp_stack_grow(s);
	if (rc == 0)
		s->nodes[0] = old[0];
	if (rc == 0)
		s->nodes[0].first = 0;
	for (uint32_t i = 1; i < count && rc == 0; i++) {
		const struct xsp_stack_node *o = &old[i];
		const uint32_t parent = to[o->parent];
		if (o->depth == 1 && !is_idle(&s->roots[o->name], busy, least)) {
			const struct root r = {.comm = s->roots[o->name].comm};
			rc = s->rows != NULL ? xsp_stack_child(s, 0, o->name, &to[i])
					     : xsp_stack_put_root(s, r, &to[i]);
		} else if (parent != 0) {
			rc = xsp_stack_child(s, parent, o->name, &to[i]);
		}
		struct xsp_stack_node *n = &s->nodes[to[i] != 0 ? to[i] : parent];
		if (rc < 0 || n == s->nodes)
			continue;
		n->self_ns += o->self_ns;
		n->calls += o->calls;
		n->span = n->span || o->span;
		n->annotation = o->annotation;
	}
	free(old);
	free(to);
	return rc;
}

static int share_outside(struct xsp_stacks *s)
{
	uint64_t *outside = calloc(s->count, sizeof(*outside));
	const uint32_t count = s->count;
	uint32_t rest;
	int rc = outside != NULL ? 0 : -ENOMEM;

	for (uint32_t i = 1; i < count && rc == 0; i++)
		outside[i] = s->nodes[i].total_ns;
	if (rc == 0)
		rc = share(s->nodes, count, outside);
	for (uint32_t i = 1; i < count && rc == 0; i++) {
		if (outside[i] == 0)
			continue;
		rc = xsp_stack_child(s, i, REASONS + XSP_NOT_SAMPLED, &rest);
		if (rc == 0)
			s->nodes[rest != 0 ? rest : i].self_ns += outside[i];
	}
	free(outside);
	return rc;
}

int xsp_stack_end_all(struct xsp_stacks *s)
{
	struct xsp_off_reported busy = {0};
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(s->v->timeline, &times);
	uint64_t most = 0;
	int rc = xsp_on_cpu_rest(s->v, &s->on_cpu, add_outside, s);

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = xsp_off_reported_put(&busy, times[i].thread->pid, times[i].thread->tid,
					  times[i].running_ns + times[i].runnable_ns);
	for (size_t i = 0; i < busy.ns.count; i++)
		most = busy.ns.rows[i] > most ? busy.ns.rows[i] : most;
	for (size_t i = 0; i < busy.ns.count; i++)
		s->idle += busy.ns.rows[i] < most / XSP_ACCOUNT_IDLE;
	if (rc == 0)
		rc = share_outside(s);
	if (rc == 0)
		rc = join_roots(s, &busy, most / XSP_ACCOUNT_IDLE);
	xsp_off_reported_free(&busy);
	return rc;
}

uint64_t xsp_stacks_idle(const struct xsp_stacks *s)
{
	return s->idle;
}
