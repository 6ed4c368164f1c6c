/* SPDX-License-Identifier: BSD-2-Clause */
/* copies.h - copies between host and device, by size. */
#ifndef XSP_ANALYSIS_COPIES_H
#define XSP_ANALYSIS_COPIES_H

#include "timeline/timeline.h"

struct xsp_copies {
	uint64_t count, bytes, ns;
	/* copies that lie partly outside the range, with all their bytes */
	uint64_t cut, pageable_cut;
	uint64_t pageable, pageable_bytes, pageable_ns; /* from or to memory that is not pinned */
	uint64_t pageable_longest_ns, pageable_longest_start_ns;
	uint64_t count_below[64], ns_below[64]; /* [n]: at least 2^(n-1) and less than 2^n bytes */
};

/* `a` may be a copy of any kind. */
void xsp_copies_add(struct xsp_copies *c, const struct xsp_gpu_activity *a);

#endif
