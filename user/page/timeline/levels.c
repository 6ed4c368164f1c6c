/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/timeline/levels.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/order.h"
#include "base/saturate.h"

#define FIRST_RESOLUTION 1024U /* ns */
#define LAST_RESOLUTION (1ULL << 60)
#define PARTS 16U /* of a lane; beyond these, overlapping spans become one cell */
#define FEW 128U /* this many cells need no coarser level */

struct lane {
	enum xsp_lane_kind kind;
	bool unordered; /* a span began before the one that came last */
	struct xsp_level_cell *cells;
	size_t count, capacity;
	size_t next_part;
};

struct xsp_levels {
	struct lane *lanes;
	size_t count, capacity;
	size_t cells, most; /* cells of the finest level: now, and before the resolution doubles */
	uint64_t resolution;
};

int xsp_levels_new(size_t cells, struct xsp_levels **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	/* each coarser level has at most half the cells of the one before, so all together have no
	 * more than that */
	(*out)->most = cells / 2 > 4 ? cells / 2 : 4;
	return 0;
}

void xsp_levels_free(struct xsp_levels *l)
{
	if (l == NULL)
		return;
	for (size_t i = 0; i < l->count; i++)
		free(l->lanes[i].cells);
	free(l->lanes);
	free(l);
}

long xsp_levels_lane(struct xsp_levels *l, enum xsp_lane_kind kind)
{
	if (xsp_grow(&l->lanes, &l->capacity, l->count + 1) < 0)
		return -ENOMEM;
	l->lanes[l->count] = (struct lane){.kind = kind};
	return (long)l->count++;
}

/* ---- joining ---- */

/* Do two cells become one? `b` does not begin before `a`. */
static bool joins(const struct xsp_level_cell *a, const struct xsp_level_cell *b,
		  uint64_t resolution)
{
	const int64_t end = a->end_ns > b->end_ns ? a->end_ns : b->end_ns;

	return resolution > 0 && (uint64_t)end - (uint64_t)a->start_ns < resolution;
}

/* The name is decided by a majority vote, weighed by time (Boyer and Moore). */
static void add(struct xsp_level_cell *to, const struct xsp_level_cell *what)
{
	if (what->end_ns > to->end_ns)
		to->end_ns = what->end_ns;
	to->arguments = 0;
	xsp_add_saturated(&to->busy_ns, what->busy_ns);
	to->count = to->count <= UINT32_MAX - what->count ? to->count + what->count : UINT32_MAX;
	if (to->name == what->name) {
		to->votes += what->votes;
	} else if (what->votes > to->votes) {
		to->name = what->name;
		to->votes = what->votes - to->votes;
	} else {
		to->votes -= what->votes;
	}
}

/* Joins cells, which are sorted by their beginnings. Returns how many are left. `to` may be
 * `from`. */
static size_t join_spans(const struct xsp_level_cell *from, size_t count, uint64_t resolution,
			 bool apart, struct xsp_level_cell *to)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		struct xsp_level_cell *last = n > 0 ? &to[n - 1] : NULL;
		if (last != NULL && (joins(last, &from[i], resolution) ||
				     (apart && from[i].start_ns < last->end_ns)))
			add(last, &from[i]);
		else
			to[n++] = from[i];
	}
	return n;
}

static int64_t piece_of(const struct xsp_level_cell *c, uint64_t resolution)
{
	return c->start_ns / (int64_t)resolution;
}

/* For each piece of time keeps the least, the greatest and the last value, in the order in which
 * they came. */
static size_t join_values(struct xsp_level_cell *cells, size_t count, uint64_t resolution)
{
	size_t n = 0;

	for (size_t i = 0, end; i < count && resolution > 0; i = end) {
		size_t least = i, greatest = i;
		for (end = i + 1; end < count && piece_of(&cells[end], resolution) ==
							 piece_of(&cells[i], resolution);
		     end++) {
			if (cells[end].value < cells[least].value)
				least = end;
			if (cells[end].value > cells[greatest].value)
				greatest = end;
		}
		for (size_t k = i; k < end; k++)
			if (k == least || k == greatest || k + 1 == end)
				cells[n++] = cells[k];
	}
	return resolution > 0 ? n : count;
}

static XSP_ORDER(by_time, struct xsp_level_cell, XSP_RISING(start_ns) ?: XSP_RISING(end_ns));

/* ... and for values, which at one moment keep the order in which they came (`votes`, here). */
static XSP_ORDER(by_moment, struct xsp_level_cell, XSP_RISING(start_ns) ?: XSP_RISING(votes));

static void tidy(struct lane *lane, uint64_t resolution)
{
	const bool counter = lane->kind == XSP_LANE_COUNTER;

	if (lane->unordered)
		qsort(lane->cells, lane->count, sizeof(*lane->cells),
		      counter ? by_moment : by_time);
	lane->unordered = false;
	lane->count = counter ? join_values(lane->cells, lane->count, resolution)
			      : join_spans(lane->cells, lane->count, resolution,
					   lane->kind == XSP_LANE_NESTED, lane->cells);
}

/* ---- collecting ---- */

