/* SPDX-License-Identifier: BSD-2-Clause */
/* placed.h - operators and nodes that PyTorch's callbacks tell the agent of, with autograd's numbers (xsptrace/ring.h), as events. */
#ifndef XSP_RECORD_RINGS_PLACED_H
#define XSP_RECORD_RINGS_PLACED_H

#include <stdbool.h>
#include <stdint.h>

#include "xsptrace/event.h"
#include "xsptrace/ring.h"

/* The nodes of a thread that are being evaluated: one in another, as far as autograd goes on one thread. Zero-initialise. */
#define XSP_OPEN_NODES 64
struct xsp_open_nodes {
	struct xsp_open_node {
		uint64_t sp;
		uint64_t numbers; /* XSP_RING_NUMBERED(); 0: not told */
	} open[XSP_OPEN_NODES];
	uint32_t count, deeper; /* nodes for which there was no room */
};
void xsp_open_nodes_enter(struct xsp_open_nodes *n, uint64_t sp);
void xsp_open_nodes_tell(struct xsp_open_nodes *n, uint64_t numbers);
/* Its numbers; 0: they were not told. */
uint64_t xsp_open_nodes_leave(struct xsp_open_nodes *n, uint64_t sp);

/* An event with a section of these. */
union xsp_numbered_event {
	struct xsp_event head;
	struct xsp_event_range entry; /* ENTRY */
	struct {
		struct xsp_event_range entry;
		struct xsp_section section;
		uint64_t number;
	} operator_entry;
	struct {
		struct xsp_event head;
		struct xsp_section section;
		uint64_t number;
	} operator_exit;
	struct {
		struct xsp_event head;
		struct xsp_section section;
		uint64_t number, thread;
	} node_exit;
};
/* Each makes an event of its head, and of what the record says. */
void xsp_numbered_entry(union xsp_numbered_event *e, const struct xsp_event *head, uint64_t hash,
			uint64_t value);
void xsp_numbered_exit(union xsp_numbered_event *e, const struct xsp_event *head, bool node,
		       uint64_t value);

#endif
