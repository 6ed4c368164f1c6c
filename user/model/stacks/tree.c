/* SPDX-License-Identifier: BSD-2-Clause */
/* tree.c - the tree of stacks: its names, nodes and roots. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/text.h"
#include "model/stacks/stacks_private.h"

#define ROOTS_MAX 4096
#define MORE "[more commands]"

static uint32_t mix(uint64_t v)
{
	v *= 0x9E3779B97F4A7C15ULL;
	return (uint32_t)(v >> 32 ^ v >> 12);
}

/* ---- names with different ids and one text (two overloads, or all steps) are one frame ---- */

size_t xsp_stacks_stem(const char *name)
{
	size_t at = strlen(name);

	if (at > 1 && name[at - 1] == '*' && name[at - 2] == '#')
		return at - 1;
	while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
		at--;
	return name[at] != '\0' && at > 0 && name[at - 1] == '#' ? at : 0;
}

const char *xsp_stack_text(const struct xsp_stacks *s, xsp_name_id id)
{
	if (id >= REASONS)
		return xsp_off_frame(s->v, id - REASONS);
	const uint32_t *joined = xsp_u64map_get(&s->joined, id);
	const char *text = joined != NULL ? s->joined_texts.rows[*joined]
					  : xsp_timeline_name(s->v->timeline, id);

	return text ? text : "";
}

/* "ProfilerStep#17" is "ProfilerStep#*" from here on. */
static int join(struct xsp_stacks *s, xsp_name_id id)
{
	const char *name = xsp_stack_text(s, id);
	const size_t stem = id < REASONS && !s->v->by_step ? xsp_stacks_stem(name) : 0;

	if (stem == 0)
		return 0;
	char *text = xsp_arena_alloc(&s->arena, stem + 2);
	if (text == NULL || xsp_u64map_set(&s->joined, id, (uint32_t)s->joined_texts.count) < 0)
		return -ENOMEM;
	memcpy(text, name, stem);
	memcpy(text + stem, "*", 2);
	return XSP_PUT(&s->joined_texts, text);
}

int xsp_stack_first_name(struct xsp_stacks *s, xsp_name_id id, xsp_name_id *out)
{
	if (xsp_grow_zeroed(&s->same, &s->same_count, (size_t)id + 1) < 0)
		return -ENOMEM;
	if (s->same[id] == 0) {
		if (join(s, id) < 0)
			return -ENOMEM;
		const char *text = xsp_stack_text(s, id);
		uint64_t hash = xsp_text_hash(text, strlen(text));
		const uint32_t *first;
		while ((first = xsp_u64map_get(&s->texts, hash)) != NULL &&
		       strcmp(xsp_stack_text(s, *first), text) != 0)
			hash++;
		if (first == NULL && xsp_u64map_set(&s->texts, hash, id) < 0)
			return -ENOMEM;
		s->same[id] = (first != NULL ? *first : id) + 1;
	}
	*out = s->same[id] - 1;
	return 0;
}

/* ---- nodes ---- */

static uint32_t node_slot(const struct xsp_stacks *s, uint32_t parent, uint32_t name)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): it is 64 bits wide */
	uint32_t i = mix((uint64_t)parent << 32 | name) & s->mask;

	while (s->table[i] &&
	       (s->nodes[s->table[i]].parent != parent || s->nodes[s->table[i]].name != name))
		i = (i + 1) & s->mask;
	return i;
}

int xsp_stack_grow(struct xsp_stacks *s)
{
	uint32_t wanted = s->capacity ? s->capacity * 2 : 1024;
	struct xsp_stack_node *nodes = reallocarray(s->nodes, wanted, sizeof(*nodes));

	if (nodes == NULL)
		return -ENOMEM;
	s->nodes = nodes;
	uint32_t *table = calloc((size_t)wanted * 2, sizeof(*table));
	if (table == NULL)
		return -ENOMEM;
	free(s->table);
	s->table = table;
	s->mask = wanted * 2 - 1;
	s->capacity = wanted;
	for (uint32_t i = 1; i < s->count; i++)
		table[node_slot(s, nodes[i].parent, nodes[i].name)] = i;
	return 0;
}

