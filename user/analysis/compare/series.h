/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * series.h - what a comparison needs of one capture: not only how long something took in all, but how that went on,
 * by pieces of the recorded time and by steps.
 *
 * Memory is bounded by names: a call is kept in one of a few classes of duration, and of many steps every second,
 * every fourth ... Texts live as long as the series, and do not need the timeline.
 */
#ifndef XSP_ANALYSIS_SERIES_H
#define XSP_ANALYSIS_SERIES_H

#include "timeline/timeline.h"

#define XSP_SERIES_PIECES 16U /* of the recorded time */
#define XSP_SERIES_STEPS 1024U /* kept of a capture, in even distances */
#define XSP_SERIES_DEVICES UINT32_MAX /* more than one */

enum xsp_series_kind {
	XSP_SERIES_OPERATOR,
	XSP_SERIES_LINE, /* of Python that called */
	XSP_SERIES_MODULE, /* torch.nn.Module that called */
	XSP_SERIES_KERNEL,
	XSP_SERIES_KINDS,
};

/* Calls of a piece of time. */
struct xsp_series_calls;

struct xsp_series_row {
	const char
		*name; /* raw bytes of the target's; "ProfilerStep#*" of those that only number */
	uint64_t hash; /* of that */
	uint64_t calls, timed, self_ns; /* all; those with a duration, and their own time */
	uint32_t device; /* of a kernel: the one it ran on, or XSP_SERIES_DEVICES */
	struct xsp_series_calls *pieces[XSP_SERIES_PIECES]; /* NULL: none of those */
	struct xsp_series_share *shares; /* of steps, see xsp_series_shares() */
	size_t share_count, share_capacity;
};

/* Memory of one kind, of all processes, or what was allocated at one place. */
struct xsp_series_memory {
	const char *name; /* "resident memory", "aten::empty at train.py:21 train_step" */
	uint64_t hash;
	bool place;
	uint64_t peak, level; /* level: now, in the end at the end */
	uint32_t first; /* piece in which it began, XSP_SERIES_PIECES: never */
	uint32_t piece; /* ... in which it is */
	uint64_t most[XSP_SERIES_PIECES], least[XSP_SERIES_PIECES];
	bool rose
		[XSP_SERIES_PIECES]; /* to its most in that piece, rather than being so from before */
	bool looked_at; /* now and then, and may have changed at any time between */
	/* In pieces: when it was the least, which was before its piece if nobody had looked at it since; the
	 * last change; and how often it is looked at at least, by the shortest time between two changes. */
	double least_at[XSP_SERIES_PIECES], level_at, period;
};

struct xsp_series;

int xsp_series_new(struct xsp_timeline *t, struct xsp_series **out); /* 0 or -ENOMEM */
void xsp_series_free(struct xsp_series *s); /* NULL is allowed */
struct xsp_timeline_sink xsp_series_sink(struct xsp_series *s);
/* Behind the run, before anything of it is asked for. The timeline is not needed any more. 0 or -ENOMEM. */
void xsp_series_end(struct xsp_series *s);

size_t xsp_series_rows(const struct xsp_series *s, enum xsp_series_kind kind,
		       const struct xsp_series_row **rows);
size_t xsp_series_memory(const struct xsp_series *s, const struct xsp_series_memory **memory);
/* Places that allocate, beyond those that are followed: what is not there may be among them. */
uint64_t xsp_series_places_left_out(const struct xsp_series *s);
uint64_t xsp_series_recorded_ns(const struct xsp_series *s);

/* The mean of a piece's calls, ns, without the longest twentieth, which is what others do to them. False: no calls. */
bool xsp_series_call(const struct xsp_series_row *row, unsigned piece, double *ns);

/* Steps that count, and of these those that are kept, by their beginnings: how long they took. */
uint64_t xsp_series_step_count(const struct xsp_series *s);
/* ... and those that ended before a time in pieces, with as many of its piece's as it is into that. */
double xsp_series_steps_until(const struct xsp_series *s, double at);
size_t xsp_series_steps(const struct xsp_series *s, double *ns);
/* ... and how much of each was a row's own time, in how many calls; `calls` may be NULL. Row NULL: time in no call. */
void xsp_series_shares(const struct xsp_series *s, const struct xsp_series_row *row, double *ns,
		       double *calls);

#endif
