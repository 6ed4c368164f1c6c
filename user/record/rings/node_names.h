/* SPDX-License-Identifier: BSD-2-Clause */
/* node_names.h - what nodes of the backward pass are called, as the agent tells: by the vtable of their class, or by a text. */
#ifndef XSP_RECORD_NODE_NAMES_H
#define XSP_RECORD_NODE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rows/u64map.h"
#include "xsptrace/event.h"
#include "xsptrace/ring.h"

/* The parts of a text that have come. Zero-initialise. */
struct xsp_node_text {
	char bytes[XSP_RING_PART * XSP_RING_PARTS];
	uint32_t length; /* a multiple of a part */
};
void xsp_node_text_add(struct xsp_node_text *t, uint32_t part,
		       const struct xsp_ring_record *record);

/* Names that the capture has. Their hashes are keyed, so that no process can choose one. */
struct xsp_node_names {
	uint64_t key[2];
	struct xsp_u64map known;
	uint64_t bad; /* records that are not as they should be */
};
void xsp_node_names_begin(struct xsp_node_names *n);
void xsp_node_names_end(struct xsp_node_names *n);
/* Of a region's or value's name, padded with zeros to a whole number of 8 bytes. Not 0. */
uint64_t xsp_node_names_hash(const struct xsp_node_names *n, const char *text, uint32_t length);

/* Puts a node's entry, or a range's begin, and before it the event of its name, if that is new. It has none (and is counted,
 * if it is a node's) where the text is not what the record says, or there are too many names. Empties the text. */
int xsp_put_named(struct xsp_node_names *n, struct xsp_node_text *text,
		  const struct xsp_ring_record *record, const struct xsp_event *e,
		  int (*put)(void *ctx, const struct xsp_event *e), void *ctx);

#endif
