/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stacks/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/stacks/stacks_private.h"
#include "timeline/samples.h"
#include "timeline/waits.h"

#define WAITS_ROW UINT32_MAX /* the row of a thread's last waits */

/* ---- rows ---- */

static bool is_path_of(const struct path *p, const struct xsp_span *span)
{
	return p->tid == span->tid && p->pid == span->pid && p->row == span->row;
}

/* Valid until the next one. */
static struct path *get_path(struct xsp_stacks *s, const struct xsp_span *span)
{
	if (s->last_path < s->paths.count && is_path_of(&s->paths.rows[s->last_path], span))
		return &s->paths.rows[s->last_path];
	uint64_t key = xsp_u64_mix(xsp_u64_pair(span->pid, span->tid)) + span->row;
	struct path *p;
	while ((p = xsp_tally_find(&s->paths, key)) != NULL && !is_path_of(p, span))
		key++;
	const struct path new = {.pid = span->pid, .tid = span->tid, .row = span->row};
	p = xsp_tally_row(&s->paths, key, &new);
	if (p != NULL)
		s->last_path = xsp_tally_index(&s->paths, p);
	return p;
}

static int reserve_path(struct path *p, uint32_t depth)
{
	uint32_t wanted = p->capacity ? p->capacity : 32;

	if (depth < p->capacity)
		return 0;
	while (wanted <= depth)
		wanted *= 2;
	xsp_name_id *names = reallocarray(p->names, wanted, sizeof(*names));
	if (names == NULL)
		return -ENOMEM;
	p->names = names;
	uint32_t *nodes = reallocarray(p->nodes, (size_t)wanted + 1, sizeof(*nodes));
	if (nodes == NULL)
		return -ENOMEM;
	p->nodes = nodes;
	p->capacity = wanted;
	return 0;
}

/* Brings the path to the span's ancestors; if the tree is full it stays shorter. */
static int follow(struct xsp_stacks *s, struct path *p, const xsp_name_id *around, uint32_t depth)
{
	uint32_t same = 0;

	while (same < p->depth && same < depth && p->names[same] == around[same])
		same++;
	for (p->depth = same; p->depth < depth; p->depth++) {
		xsp_name_id name;
		uint32_t node;
		int rc = xsp_stack_first_name(s, around[p->depth] & ~XSP_PATH_FRAME, &name);
		if (rc == 0)
			rc = xsp_stack_child(s, p->nodes[p->depth], name, &node);
		if (rc < 0)
			return rc;
		if (node == 0)
			return 0;
		if (!(around[p->depth] & XSP_PATH_FRAME))
			s->nodes[node].span = true;
		p->names[p->depth] = around[p->depth];
		p->nodes[p->depth + 1] = node;
	}
	return 0;
}

static int enter_root(struct xsp_stacks *s, struct path *p)
{
	char comm[sizeof(p->comm)];

	xsp_stack_comm(s, p->pid, p->tid, comm, sizeof(comm));
	if (p->used && strcmp(p->comm, comm) == 0)
		return 0;
	memcpy(p->comm, comm, sizeof(comm));
	p->used = true;
	p->depth = 0;
	return xsp_stack_root(s, p->pid, p->tid, p->comm, &p->nodes[0]);
}

int xsp_stacks_find(struct xsp_stacks *s, const struct xsp_span *span, uint32_t *node,
		    uint32_t *nearest)
{
	const xsp_name_id *around = span->path != NULL ? span->path : span->ancestors;
	uint32_t all = span->path != NULL ? span->path_length : span->depth;
	uint32_t depth = all < XSP_STACKS_DEPTH ? all : XSP_STACKS_DEPTH;
	struct path *p = get_path(s, span);
	xsp_name_id name;

	*node = 0;
	if (p == NULL || reserve_path(p, depth) < 0)
		return -ENOMEM;
	int rc = enter_root(s, p);
	if (rc == 0)
		rc = follow(s, p, around, depth);
	if (rc == 0)
		rc = xsp_stack_first_name(s, span->name & ~XSP_PATH_FRAME, &name);
	if (rc == 0 && p->depth == all)
		rc = xsp_stack_child(s, p->nodes[p->depth], name, node);
	if (rc < 0)
		return rc;
	if (*node != 0 && !(span->name & XSP_PATH_FRAME))
		s->nodes[*node].span = true;
	s->merged += *node == 0;
	*nearest = *node != 0 ? *node : p->nodes[p->depth];
	return 0;
}

