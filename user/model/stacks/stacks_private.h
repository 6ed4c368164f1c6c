/* SPDX-License-Identifier: BSD-2-Clause */
/* stacks_private.h - shared by collecting (stacks.c), the tree itself (tree.c) and what is known at the end only (all_time.c). */
#ifndef XSP_MODEL_STACKS_PRIVATE_H
#define XSP_MODEL_STACKS_PRIVATE_H

#include "base/arena.h"
#include "base/rows/array.h"
#include "base/rows/tally.h"
#include "model/rows/thread_rows.h"
#include "model/stacks/off_cpu.h"
#include "model/stacks/stacks.h"

#define REASONS (UINT32_MAX - XSP_NOT_SAMPLED) /* names from here on: xsp_off_frame() */

/* The last position of a row: the next span of the row mostly shares its ancestors. */
struct path {
	uint32_t pid, tid, row;
	bool used;
	char comm[48];
	uint32_t depth; /* ancestors that `names` and `nodes` hold */
	uint32_t capacity;
	xsp_name_id *names; /* as in the spans */
	uint32_t *nodes; /* nodes[0]: the comm's; nodes[i + 1]: of names[i] */
};

/* An outermost frame. */
struct root {
	const char *comm; /* its own */
	bool thread; /* one thread, not all with this name */
	uint32_t pid, tid, ns_tid;
	char *text; /* of a thread, as outputs show it */
};

struct xsp_stacks {
	struct xsp_view *v;
	struct xsp_stack_node *nodes;
	uint32_t count, capacity;
	uint32_t *table; /* node by (parent, name); open addressing, 0: empty */
	uint32_t mask;
	XSP_TALLY(struct path) paths; /* by hash of pid, tid and row */
	size_t last_path; /* most spans are of the row of the one before */
	struct root *roots;
	uint32_t root_count;
	size_t root_capacity;
	struct xsp_thread_rows *rows; /* if each thread has a root of its own */
	uint32_t *same; /* name id → the first id with the same text, + 1; 0: not looked up */
	size_t same_count;
	struct xsp_u64map texts; /* hash → the first id with it */
	const struct xsp_capture_probe *probes;
	size_t probe_count;
	uint64_t merged;
	bool joint; /* all threads have one root, of the name "" */
	struct xsp_off_reported reported, on_cpu;
	bool all; /* XSP_WEIGHT_ALL: each thread has a root until seal(), as idle ones are left out */
	uint64_t idle;
	struct xsp_arena arena; /* texts of joined names */
	struct xsp_u64map joined; /* name id → index */
	XSP_ARRAY(const char *) joined_texts;
};

/* ---- tree.c ---- */

const char *xsp_stack_text(const struct xsp_stacks *s, xsp_name_id id);
/* The first id with the text of `id`. 0 or -ENOMEM; so do the others. */
int xsp_stack_first_name(struct xsp_stacks *s, xsp_name_id id, xsp_name_id *out);
int xsp_stack_grow(struct xsp_stacks *s);
/* The child of `parent` with this name; *out 0: no room for one more. */
int xsp_stack_child(struct xsp_stacks *s, uint32_t parent, uint32_t name, uint32_t *out);
int xsp_stack_put_root(struct xsp_stacks *s, struct root r, uint32_t *out);
int xsp_stack_root(struct xsp_stacks *s, uint32_t pid, uint32_t tid, const char *comm,
		   uint32_t *out);
void xsp_stack_comm(const struct xsp_stacks *s, uint32_t pid, uint32_t tid, char *out, size_t size);
int xsp_stack_root_of(struct xsp_stacks *s, const struct xsp_timeline_thread *thread,
		      uint32_t *node);

/* ---- all_time.c ---- */

/* Of XSP_WEIGHT_ALL: shares out the time on a CPU outside of spans, leaves out idle threads, and joins those of a name. */
int xsp_stack_end_all(struct xsp_stacks *s);

#endif
