/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cut.h - a part of a capture: which spans, waits, samples and activities the sinks are told of.
 *
 * All of the capture is read and paired, and the listeners see all of it; what follows decides what is told, at
 * one place for all sinks. Threads, names, least duration and depth do what they do while recording: what they
 * leave out is time of what is around it. A time range shows what lies in it; what goes beyond is told up to
 * the range's ends, and marked (docs/formats.md).
 */
#ifndef XSP_TIMELINE_CUT_H
#define XSP_TIMELINE_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/patterns/glob.h"

struct xsp_timeline;

struct xsp_cut_pattern {
	struct xsp_pattern pattern;
	bool provider; /* its library is the name of a provider, its glob for what that shows */
};

struct xsp_cut {
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC, up to before to_ns; 0 and UINT64_MAX: all */
	const pid_t *tids; /* as outputs show them, or of the root namespace */
	size_t tid_count;
	const char *const *comms; /* "NAME", or "NAME*" for a prefix */
	size_t comm_count;
	const struct xsp_cut_pattern *patterns;
	size_t pattern_count;
	uint64_t min_duration_ns;
	uint64_t max_depth; /* 0: all */
	const char *text; /* the options, for those who read the output; NULL: nothing is cut */
};

/* Before the run. What `cut` points to must stay until it is over. 0 or -ENOMEM. */
int xsp_timeline_cut(struct xsp_timeline *t, const struct xsp_cut *cut);
/* The options of the cut, or of the one that the trace was cut out by which the capture was made of; NULL: it is whole. */
const char *xsp_timeline_cut_text(const struct xsp_timeline *t);
/* Does it leave out calls, time of which is in calls that are told: by name, least duration or depth? */
bool xsp_timeline_cut_hides(const struct xsp_timeline *t);
/* The recording's window, or the part of it that is told of; and for how long of it everything was on. */
void xsp_timeline_window(const struct xsp_timeline *t, uint64_t *start_ns, uint64_t *end_ns);
uint64_t xsp_timeline_recorded_ns(const struct xsp_timeline *t);
/* Of something that was taken out at until_ns (0: it was not): for how long it was on, windows or not; and the same if that is
 * not to the end, else 0. */
uint64_t xsp_timeline_watched_ns(const struct xsp_timeline *t, uint64_t until_ns);
uint64_t xsp_timeline_first_ns(const struct xsp_timeline *t, uint64_t until_ns);
/* A moment within that. */
uint64_t xsp_timeline_clip(const struct xsp_timeline *t, uint64_t ns);

#endif
