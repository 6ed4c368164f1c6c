/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * levels.h - what happened in lanes, however much that was, in a bounded number of cells.
 *
 * A span is a cell until there are too many. Then neighbours become one cell where they all lie within less than the
 * resolution, which doubles until there is room again. Spans may come in any order. Of a counter the least, the greatest and the last value of each piece of the resolution's length are kept.
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
	/* the caller's number: the name with more than half of the time, if there is such a one */
	uint32_t name;
	uint32_t count; /* spans in it; 1: the span as it was */
	uint32_t arguments; /* the caller's number, of a cell that is one span as it was */
	/* the sum of its spans' durations: its own, less the gaps between them (XSP_TOO_MUCH:
	 * beyond all numbers) */
	uint64_t busy_ns;
	uint64_t votes; /* levels.c */
};

enum xsp_lane_kind {
	XSP_LANE_NESTED, /* no two overlap: where they do (a damaged capture), they become one cell */
	XSP_LANE_PARALLEL, /* what overlaps goes into further parts of the lane */
	XSP_LANE_COUNTER,
};

struct xsp_levels;

/* `cells`: all levels together have no more, unless there are more lanes than that. 0 or -ENOMEM. */
int xsp_levels_new(size_t cells, struct xsp_levels **out);
void xsp_levels_free(struct xsp_levels *l); /* NULL is allowed */

/* A new lane: its index, or -ENOMEM. */
long xsp_levels_lane(struct xsp_levels *l, enum xsp_lane_kind kind);
/* 0 or -ENOMEM. */
int xsp_levels_span(struct xsp_levels *l, size_t lane, int64_t start_ns, int64_t end_ns,
		    uint32_t name, uint32_t arguments);
int xsp_levels_value(struct xsp_levels *l, size_t lane, int64_t ns, double value);

/* ---- behind the last one: end() puts all in order; 0 or -ENOMEM ---- */

int xsp_levels_end(struct xsp_levels *l);
uint64_t xsp_levels_resolution(const struct xsp_levels *l); /* ns; 0: every span is a cell */
/* The cells of a lane, in order; their names may be changed. */
size_t xsp_levels_cells(const struct xsp_levels *l, size_t lane, struct xsp_level_cell **cells);
/* The part behind that lane: what overlaps it; 0: there is none. */
size_t xsp_levels_next_part(const struct xsp_levels *l, size_t lane);
/*
 * What is a step coarser than `cells`, into `out`, which has room for `count` and may be `cells`: how many are left.
 * Lanes are written finest first; *resolution, that of `cells`, becomes 4 times itself or a power of that, whichever
 * leaves half of the cells or fewer. 0: no such step is worth it.
 */
size_t xsp_levels_coarser(const struct xsp_level_cell *cells, size_t count, uint64_t *resolution,
			  struct xsp_level_cell *out);

#endif
