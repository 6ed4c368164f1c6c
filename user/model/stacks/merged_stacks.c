/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stacks/merged_stacks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* The root's key is no name's. */
static int begin(struct xsp_merged_stacks *m)
{
	return xsp_tally_row(&m->nodes, 0, &(struct xsp_merged_node){.name = "all"}) != NULL
		       ? 0
		       : -ENOMEM;
}

int xsp_merged_child(struct xsp_merged_stacks *m, uint32_t parent, const char *name, uint32_t *out)
{
	const size_t stem = m->join_numbered ? xsp_stacks_stem(name) : 0;
	const size_t length = stem > 0 ? stem : strlen(name);
	const uint64_t key = xsp_u64_mix(xsp_text_hash(name, length) + (stem > 0)) + parent;

	m->joined += stem > 0;
	if (begin(m) < 0)
		return -ENOMEM;
	struct xsp_merged_node *node = xsp_tally_row(&m->nodes, key, &(struct xsp_merged_node){0});
	if (node == NULL)
		return -ENOMEM;
	*out = xsp_tally_index(&m->nodes, node);
	if (node->name != NULL)
		return 0;
	char *copy = xsp_arena_alloc(&m->texts, length + 2);
	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, name, length);
	memcpy(copy + length, stem > 0 ? "*" : "", stem > 0 ? 2 : 1);
	*node = (struct xsp_merged_node){.parent = parent,
					 .depth = m->nodes.rows[parent].depth + 1,
					 .name = copy,
					 .next = m->nodes.rows[parent].first};
	m->nodes.rows[parent].first = *out;
	return 0;
}

int xsp_merged_add(struct xsp_merged_stacks *m, const struct xsp_stacks *s, unsigned side, bool cpu)
{
	uint32_t path[XSP_STACKS_DEPTH + 4] = {0}; /* by depth, the node of a frame */

	for (uint32_t i = 0; (i = xsp_stacks_next(s, i)) != 0;) {
		const struct xsp_stack_node *n = xsp_stacks_node(s, i);
		int rc = xsp_merged_child(m, path[n->depth - 1], xsp_stacks_name(s, i),
					  &path[n->depth]);
		if (rc < 0)
			return rc;
		struct xsp_merged_node *to = &m->nodes.rows[path[n->depth]];
		to->self[side] += cpu ? n->self_cpu_ns : n->self_ns;
		to->calls[side] += n->calls;
		to->span = to->span || n->span;
	}
	m->merged += xsp_stacks_merged(s);
	return 0;
}

uint32_t xsp_merged_next(const struct xsp_merged_stacks *m, uint32_t index)
{
	const struct xsp_merged_node *nodes = m->nodes.rows;

	if (m->nodes.count == 0)
		return 0;
	if (nodes[index].first != 0)
		return nodes[index].first;
	while (index != 0 && nodes[index].next == 0)
		index = nodes[index].parent;
	return index != 0 ? nodes[index].next : 0;
}

static int by_name(const void *a, const void *b, void *ctx)
{
	const struct xsp_merged_node *nodes = ctx;

	return strcmp(nodes[*(const uint32_t *)a].name, nodes[*(const uint32_t *)b].name);
}

static void sort_children(struct xsp_merged_node *nodes, uint32_t parent, uint32_t *scratch)
{
	size_t n = 0;

	for (uint32_t i = nodes[parent].first; i != 0; i = nodes[i].next)
		scratch[n++] = i;
	if (n < 2)
		return;
	qsort_r(scratch, n, sizeof(*scratch), by_name, nodes);
	nodes[parent].first = scratch[0];
	for (size_t i = 0; i < n; i++)
		nodes[scratch[i]].next = i + 1 < n ? scratch[i + 1] : 0;
}

/* Children have higher indexes than their parents. */
int xsp_merged_seal(struct xsp_merged_stacks *m, const double factors[2])
{
	if (begin(m) < 0)
		return -ENOMEM;
	uint32_t *scratch = calloc(m->nodes.count, sizeof(*scratch));

	if (scratch == NULL)
		return -ENOMEM;
	for (size_t i = m->nodes.count; i-- > 0;) {
		struct xsp_merged_node *n = &m->nodes.rows[i];
		for (unsigned side = 0; side < 2; side++) {
			/* factor 1 keeps every digit */
			if (factors[side] < 1 || factors[side] > 1)
				n->self[side] =
					(uint64_t)llround((double)n->self[side] * factors[side]);
			n->total[side] += n->self[side];
			if (i > 0)
				m->nodes.rows[n->parent].total[side] += n->total[side];
		}
		sort_children(m->nodes.rows, (uint32_t)i, scratch);
	}
	free(scratch);
	return 0;
}

void xsp_merged_free(struct xsp_merged_stacks *m)
{
	xsp_tally_free(&m->nodes);
	xsp_arena_free(&m->texts);
}
