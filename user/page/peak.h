/* SPDX-License-Identifier: BSD-2-Clause */
/* peak.h - what was alive of an allocator's memory at its peak, by the site of allocation. */
#ifndef XSP_REPORT_PEAK_H
#define XSP_REPORT_PEAK_H

#include "timeline/timeline.h"

struct xsp_peak_site {
	uint64_t alive; /* bytes now */
	double blocks;
	uint64_t peak; /* at the peak */
	double peak_blocks;
	bool changed; /* since the last note */
};

/* Zero-initialise. */
struct xsp_peak {
	struct xsp_peak_site *sites; /* by the timeline's index */
	size_t count, capacity;
	size_t *changed; /* indexes of the sites that have changed */
	size_t changed_count, changed_capacity;
	uint64_t alive, most;
};

/* 0 or -ENOMEM. */
int xsp_peak_event(struct xsp_peak *p, const struct xsp_memory_event *e);
/* Call it after the last event: now the sites hold what was alive at the peak. */
void xsp_peak_end(struct xsp_peak *p);
void xsp_peak_free(struct xsp_peak *p);

#endif
