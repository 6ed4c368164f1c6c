/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live.h - the summary's figures during a recording: since the beginning, and in the last interval.
 * Its memory is bounded by the number of names and of current threads.
 */
#ifndef XSP_ANALYSIS_LIVE_H
#define XSP_ANALYSIS_LIVE_H

#include "analysis/names/summary.h"

struct xsp_live;

struct xsp_live_name {
	struct xsp_summary_row all; /* since the beginning; calls 0: none has ended yet */
	uint64_t calls, total_ns, self_ns; /* of calls that ended in the interval */
	uint64_t open; /* calls that have begun and not ended */
};

struct xsp_live_thread {
	uint32_t pid, tid; /* root namespace */
	uint32_t ns_pid, ns_tid; /* as shown */
	char comm[32];
	uint64_t spans; /* ended in the interval */
	bool has_open;
	xsp_name_id open; /* the innermost */
	uint32_t place; /* of the interval's last sample, 1 + name id; 0: there was none */
	/* With waits: times in the interval, and the present state (enum xsp_times_now). */
	bool times_known;
	uint64_t interval_ns; /* the part of the interval in which the thread was watched */
	uint64_t running_ns, runnable_ns, blocked_ns[XSP_WAIT_CLASSES];
	unsigned now;
};

/* 0 or -ENOMEM. */
int xsp_live_new(struct xsp_timeline *t, struct xsp_live **out);
void xsp_live_free(struct xsp_live *l);
struct xsp_timeline_sink xsp_live_sink(struct xsp_live *l);

/* Ends the interval and lets the timeline drop what nobody needs any more. Rows are valid until
 * the next call. recorded_ns: recorded time since the beginning. 0 or -ENOMEM. */
int xsp_live_update(struct xsp_live *l, uint64_t recorded_ns);
uint64_t xsp_live_interval_ns(const struct xsp_live *l); /* recorded time in the interval */
/* Unordered; the caller may sort it. */
size_t xsp_live_names(const struct xsp_live *l, struct xsp_live_name **names);
size_t xsp_live_threads(const struct xsp_live *l, struct xsp_live_thread **threads);

#endif
