/* SPDX-License-Identifier: BSD-2-Clause */
/* names.h - the names that an agent has in its memory file, of regions and of what callbacks tell: each goes into the capture once. */
#ifndef XSP_RECORD_RINGS_NAMES_H
#define XSP_RECORD_RINGS_NAMES_H

#include <stdint.h>

#include "record/rings/convert.h"
#include "record/rings/memory.h"
#include "record/rings/node_names.h"

/* Zero-initialise. */
struct xsp_ring_names {
	uint64_t *hash; /* by place; 0: it has not been used */
	uint64_t lost; /* events whose names, or arguments, could not be read */
};
void xsp_ring_names_free(struct xsp_ring_names *n);

/* Puts the event of the name at that place, if it is new. *hash: the name's; 0: it is lost, and the flags of `of` say so. */
int xsp_put_name(struct xsp_ring_names *n, const struct xsp_node_names *keys,
		 const struct xsp_ring_memory *m, uint64_t place, struct xsp_event *of,
		 uint64_t *hash, int (*put)(void *ctx, const struct xsp_event *e), void *ctx);
/* Puts a region's beginning, or a value, whose name is at that place; and before it the event of the name, if that is new. */
int xsp_put_region(struct xsp_ring_names *n, const struct xsp_node_names *keys,
		   const struct xsp_ring_memory *m, uint64_t place, union xsp_ring_event *e,
		   int (*put)(void *ctx, const struct xsp_event *e), void *ctx);
/* Puts a call's entry with its arguments, which are at that place. */
int xsp_put_args(struct xsp_ring_names *n, const struct xsp_ring_memory *m, uint64_t place,
		 const struct xsp_event *e, int (*put)(void *ctx, const struct xsp_event *e),
		 void *ctx);

#endif
