/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listener.h - listeners take part in a run beside the pairing. Each is one row of the table in
 * timeline.c, gets every span that closes, and knows nothing of the others.
 */
#ifndef XSP_TIMELINE_LISTENER_H
#define XSP_TIMELINE_LISTENER_H

#include <stdint.h>

#include "timeline/timeline.h"

struct row;

/* NULL members are skipped. All but begin() and free() return 0 to go on or a negative errno, which
 * ends the run. */
struct xsp_listener {
	const char *name;
	bool live; /* it also takes part in a timeline that follows its capture */
	/* 1: it takes part; 0: the capture has nothing for it; or -ENOMEM. */
	int (*begin)(struct xsp_timeline *t);
	int (*time)(struct xsp_timeline *t, uint64_t ns); /* it is at least this time */
	/* Events that open and close no spans: bit n of `events`: kind n. */
	unsigned events;
	int (*event)(struct xsp_timeline *t, const struct xsp_event *e);
	/* A span closes. note: before the sinks get it, to add what is known; its ancestors are
	 * still on the row. listen: after the sinks. */
	int (*note)(struct xsp_timeline *t, const struct row *row, struct xsp_span *span);
	int (*listen)(struct xsp_timeline *t, const struct xsp_span *span);
	int (*end)(struct xsp_timeline *t); /* no more events; the last row first */
	void (*free)(struct xsp_timeline *t); /* also if it takes no part */
};

extern const struct xsp_listener xsp_listener_cuda, xsp_listener_kernels, xsp_listener_memory,
	xsp_listener_gpu, xsp_listener_waits, xsp_listener_samples, xsp_listener_memory_events,
	xsp_listener_values, xsp_listener_steps, xsp_listener_charges;
#define XSP_LISTENERS_MAX 10

#endif
