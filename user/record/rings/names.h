/* SPDX-License-Identifier: BSD-2-Clause */
/* names.h - the names of regions that an agent has in its memory file: each goes into the capture once. */
#ifndef XSP_RECORD_RINGS_NAMES_H
#define XSP_RECORD_RINGS_NAMES_H

#include <stdint.h>

#include "record/rings/memory.h"
#include "xsptrace/event.h"

/* Zero-initialise. */
struct xsp_ring_names {
	uint64_t *hash; /* by place; 0: it has not been used */
};
void xsp_ring_names_free(struct xsp_ring_names *n);

struct xsp_ring_name_event {
	struct xsp_event_name name;
	char text[XSP_NAME_MAX];
};
/* The hash of the name at that place; 0: it is lost. *e: what must be put before it is used, if its size is not 0; its head
 * is as that of `of`. */
uint64_t xsp_ring_names_find(struct xsp_ring_names *n, const struct xsp_ring_memory *m,
			     uint64_t place, const struct xsp_event *of,
			     struct xsp_ring_name_event *e);

#endif
