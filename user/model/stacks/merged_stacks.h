/* SPDX-License-Identifier: BSD-2-Clause */
/* merged_stacks.h - the stacks of several captures in one tree, by their texts, on two sides to compare. */
#ifndef XSP_MODEL_MERGED_STACKS_H
#define XSP_MODEL_MERGED_STACKS_H

#include "base/arena.h"
#include "base/rows/tally.h"
#include "model/stacks/stacks.h"

struct xsp_merged_node {
	uint32_t parent, first, next; /* as in struct xsp_stack_node */
	uint32_t depth;
	const char *name;
	bool span; /* as in struct xsp_stack_node */
	uint64_t self[2], calls[2], total[2]; /* total: after seal() */
};

/* Zero-initialise. */
struct xsp_merged_stacks {
	XSP_TALLY(struct xsp_merged_node) nodes; /* by parent and name; the first is the root */
	struct xsp_arena texts;
	uint64_t merged; /* spans counted at a frame further out than their own */
	bool join_numbered; /* names that only count ("ProfilerStep#17") are one */
	uint64_t joined; /* names that are such, each time that they came */
};

/* The child of that name, made when it is new. 0 or -ENOMEM. */
int xsp_merged_child(struct xsp_merged_stacks *m, uint32_t parent, const char *name, uint32_t *out);
/* Adds sealed stacks of one side (0 or 1). `cpu`: their time on a CPU (xsp_stack_node.self_cpu_ns). 0 or -ENOMEM. */
int xsp_merged_add(struct xsp_merged_stacks *m, const struct xsp_stacks *s, unsigned side,
		   bool cpu);
/* Adds up, multiplies each side's times by its factor, and sorts children by name. 0 or -ENOMEM. */
int xsp_merged_seal(struct xsp_merged_stacks *m, const double factors[2]);
/* As xsp_stacks_next(). */
uint32_t xsp_merged_next(const struct xsp_merged_stacks *m, uint32_t index);
void xsp_merged_free(struct xsp_merged_stacks *m);

#endif
