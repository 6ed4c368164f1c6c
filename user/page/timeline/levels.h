/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * levels.h - shows any number of events in lanes by a bounded number of cells.
 *
 * A span is a cell until there are too many. Then neighbours that together last less than the
 * resolution become one cell, and the resolution doubles until there is room again. Spans may come
 * in any order. For a counter, the least, the greatest and the last value of each piece of that
 * length stay.
 */
#ifndef XSP_REPORT_LEVELS_H
#define XSP_REPORT_LEVELS_H

#include <stddef.h>
#include <stdint.h>

struct xsp_level_cell {
	int64_t start_ns;
	union {
		int64_t end_ns;
		double value; /* of a counter */
	};
	/* the caller's number: the name that has more than half of the time, if there is one */
	uint32_t name;
	uint32_t count; /* spans in it; 1: one unchanged span */
	uint32_t arguments; /* the caller's number, for a cell that is one unchanged span */
	/* the sum of its spans' durations, without the gaps between them (XSP_TOO_MUCH: it
	 * overflowed) */
	uint64_t busy_ns;
	uint64_t votes; /* private to levels.c */
};

enum xsp_lane_kind {
	/* spans do not overlap; if they do (a damaged capture), they become one cell */
	XSP_LANE_NESTED,
	XSP_LANE_PARALLEL, /* overlapping spans go into further parts of the lane */
	XSP_LANE_COUNTER,
};

struct xsp_levels;

/* All levels together have at most `cells` cells, or one for each lane if there are more lanes. 0
 * or -ENOMEM. */
int xsp_levels_new(size_t cells, struct xsp_levels **out);
void xsp_levels_free(struct xsp_levels *l); /* NULL is allowed */

/* Makes a lane and returns its index, or -ENOMEM. */
long xsp_levels_lane(struct xsp_levels *l, enum xsp_lane_kind kind);
/* 0 or -ENOMEM. */
int xsp_levels_span(struct xsp_levels *l, size_t lane, int64_t start_ns, int64_t end_ns,
		    uint32_t name, uint32_t arguments);
int xsp_levels_value(struct xsp_levels *l, size_t lane, int64_t ns, double value);

/* ---- after the last event; end() sorts everything: 0 or -ENOMEM ---- */

int xsp_levels_end(struct xsp_levels *l);
uint64_t xsp_levels_resolution(const struct xsp_levels *l); /* ns; 0: every span is a cell */
/* The cells of a lane, in order; the caller may change their names. */
size_t xsp_levels_cells(const struct xsp_levels *l, size_t lane, struct xsp_level_cell **cells);
/* The lane's next part, which holds overlapping spans; 0: there is none. */
size_t xsp_levels_next_part(const struct xsp_levels *l, size_t lane);
/*
 * Makes the next coarser level of `cells` in `out` and returns its number of cells. `out` has room
 * for `count` cells and may be `cells`. *resolution is that of `cells`; it grows by the least power
 * of 4 that leaves at most half of the cells. 0: no coarser level is worth it. Write lanes finest
 * first.
 */
size_t xsp_levels_coarser(const struct xsp_level_cell *cells, size_t count, uint64_t *resolution,
			  struct xsp_level_cell *out);

#endif
