/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live.h - the summary's figures while a recording goes on: since it began, and of the last interval. Its memory is
 * bounded by names, and by threads that are there.
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
	uint32_t ns_pid, ns_tid; /* what is shown */
	char comm[32];
	uint64_t spans; /* that ended in the interval */
	bool has_open;
	xsp_name_id open; /* the innermost */
	/* With waits: of the interval, and what it does now (enum xsp_times_now). */
	bool times_known;
	uint64_t interval_ns; /* so much of it as the thread was watched */
	uint64_t running_ns, runnable_ns, blocked_ns[XSP_WAIT_CLASSES];
	unsigned now;
};

/* 0 or -ENOMEM. */
int xsp_live_new(struct xsp_timeline *t, struct xsp_live **out);
void xsp_live_free(struct xsp_live *l);
struct xsp_timeline_sink xsp_live_sink(struct xsp_live *l);

/* Ends the interval, and has the timeline forget what is not needed any more. The rows are valid until it is called again.
 * recorded_ns: time since the beginning in which spans were recorded. 0 or -ENOMEM. */
int xsp_live_update(struct xsp_live *l, uint64_t recorded_ns);
uint64_t xsp_live_interval_ns(const struct xsp_live *l); /* such time in the interval */
/* In no order; may be put into one. */
size_t xsp_live_names(const struct xsp_live *l, struct xsp_live_name **names);
size_t xsp_live_threads(const struct xsp_live *l, struct xsp_live_thread **threads);

#endif
