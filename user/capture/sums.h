/* SPDX-License-Identifier: BSD-2-Clause */
/* sums.h - sums since the recording's beginning, less what they were when the part that is read began. */
#ifndef XSP_CAPTURE_SUMS_H
#define XSP_CAPTURE_SUMS_H

#include <string.h>

#include "capture/capture.h"

/* Returns what there was to take, `most` or less. */
static inline uint64_t xsp_take(__u64 *from, uint64_t most)
{
	const uint64_t n = *from < most ? *from : most;

	*from -= n;
	return n;
}

static inline void xsp_stats_take(struct xsp_capture_stats *stats,
				  const struct xsp_capture_stats *before)
{
	__u64 now[sizeof(*stats) / sizeof(__u64)], then[sizeof(now) / sizeof(*now)];

	memcpy(now, stats, sizeof(now));
	memcpy(then, before, sizeof(then));
	for (size_t i = 0; i < sizeof(now) / sizeof(*now); i++)
		xsp_take(&now[i], then[i]);
	memcpy(stats, now, sizeof(now));
}

static inline void xsp_times_take(struct xsp_event_times *times,
				  const struct xsp_event_times *before)
{
	xsp_take(&times->running_ns, before->running_ns);
	xsp_take(&times->runnable_ns, before->runnable_ns);
	for (size_t i = 0; i < XSP_WAIT_CLASSES; i++) {
		xsp_take(&times->blocked_ns[i], before->blocked_ns[i]);
		times->waits[i] -=
			before->waits[i] < times->waits[i] ? before->waits[i] : times->waits[i];
	}
}

#endif