int xsp_stacks_add(struct xsp_stacks *s, const struct xsp_span *span)
{
	const uint64_t self_ns = xsp_view_self_ns(s->v, span);
	uint32_t node, nearest;
	int rc = xsp_stacks_find(s, span, &node, &nearest);

	if (rc < 0)
		return rc;
	struct xsp_stack_node *n = &s->nodes[nearest];
	n->self_ns += self_ns;
	if (s->all)
		rc = xsp_off_reported_put(&s->on_cpu, span->pid, span->tid, self_ns);
	else if (xsp_span_has_duration(span) && span->self_cpu_ns != XSP_CPU_UNKNOWN)
		n->self_cpu_ns += span->self_cpu_ns;
	if (node == 0)
		return 0;
	n->calls++;
	n->annotation =
		span->probe < s->probe_count && s->probes[span->probe].kind == XSP_PROBE_ANNOTATION;
	return rc;
}

static int add_part(struct xsp_stacks *s, struct path *p, const struct xsp_wait *w,
		    const struct xsp_off_part *part)
{
	const uint32_t depth = part->length < XSP_STACKS_DEPTH ? part->length : XSP_STACKS_DEPTH;
	uint32_t node = 0;
	int rc = follow(s, p, w->path, depth);

	if (rc == 0 && p->depth == part->length)
		rc = xsp_stack_child(s, p->nodes[p->depth], REASONS + part->why, &node);
	if (rc < 0)
		return rc;
	s->merged += node == 0;
	struct xsp_stack_node *n = &s->nodes[node != 0 ? node : p->nodes[p->depth]];
	n->self_ns += part->ns;
	n->calls += node != 0;
	return 0;
}

int xsp_stacks_add_wait(struct xsp_stacks *s, const struct xsp_wait *wait)
{
	const struct xsp_span row = {.pid = wait->pid, .tid = wait->tid, .row = WAITS_ROW};
	struct path *p = get_path(s, &row);
	struct xsp_off_part parts[XSP_OFF_PARTS];
	const size_t count = xsp_off_parts(wait, parts);

	if (p == NULL ||
	    reserve_path(p, wait->path_length < XSP_STACKS_DEPTH ? wait->path_length
								 : XSP_STACKS_DEPTH) < 0)
		return -ENOMEM;
	int rc = xsp_off_reported_add(&s->reported, wait);
	if (rc == 0)
		rc = enter_root(s, p);
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = add_part(s, p, wait, &parts[i]);
	return rc;
}

static int add_rest(void *ctx, const struct xsp_timeline_thread *thread, uint64_t ns)
{
	struct xsp_stacks *s = ctx;
	uint32_t node, rest;
	int rc = xsp_stack_root_of(s, thread, &node);

	if (rc == 0)
		rc = xsp_stack_child(s, node, REASONS + XSP_OFF_REST, &rest);
	if (rc < 0)
		return rc;
	s->nodes[rest != 0 ? rest : node].self_ns += ns;
	return 0;
}

void xsp_stacks_join_threads(struct xsp_stacks *s)
{
	s->joint = true;
}

int xsp_stacks_same_name(struct xsp_stacks *s, xsp_name_id id, xsp_name_id *first)
{
	return xsp_stack_first_name(s, id & ~XSP_PATH_FRAME, first);
}

/* ---- life ---- */

int xsp_stacks_new(struct xsp_view *v, struct xsp_stacks **out)
{
	struct xsp_stacks *s = calloc(1, sizeof(*s));

	*out = NULL;
	if (s == NULL)
		return -ENOMEM;
	s->v = v;
	s->all = v->weight == XSP_WEIGHT_ALL;
	s->probe_count = xsp_capture_probes(v->reader, &s->probes);
	s->count = 1;
	if (xsp_stack_grow(s) < 0 || (v->by_thread && xsp_thread_rows_new(v, &s->rows) < 0)) {
		xsp_stacks_free(s);
		return -ENOMEM;
	}
	s->nodes[0] = (struct xsp_stack_node){0};
	*out = s;
	return 0;
}

void xsp_stacks_free(struct xsp_stacks *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->paths.count; i++) {
		free(s->paths.rows[i].names);
		free(s->paths.rows[i].nodes);
	}
	for (uint32_t i = 0; i < s->root_count; i++) {
		free((void *)(uintptr_t)s->roots[i].comm);
		free(s->roots[i].text);
	}
	xsp_off_reported_free(&s->reported);
	xsp_off_reported_free(&s->on_cpu);
	xsp_u64map_free(&s->joined);
	XSP_FREE(&s->joined_texts);
	xsp_arena_free(&s->arena);
	xsp_tally_free(&s->paths);
	free(s->roots);
	xsp_thread_rows_free(s->rows);
	free(s->same);
	xsp_u64map_free(&s->texts);
	free(s->table);
	free(s->nodes);
	free(s);
}

/* ---- as a listener ---- */

struct xsp_span xsp_sample_as_span(const struct xsp_sample *s)
{
	return (struct xsp_span){
		.start_ns = s->time_ns,
		.end_ns = s->time_ns,
		.self_ns = s->period_ns,
		.pid = s->pid,
		.tid = s->tid,
		.probe = UINT32_MAX,
		.cpu_ns = XSP_CPU_UNKNOWN,
		.self_cpu_ns = XSP_CPU_UNKNOWN,
		.name = s->path[s->path_length - 1],
		.path = s->path,
		.path_length = s->path_length - 1,
	};
}

