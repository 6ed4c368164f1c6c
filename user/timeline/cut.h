/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cut.h - a part of a capture: which spans, waits, samples and activities the sinks get.
 *
 * The whole capture is read and paired, and listeners see all of it. Then one place decides for all
 * sinks. Threads, names, least duration and depth work as while recording: the time of what they
 * drop belongs to what is around it. A time range shows what lies in it. What reaches beyond is
 * shortened to the range and marked (docs/formats.md).
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
	bool provider; /* its library is a provider's name, its glob for the provider's names */
};

struct xsp_cut {
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC, without to_ns itself; 0 and UINT64_MAX: all */
	const pid_t *tids; /* as outputs show them, or of the root namespace */
	size_t tid_count;
	const char *const *comms; /* "NAME", or "NAME*" for a prefix */
	size_t comm_count;
	const struct xsp_cut_pattern *patterns;
	size_t pattern_count;
	uint64_t min_duration_ns;
	uint64_t max_depth; /* 0: all */
	const char *text; /* the options as text, for readers of the output; NULL: no cut */
};

/* Call it before the run; what `cut` points to must live until the run is over. 0 or -ENOMEM. */
int xsp_timeline_cut(struct xsp_timeline *t, const struct xsp_cut *cut);
/* The options of the cut, or of the cut in the trace that became this capture; NULL: it is
 * whole. */
const char *xsp_timeline_cut_text(const struct xsp_timeline *t);
/* Does it drop calls whose time belongs to calls that it keeps: by name, least duration or
 * depth? */
bool xsp_timeline_cut_hides(const struct xsp_timeline *t);
/* The recording's window, or the kept part of it; and for how long everything was on in it. */
void xsp_timeline_window(const struct xsp_timeline *t, uint64_t *start_ns, uint64_t *end_ns);
uint64_t xsp_timeline_recorded_ns(const struct xsp_timeline *t);
/* How long a feature was on, with or without windows, if it was dropped at until_ns (0: it was not
 * dropped). The second one gives 0 if it was on to the end. */
uint64_t xsp_timeline_watched_ns(const struct xsp_timeline *t, uint64_t until_ns);
uint64_t xsp_timeline_first_ns(const struct xsp_timeline *t, uint64_t until_ns);
/* Moves a time into that window. */
uint64_t xsp_timeline_clip(const struct xsp_timeline *t, uint64_t ns);

#endif
