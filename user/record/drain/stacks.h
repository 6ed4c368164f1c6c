/* SPDX-License-Identifier: BSD-2-Clause */
/* stacks.h - the stacks of Python that an agent keeps in its memory file: each goes into the capture once. */
#ifndef XSP_RECORD_STACKS_H
#define XSP_RECORD_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "record/rings/memory.h"
#include "record/rings/node_names.h"
#include "xsptrace/event.h"

/* Zero-initialise. */
struct xsp_ring_stacks {
	struct xsp_ring_stack *at; /* by place */
	uint32_t
		generation; /* as the recorder reads code objects now: with another one, all stacks are new */
	uint64_t lost; /* could not be read in the file */
	uint64_t torn; /* the agent could not read them, or not to their ends */
};
void xsp_ring_stacks_free(struct xsp_ring_stacks *s);

/* What events have of a stack. */
struct xsp_stack_section {
	struct xsp_section head; /* size 0: none */
	uint64_t id;
};
/* Fills the section of the stack at that place; before it is used first, its own event is put, whose head is as that of `of`. 0 or
 * put()'s negative errno. */
int xsp_put_stack(struct xsp_ring_stacks *s, const struct xsp_node_names *keys,
		  const struct xsp_ring_memory *m, uint64_t place, const struct xsp_event *of,
		  int (*put)(void *ctx, const struct xsp_event *e), void *ctx,
		  struct xsp_stack_section *out);

/* Puts an event and at its end the section, whose size is not 0. */
int xsp_put_with_stack(const struct xsp_stack_section *section, const struct xsp_event *e,
		       int (*put)(void *ctx, const struct xsp_event *e), void *ctx);

#endif