static int on_span(void *ctx, const struct xsp_span *span)
{
	return xsp_stacks_add(ctx, span);
}

static int on_wait(void *ctx, const struct xsp_wait *wait)
{
	return xsp_stacks_add_wait(ctx, wait);
}

static int on_sample(void *ctx, const struct xsp_sample *sample)
{
	const struct xsp_span span = xsp_sample_as_span(sample);

	return xsp_stacks_add(ctx, &span);
}

int xsp_stacks_add_sample(struct xsp_stacks *s, const struct xsp_sample *sample)
{
	const struct xsp_span span = xsp_sample_as_span(sample);
	uint32_t node, nearest;

	if (sample->in_span)
		return 0;
	int rc = xsp_stacks_find(s, &span, &node, &nearest);
	if (rc < 0)
		return rc;
	s->nodes[nearest].self_cpu_ns += sample->period_ns;
	s->nodes[nearest].calls += node != 0;
	return 0;
}

static int on_outside(void *ctx, const struct xsp_sample *sample)
{
	return xsp_stacks_add_sample(ctx, sample);
}

struct xsp_timeline_sink xsp_stacks_sink(struct xsp_stacks *s)
{
	switch (s->v->weight) {
	case XSP_WEIGHT_ALL:
		return (struct xsp_timeline_sink){
			.ctx = s, .span = on_span, .wait = on_wait, .sample = on_outside};
	case XSP_WEIGHT_SAMPLES:
		return (struct xsp_timeline_sink){.ctx = s, .sample = on_sample};
	case XSP_WEIGHT_OFF_CPU:
		return (struct xsp_timeline_sink){.ctx = s, .wait = on_wait};
	default:
		return (struct xsp_timeline_sink){.ctx = s, .span = on_span};
	}
}

/* ---- seal ---- */

struct order {
	const struct xsp_stacks *s;
	enum xsp_stacks_order how;
};

static int compare(const void *a, const void *b, void *ctx)
{
	const struct order *o = ctx;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct xsp_stack_node *x = &o->s->nodes[i], *y = &o->s->nodes[j];

	if (o->how == XSP_STACKS_BY_TOTAL && x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return strcmp(xsp_stacks_name(o->s, i), xsp_stacks_name(o->s, j));
}

static void sort_children(struct xsp_stacks *s, uint32_t parent, uint32_t *scratch,
			  struct order *order)
{
	size_t n = 0;

	for (uint32_t i = s->nodes[parent].first; i; i = s->nodes[i].next)
		scratch[n++] = i;
	if (n < 2)
		return;
	qsort_r(scratch, n, sizeof(*scratch), compare, order);
	s->nodes[parent].first = scratch[0];
	for (size_t i = 0; i < n; i++)
		s->nodes[scratch[i]].next = i + 1 < n ? scratch[i + 1] : 0;
}

int xsp_stacks_seal(struct xsp_stacks *s, enum xsp_stacks_order how)
{
	struct order order = {s, how};
	int rc = s->all || s->v->weight == XSP_WEIGHT_OFF_CPU
			 ? xsp_off_rest(s->v, &s->reported, add_rest, s)
			 : 0;

	if (rc == 0 && s->all)
		rc = xsp_stack_end_all(s);
	if (rc < 0)
		return rc;
	uint32_t *scratch = calloc(s->count, sizeof(*scratch));
	if (scratch == NULL)
		return -ENOMEM;
	/* children have higher indexes than their parents */
	for (uint32_t i = 0; i < s->count; i++)
		s->nodes[i].total_ns = s->nodes[i].self_ns;
	for (uint32_t i = s->count - 1; i > 0; i--)
		s->nodes[s->nodes[i].parent].total_ns += s->nodes[i].total_ns;
	for (uint32_t i = 0; i < s->count; i++)
		sort_children(s, i, scratch, &order);
	free(scratch);
	return 0;
}

const struct xsp_stack_node *xsp_stacks_node(const struct xsp_stacks *s, uint32_t index)
{
	return &s->nodes[index];
}

uint32_t xsp_stacks_next(const struct xsp_stacks *s, uint32_t index)
{
	if (s->nodes[index].first)
		return s->nodes[index].first;
	while (index && s->nodes[index].next == 0)
		index = s->nodes[index].parent;
	return index ? s->nodes[index].next : 0;
}

const char *xsp_stacks_name(const struct xsp_stacks *s, uint32_t index)
{
	const struct xsp_stack_node *n = &s->nodes[index];

	if (n->depth == 0)
		return "all";
	if (n->depth > 1)
		return xsp_stack_text(s, n->name);
	const struct root *r = &s->roots[n->name];
	return r->text != NULL ? r->text : r->comm;
}

uint64_t xsp_stacks_merged(const struct xsp_stacks *s)
{
	return s->merged;
}
