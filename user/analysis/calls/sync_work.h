/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sync_work.h - what the GPU did while calls waited for it. Activities arrive seconds late, and a
 * long call ends after the records of its work arrived. So the latest calls and activities are
 * kept, and each new one is compared with them.
 */
#ifndef XSP_ANALYSIS_SYNC_WORK_H
#define XSP_ANALYSIS_SYNC_WORK_H

#include "base/rows/tally.h"
#include "timeline/timeline.h"

struct xsp_sync_waited {
	uint32_t site;
	const char *name; /* of a kernel (the timeline's), or of another kind of work */
	uint64_t ns;
};

struct xsp_sync_work {
	struct sync_call *syncs; /* by time of their end */
	size_t sync_count, sync_capacity;
	uint64_t syncs_gone_ns; /* end of the last call that was dropped */
	struct ran_chunk *chunks; /* a ring, once it is full */
	uint64_t ran_count; /* all activities so far */
	uint64_t ran_gone_ns; /* latest end of the activities that were dropped */
	uint64_t not_compared; /* calls and activities that may overlap dropped ones */
	XSP_TALLY(struct xsp_sync_waited) waited; /* by site and name */
};

void xsp_sync_work_begin(struct xsp_sync_work *w);
void xsp_sync_work_free(struct xsp_sync_work *w);
/* `a` may be an activity of any kind. 0 or -ENOMEM. */
int xsp_sync_work_activity(struct xsp_sync_work *w, const struct xsp_gpu_activity *a);
/* `site`: that of the call that waited. 0 or -ENOMEM. */
int xsp_sync_work_call(struct xsp_sync_work *w, const struct xsp_span *span, uint32_t site);

#endif
