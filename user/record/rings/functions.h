/* SPDX-License-Identifier: BSD-2-Clause */
/* functions.h - the table of functions that an agent has in its memory file, and the probes that their events are of. */
#ifndef XSP_RECORD_RINGS_FUNCTIONS_H
#define XSP_RECORD_RINGS_FUNCTIONS_H

#include "base/rows/u64map.h"
#include "record/rings/convert.h"
#include "record/rings/memory.h"
#include "record/rings/rings.h"

/* Zero-initialise. */
struct xsp_ring_functions {
	struct xsp_ring_row *rows; /* by function */
	uint32_t count; /* that were looked at */
	struct xsp_u64map served; /* their probes */
	size_t regions,
		named; /* that are among these: of regions; whose calls have names of their own */
	bool ranges; /* those of PyTorch's record_function are there */
	bool callbacks; /* operators, nodes and ranges are, by callbacks */
	uint64_t
		ranges_until_ns; /* 0, or the agent has given up what callbacks tell: later ones have probes */
};
int xsp_ring_functions_new(struct xsp_ring_functions *f);
void xsp_ring_functions_free(struct xsp_ring_functions *f);
/* Looks at those that have come since the last look. Files are planned later than an agent begins: a region's function may have
 * a probe by now. */
void xsp_ring_functions_look(struct xsp_ring_functions *f, const struct xsp_agent_rings_options *o,
			     pid_t pid, struct xsp_ring_memory *m);
/* Says how arguments are read, of all functions: for the first time, or otherwise than before. */
void xsp_ring_functions_read_args(const struct xsp_ring_functions *f,
				  const struct xsp_agent_rings_options *o,
				  struct xsp_ring_memory *m);
/* Has the agent given up what PyTorch's callbacks tell? It goes on with the rest. True only once. */
bool xsp_ring_functions_lose_callbacks(struct xsp_ring_functions *f,
				       const struct xsp_ring_memory *m);

#endif
