/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * series.h - one capture's data for a comparison: how long things took in each piece of the
 * recorded time and in each step.
 *
 * Memory is bounded by the number of names. Calls are counted in a few classes of duration. If
 * there are many steps, only every second, fourth ... is kept. Texts live as long as the series and
 * do not need the timeline.
 */
#ifndef XSP_ANALYSIS_SERIES_H
#define XSP_ANALYSIS_SERIES_H

#include "timeline/timeline.h"

#define XSP_SERIES_PIECES 16U /* of the recorded time */
#define XSP_SERIES_STEPS 1024U /* kept of a capture, at even distances */
#define XSP_SERIES_DEVICES UINT32_MAX /* more than one */

enum xsp_series_kind {
	XSP_SERIES_OPERATOR,
	XSP_SERIES_LINE, /* the line of Python that called */
	XSP_SERIES_MODULE, /* the torch.nn.Module that called */
	XSP_SERIES_KERNEL,
	XSP_SERIES_KINDS,
};

/* Calls in one piece of time. */
struct xsp_series_calls;

struct xsp_series_row {
	const char *name; /* raw bytes of the target's; numbered names share "ProfilerStep#*" */
	uint64_t hash; /* of the name */
	uint64_t calls, timed, self_ns; /* all calls; those with a duration, and their own time */
	/* of that: on a CPU, where that is not known by the clock; and ready to run without one */
	uint64_t cpu_ns, ready_ns;
	uint64_t cpu_unknown; /* calls */
	uint32_t device; /* of a kernel: the device on which it ran, or XSP_SERIES_DEVICES */
	struct xsp_series_calls *pieces[XSP_SERIES_PIECES]; /* NULL: none in that piece */
	struct xsp_series_share *shares; /* by step, see xsp_series_shares() */
	size_t share_count, share_capacity;
};

/* One kind of memory over all processes, or what one place allocates. */
struct xsp_series_memory {
	const char *name; /* "resident memory", "aten::empty at train.py:21 train_step" */
	uint64_t hash;
	bool place;
	uint64_t peak, level; /* level: now; after the run, at the end */
	uint32_t first; /* piece in which it began; XSP_SERIES_PIECES: never */
	uint32_t piece; /* the current piece */
	uint64_t most[XSP_SERIES_PIECES], least[XSP_SERIES_PIECES];
	/* it rose to its maximum in that piece instead of starting with it */
	bool rose[XSP_SERIES_PIECES];
	bool looked_at; /* sampled: it may have changed at any time between two looks */
	/* In pieces: the time of the minimum (before its piece if nobody looked since), the last
	 * change, and the shortest time between two changes. */
	double least_at[XSP_SERIES_PIECES], level_at, period;
};

struct xsp_series;

int xsp_series_new(struct xsp_timeline *t, struct xsp_series **out); /* 0 or -ENOMEM */
void xsp_series_free(struct xsp_series *s); /* NULL is allowed */
struct xsp_timeline_sink xsp_series_sink(struct xsp_series *s);
/* Called once, after the run and before any query. The timeline is not needed afterwards. */
void xsp_series_end(struct xsp_series *s);

size_t xsp_series_rows(const struct xsp_series *s, enum xsp_series_kind kind,
		       const struct xsp_series_row **rows);
size_t xsp_series_memory(const struct xsp_series *s, const struct xsp_series_memory **memory);
/* Allocating places that are not followed: a place without a row may be among them. */
uint64_t xsp_series_places_left_out(const struct xsp_series *s);
uint64_t xsp_series_recorded_ns(const struct xsp_series *s);

/* Does it hardly ever wait by itself? Then its time on a CPU is its own, and what it takes longer is
 * for want of a CPU. */
bool xsp_series_computes(const struct xsp_series_row *row);
/* The threads' time without a CPU, as a share of that in which they could have run; 0: not known. */
double xsp_series_ready_share(const struct xsp_series *s);

/* The mean time of a piece's calls, ns, without the longest twentieth, which disturbances cause.
 * `on_cpu`: their time on a CPU. False: no calls. */
bool xsp_series_call(const struct xsp_series_row *row, unsigned piece, bool on_cpu, double *ns);

/* All steps that count. */
uint64_t xsp_series_step_count(const struct xsp_series *s);
/* Steps that ended before `at`, which is in pieces; the piece around `at` contributes in
 * proportion. */
double xsp_series_steps_until(const struct xsp_series *s, double at);
/* The kept steps in order of their beginning: how many, and how long each took. */
size_t xsp_series_steps(const struct xsp_series *s, double *ns);
/* A row's own time, or that on a CPU, and calls in each of those steps; `calls` may be NULL. Row
 * NULL: time in no call. */
void xsp_series_shares(const struct xsp_series *s, const struct xsp_series_row *row, bool on_cpu,
		       double *ns, double *calls);

#endif