/* The child of `parent` with this name; *out 0: no room for one more. */
int xsp_stack_child(struct xsp_stacks *s, uint32_t parent, uint32_t name, uint32_t *out)
{
	uint32_t slot = node_slot(s, parent, name);

	*out = s->table[slot];
	if (*out)
		return 0;
	if (parent != 0 &&
	    (s->count >= XSP_STACKS_MAX || s->nodes[parent].depth > XSP_STACKS_DEPTH))
		return 0;
	if (s->count == s->capacity) {
		if (xsp_stack_grow(s) < 0)
			return -ENOMEM;
		slot = node_slot(s, parent, name);
	}
	*out = s->count++;
	s->table[slot] = *out;
	s->nodes[*out] = (struct xsp_stack_node){
		.parent = parent,
		.name = name,
		.depth = s->nodes[parent].depth + 1,
		.next = s->nodes[parent].first,
	};
	s->nodes[parent].first = *out;
	return 0;
}

static int set_text(const struct xsp_stacks *s, struct root *r, bool alone)
{
	const struct xsp_thread_row *row =
		alone ? NULL : xsp_thread_rows_of(s->rows, r->pid, r->tid, 0);
	char *text;

	if (!alone && row == NULL)
		return -ENOMEM;
	if ((row != NULL ? asprintf(&text, "%s (%u/%u)", r->comm, row->pid, row->thread_tid)
			 : asprintf(&text, "%s (%u)", r->comm, r->ns_tid)) < 0)
		return -ENOMEM;
	free(r->text);
	r->text = text;
	return 0;
}

/* Threads of two processes may have the same number: then their processes are shown, too. */
static int tell_apart(const struct xsp_stacks *s, struct root *new)
{
	bool alone = true;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < s->root_count; i++) {
		struct root *r = &s->roots[i];
		if (r == new || !r->thread || r->ns_tid != new->ns_tid ||
		    strcmp(r->comm, new->comm) != 0)
			continue;
		alone = false;
		rc = set_text(s, r, false);
	}
	return rc == 0 ? set_text(s, new, alone) : rc;
}

static uint32_t find_root(const struct xsp_stacks *s, const struct root *r)
{
	uint32_t i = 0;

	while (i < s->root_count &&
	       (s->roots[i].thread != r->thread || s->roots[i].tid != r->tid ||
		s->roots[i].pid != r->pid || strcmp(s->roots[i].comm, r->comm) != 0))
		i++;
	return i;
}

int xsp_stack_put_root(struct xsp_stacks *s, struct root r, uint32_t *out)
{
	uint32_t i = find_root(s, &r);
	/* a program can rename its threads without end */
	if (i == s->root_count && s->root_count >= ROOTS_MAX) {
		r = (struct root){.comm = MORE};
		i = find_root(s, &r);
	}
	if (i == s->root_count) {
		char *copy = strdup(r.comm);
		r.comm = copy;
		if (copy == NULL || XSP_APPEND(s->roots, s->root_capacity, s->root_count, r) < 0) {
			free(copy);
			return -ENOMEM;
		}
		if (s->rows != NULL && r.thread && tell_apart(s, &s->roots[i]) < 0)
			return -ENOMEM;
	}
	return xsp_stack_child(s, 0, i, out);
}

int xsp_stack_root(struct xsp_stacks *s, uint32_t pid, uint32_t tid, const char *comm,
		   uint32_t *out)
{
	const struct xsp_timeline_thread *t = xsp_timeline_thread(s->v->timeline, tid);
	struct root r = {.comm = comm};

	if ((s->rows != NULL || s->all) && !s->joint) {
		r.thread = true;
		r.pid = pid;
		r.tid = tid;
		r.ns_tid = t != NULL ? t->ns_tid : tid;
	}
	return xsp_stack_put_root(s, r, out);
}

void xsp_stack_comm(const struct xsp_stacks *s, uint32_t pid, uint32_t tid, char *out, size_t size)
{
	snprintf(out, size, "%s", s->joint ? "" : xsp_thread_rows_comm(s->v, pid, tid));
}

int xsp_stack_root_of(struct xsp_stacks *s, const struct xsp_timeline_thread *thread,
		      uint32_t *node)
{
	char comm[48];

	xsp_stack_comm(s, thread->pid, thread->tid, comm, sizeof(comm));
	return xsp_stack_root(s, thread->pid, thread->tid, comm, node);
}