static void make_room(struct xsp_levels *l)
{
	/* each lane keeps a cell at any resolution */
	if (l->most / 8 < l->count)
		l->most = 8 * l->count;
	if (l->cells <= l->most)
		return;
	for (;;) {
		l->cells = 0;
		for (size_t i = 0; i < l->count; i++) {
			tidy(&l->lanes[i], l->resolution);
			l->cells += l->lanes[i].count;
		}
		if (l->cells <= l->most / 2)
			return;
		if (l->resolution >= LAST_RESOLUTION)
			break;
		l->resolution = l->resolution > 0 ? 2 * l->resolution : FIRST_RESOLUTION;
	}
	l->most = 2 * l->cells; /* there are very many lanes */
}

static int append(struct xsp_levels *l, struct lane *lane, const struct xsp_level_cell *cell)
{
	if (xsp_grow(&lane->cells, &lane->capacity, lane->count + 1) < 0)
		return -ENOMEM;
	if (lane->count > 0 && cell->start_ns < lane->cells[lane->count - 1].start_ns)
		lane->unordered = true;
	lane->cells[lane->count++] = *cell;
	if (++l->cells > l->most)
		make_room(l);
	return 0;
}

int xsp_levels_span(struct xsp_levels *l, size_t lane, int64_t start_ns, int64_t end_ns,
		    uint32_t name, uint32_t arguments)
{
	struct lane *to = &l->lanes[lane];
	struct xsp_level_cell *last = to->count > 0 ? &to->cells[to->count - 1] : NULL;
	struct xsp_level_cell cell = {.start_ns = start_ns,
				      .end_ns = end_ns > start_ns ? end_ns : start_ns,
				      .name = name,
				      .count = 1,
				      .arguments = arguments};

	cell.busy_ns = (uint64_t)cell.end_ns - (uint64_t)cell.start_ns;
	/* a span without duration votes, too */
	cell.votes = cell.busy_ns + 1;
	/* late spans wait for the sort: others may lie between two of them */
	if (last != NULL && !to->unordered && start_ns >= last->start_ns &&
	    joins(last, &cell, l->resolution)) {
		add(last, &cell);
		return 0;
	}
	return append(l, to, &cell);
}

int xsp_levels_value(struct xsp_levels *l, size_t lane, int64_t ns, double value)
{
	struct lane *to = &l->lanes[lane];
	const uint64_t number = to->count > 0 ? to->cells[to->count - 1].votes + 1 : 0;

	return append(l, to,
		      &(struct xsp_level_cell){
			      .start_ns = ns, .value = value, .count = 1, .votes = number});
}

/* ---- the end ---- */

/* Puts each cell into the first part whose cells have ended by then. */
static int part(struct xsp_levels *l, size_t index)
{
	size_t lanes[PARTS] = {index}, parts = 1, kept = 0;
	int64_t ends[PARTS] = {INT64_MIN};

	for (size_t i = 0; i < l->lanes[index].count; i++) {
		const struct xsp_level_cell cell = l->lanes[index].cells[i];
		size_t p = 0;
		while (p < parts && p < PARTS - 1 && cell.start_ns < ends[p])
			p++;
		if (p == parts) {
			const long added = xsp_levels_lane(l, XSP_LANE_NESTED);
			if (added < 0)
				return -ENOMEM;
			l->lanes[lanes[p - 1]].next_part = (size_t)added;
			lanes[parts++] = (size_t)added;
			ends[p] = INT64_MIN;
		}
		ends[p] = cell.end_ns > ends[p] ? cell.end_ns : ends[p];
		struct lane *to = &l->lanes[lanes[p]];
		if (p == 0)
			to->cells[kept++] = cell;
		else if (xsp_grow(&to->cells, &to->capacity, to->count + 1) < 0)
			return -ENOMEM;
		else
			to->cells[to->count++] = cell;
	}
	l->lanes[index].count = kept;
	if (parts == PARTS)
		tidy(&l->lanes[lanes[PARTS - 1]], l->resolution);
	return 0;
}

int xsp_levels_end(struct xsp_levels *l)
{
	const size_t count = l->count;
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++) {
		tidy(&l->lanes[i], l->resolution);
		if (l->lanes[i].kind == XSP_LANE_PARALLEL)
			rc = part(l, i);
	}
	return rc;
}

uint64_t xsp_levels_resolution(const struct xsp_levels *l)
{
	return l->resolution;
}

size_t xsp_levels_cells(const struct xsp_levels *l, size_t lane, struct xsp_level_cell **cells)
{
	*cells = l->lanes[lane].cells;
	return l->lanes[lane].count;
}

size_t xsp_levels_next_part(const struct xsp_levels *l, size_t lane)
{
	return l->lanes[lane].next_part;
}

size_t xsp_levels_coarser(const struct xsp_level_cell *cells, size_t count, uint64_t *resolution,
			  struct xsp_level_cell *out)
{
	uint64_t r = *resolution > 0 ? *resolution : FIRST_RESOLUTION / 4;

	while (count > FEW && r < LAST_RESOLUTION / 4) {
		r *= 4;
		size_t left = 0;
		/* counts first: `out` may be `cells` */
		struct xsp_level_cell last = {.count = 0};
		for (size_t i = 0; i < count; i++) {
			if (last.count > 0 && joins(&last, &cells[i], r)) {
				add(&last, &cells[i]);
				continue;
			}
			last = cells[i];
			left++;
		}
		if (left > count / 2)
			continue;
		*resolution = r;
		return join_spans(cells, count, r, false, out);
	}
	return 0;
}
