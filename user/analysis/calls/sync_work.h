/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sync_work.h - what the GPU did while calls waited for it. Activities come seconds late, and calls that last long end when
 * what they waited for has long come: so the last ones of both are held, and compared with what comes.
 */
#ifndef XSP_ANALYSIS_SYNC_WORK_H
#define XSP_ANALYSIS_SYNC_WORK_H

#include "base/rows/tally.h"
#include "timeline/timeline.h"

struct xsp_sync_waited {
	uint32_t site;
	const char *name; /* a kernel's (the timeline's), or what else it was */
	uint64_t ns;
};

struct xsp_sync_work {
	struct sync_call *syncs; /* by end */
	size_t sync_count, sync_capacity;
	uint64_t syncs_gone_ns; /* the end of the last one that is not held any more */
	struct ran_chunk *chunks; /* a ring, once it is full */
	uint64_t ran_count; /* all that came */
	uint64_t ran_gone_ns; /* the latest end among those that are not held any more */
	uint64_t not_compared; /* calls and activities that may have met what was not held */
	XSP_TALLY(struct xsp_sync_waited) waited; /* by site and name */
};

void xsp_sync_work_begin(struct xsp_sync_work *w);
void xsp_sync_work_free(struct xsp_sync_work *w);
/* An activity of any kind. 0 or -ENOMEM. */
int xsp_sync_work_activity(struct xsp_sync_work *w, const struct xsp_gpu_activity *a);
/* A call that waited, of that site. 0 or -ENOMEM. */
int xsp_sync_work_call(struct xsp_sync_work *w, const struct xsp_span *span, uint32_t site);
uint64_t xsp_sync_work_not_compared(const struct xsp_sync_work *w);

#endif
