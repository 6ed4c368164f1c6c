/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stacks.h - spans added up by stack: a tree of (parent, name) with self time, total time, calls. XSP_STACKS_MAX and
 * XSP_STACKS_DEPTH bound the distinct stacks. What goes beyond counts for the nearest frame that exists, and as merged,
 * so that the sums stay right.
 */
#ifndef XSP_MODEL_STACKS_H
#define XSP_MODEL_STACKS_H

#include "model/view.h"

#define XSP_STACKS_MAX (1U << 22)
#define XSP_STACKS_DEPTH 1024U

struct xsp_stack_node {
	uint32_t parent, first, next; /* node indexes; 0: none (0 is the root) */
	uint32_t name; /* name id, or a reason; of the root's children: comm index */
	uint32_t depth; /* 0: root; 1: comm; 2..: frames */
	bool annotation; /* a named range, not a function */
	bool span; /* a span, not only a function of a stack */
	uint64_t self_ns, calls;
	uint64_t
		self_cpu_ns; /* of spans, with --waits; without what is not known; of XSP_WEIGHT_ALL, until seal(), samples */
	uint64_t total_ns; /* self and the children's; after seal() */
};

struct xsp_stacks;

int xsp_stacks_new(struct xsp_view *v, struct xsp_stacks **out);
void xsp_stacks_free(struct xsp_stacks *s); /* NULL is allowed */
/* Adds what the view's weight is about: spans, waits or samples. */
struct xsp_timeline_sink xsp_stacks_sink(struct xsp_stacks *s);
/* A span that has no time but its own: the sample's last function, inside all the others. */
struct xsp_span xsp_sample_as_span(const struct xsp_sample *s);
int xsp_stacks_add(struct xsp_stacks *s, const struct xsp_span *span);
/* The span's node, made when it is new, with nothing added to it; 0: no room. *nearest: the node, else the nearest one
 * further out. */
int xsp_stacks_find(struct xsp_stacks *s, const struct xsp_span *span, uint32_t *node,
		    uint32_t *nearest);
/* Before the first span: all threads share one outermost frame, "". */
void xsp_stacks_join_threads(struct xsp_stacks *s);
/* The first id with the text of `id`; nodes have that as their name. */
int xsp_stacks_same_name(struct xsp_stacks *s, xsp_name_id id, xsp_name_id *first);
/* With XSP_WEIGHT_ALL: the sample shares out time on a CPU outside of spans. */
int xsp_stacks_add_sample(struct xsp_stacks *s, const struct xsp_sample *sample);
/* With XSP_WEIGHT_OFF_CPU or XSP_WEIGHT_ALL. */
int xsp_stacks_add_wait(struct xsp_stacks *s, const struct xsp_wait *wait);

enum xsp_stacks_order { XSP_STACKS_BY_NAME, XSP_STACKS_BY_TOTAL };
/* Adds what no wait told of (off_cpu.h), sums up and sorts all children (ties of total by name). No more add() after
 * it. */
int xsp_stacks_seal(struct xsp_stacks *s, enum xsp_stacks_order how);

const struct xsp_stack_node *xsp_stacks_node(const struct xsp_stacks *s, uint32_t index);
/* The node after `index` in depth-first order, parents first; 0 at the end. Start with 0. */
uint32_t xsp_stacks_next(const struct xsp_stacks *s, uint32_t index);
/* Raw name, "all" for the root. */
const char *xsp_stacks_name(const struct xsp_stacks *s, uint32_t index);
/* Spans counted at a frame further out than their own. */
uint64_t xsp_stacks_merged(const struct xsp_stacks *s);
/* Of XSP_WEIGHT_ALL: threads that were hardly ever on a CPU, nor ready, and are left out. */
uint64_t xsp_stacks_idle(const struct xsp_stacks *s);
/* In a name that only counts, "ProfilerStep#17" or "ProfilerStep#*": the length of the part before the number. Otherwise 0. */
size_t xsp_stacks_stem(const char *name);

#endif
