/* SPDX-License-Identifier: BSD-2-Clause */
/* Random spans, in order and out of it, as cells: none is lost, and none appears that did not
 * exist. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "page/timeline/levels.h"

#define SPANS 20000U

struct span {
	int64_t start_ns, end_ns;
	uint32_t name;
};

struct made {
	struct span spans[SPANS]; /* in order */
	unsigned seed;
};

static unsigned chance(struct made *m, unsigned below)
{
	m->seed = m->seed * 1103515245U + 12345U;
	return (m->seed >> 8) % below;
}

/* One after the other; now and then a long one, a long gap, or no time at all. */
static void make(struct made *m, unsigned seed)
{
	int64_t now = 1000;

	m->seed = seed;
	for (size_t i = 0; i < SPANS; i++) {
		now += chance(m, 10) == 0 ? chance(m, 1000000) : chance(m, 300);
		m->spans[i].start_ns = now;
		now += chance(m, 20) == 0 ? chance(m, 1000000) : chance(m, 500);
		m->spans[i].end_ns = now;
		m->spans[i].name = chance(m, 5);
	}
}

/* Most in order, some much later. */
static void put(struct made *m, struct xsp_levels *l, size_t lane, unsigned late)
{
	size_t *held = calloc(SPANS, sizeof(*held)), count = 0;

	cr_assert_not_null(held);
	for (size_t i = 0; i < SPANS; i++) {
		const struct span *s = &m->spans[i];
		if (late > 0 && chance(m, late) == 0)
			held[count++] = i;
		else
			cr_assert_eq(xsp_levels_span(l, lane, s->start_ns, s->end_ns, s->name, 0),
				     0);
	}
	while (count > 0) {
		const size_t k = chance(m, (unsigned)count);
		const struct span *s = &m->spans[held[k]];
		cr_assert_eq(xsp_levels_span(l, lane, s->start_ns, s->end_ns, s->name, 0), 0);
		held[k] = held[--count];
	}
	free(held);
}

/* Cells represent the spans in them: their number, from the first to the last and, if several,
 * close together. */
static void check(const struct made *m, const struct xsp_level_cell *cells, size_t count,
		  uint64_t resolution)
{
	size_t at = 0;

	for (size_t i = 0; i < count; i++) {
		const struct xsp_level_cell *c = &cells[i];
		uint64_t votes[5] = {0}, all = 0;
		cr_assert(i == 0 || c->start_ns >= cells[i - 1].end_ns);
		cr_assert_leq(at + c->count, SPANS);
		cr_assert_eq(c->start_ns, m->spans[at].start_ns);
		for (uint32_t k = 0; k < c->count; k++, at++) {
			const struct span *s = &m->spans[at];
			const uint64_t duration = (uint64_t)(s->end_ns - s->start_ns);
			votes[s->name] += duration + 1;
			all += duration + 1;
		}
		cr_assert_eq(c->end_ns, m->spans[at - 1].end_ns);
		cr_assert_eq(c->busy_ns, all - c->count, "gaps are no spans' time");
		cr_assert(c->count == 1 || (uint64_t)(c->end_ns - c->start_ns) < resolution);
		for (uint32_t n = 0; n < 5; n++)
			cr_assert(votes[n] * 2 <= all || c->name == n);
	}
	cr_assert_eq(at, SPANS, "no span is lost");
}

/* All levels, as they are written; how many cells they have. */
static size_t check_levels(const struct made *m, struct xsp_levels *l, size_t lane)
{
	uint64_t resolution = xsp_levels_resolution(l);
	struct xsp_level_cell *cells, *scratch = calloc(SPANS, sizeof(*scratch));
	size_t count = xsp_levels_cells(l, lane, &cells), sum = 0;

	cr_assert_not_null(scratch);
	while (count > 0) {
		const uint64_t finer = resolution;
		const size_t before = count;
		check(m, cells, count, resolution);
		sum += count;
		count = xsp_levels_coarser(cells, count, &resolution, scratch);
		cells = scratch;
		cr_assert(count == 0 || (resolution >= 4 * finer && 2 * count <= before));
	}
	free(scratch);
	return sum;
}

static void check_lanes(size_t cells, unsigned late)
{
	for (unsigned seed = 1; seed <= 8; seed++) {
		struct made *m = calloc(1, sizeof(*m));
		struct xsp_levels *l;
		cr_assert_not_null(m);
		make(m, seed);
		cr_assert_eq(xsp_levels_new(cells, &l), 0);
		const long first = xsp_levels_lane(l, XSP_LANE_NESTED);
		const long second = xsp_levels_lane(l, XSP_LANE_NESTED);
		cr_assert(first >= 0 && second >= 0);
		put(m, l, (size_t)first, late);
		put(m, l, (size_t)second, 0);
		cr_assert_eq(xsp_levels_end(l), 0);
		const size_t sum =
			check_levels(m, l, (size_t)first) + check_levels(m, l, (size_t)second);
		cr_assert_leq(sum, cells);
		cr_assert_eq(xsp_levels_resolution(l) > 0, cells < 4 * SPANS);
		xsp_levels_free(l);
		free(m);
	}
}

Test(levels, all_spans_are_exact_where_there_is_room)
{
	check_lanes(4 * SPANS, 0);
	check_lanes(4 * SPANS, 7);
}

Test(levels, cells_are_the_spans_in_them_and_no_more_than_asked_for)
{
	check_lanes(8000, 0);
	check_lanes(1000, 0);
}

Test(levels, late_spans_are_where_they_belong)
{
	check_lanes(8000, 7);
	check_lanes(1000, 2);
}

/* A long range around short ones, and two that cross. */
Test(levels, what_overlaps_goes_into_parts)
{
	static const struct span spans[] = {
		{100, 110, 1}, {112, 130, 2}, {0, 1000, 3}, {125, 140, 4}, {2000, 2010, 5}};
	struct xsp_levels *l;
	struct xsp_level_cell *cells;
	size_t sum = 0, parts = 0;

	cr_assert_eq(xsp_levels_new(1000, &l), 0);
	size_t lane = (size_t)xsp_levels_lane(l, XSP_LANE_PARALLEL);
	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
		cr_assert_eq(xsp_levels_span(l, lane, spans[i].start_ns, spans[i].end_ns,
					     spans[i].name, 0),
			     0);
	cr_assert_eq(xsp_levels_end(l), 0);
	do {
		const size_t count = xsp_levels_cells(l, lane, &cells);
		for (size_t i = 0; i < count; i++) {
			cr_assert(i == 0 || cells[i].start_ns >= cells[i - 1].end_ns);
			cr_assert_eq(cells[i].count, 1);
			sum += cells[i].name;
		}
		parts++;
		lane = xsp_levels_next_part(l, lane);
	} while (lane != 0);
	cr_assert_eq(parts, 3);
	cr_assert_eq(sum, 1 + 2 + 3 + 4 + 5);
	xsp_levels_free(l);
}

/* A damaged capture: spans that should not overlap are shown as one. */
Test(levels, nested_spans_that_overlap_are_one_cell)
{
	struct xsp_levels *l;
	struct xsp_level_cell *cells;

	cr_assert_eq(xsp_levels_new(1000, &l), 0);
	const size_t lane = (size_t)xsp_levels_lane(l, XSP_LANE_NESTED);
	cr_assert_eq(xsp_levels_span(l, lane, 50, 90, 1, 0), 0);
	cr_assert_eq(xsp_levels_span(l, lane, 10, 60, 2, 0), 0);
	cr_assert_eq(xsp_levels_span(l, lane, 90, 95, 3, 0), 0);
	cr_assert_eq(xsp_levels_end(l), 0);
	cr_assert_eq(xsp_levels_cells(l, lane, &cells), 2);
	cr_assert_eq(cells[0].start_ns, 10);
	cr_assert_eq(cells[0].end_ns, 90);
	cr_assert_eq(cells[0].count, 2);
	cr_assert_eq(cells[0].name, 2);
	cr_assert_eq(cells[1].start_ns, 90);
	xsp_levels_free(l);
}

Test(levels, a_counter_keeps_its_extremes_and_its_end)
{
	static const size_t peak = 31337, trough = 54321;
	double last = 0;
	struct xsp_levels *l;
	struct xsp_level_cell *cells;
	struct made m = {.seed = 5};
	bool high = false, low = false;

	cr_assert_eq(xsp_levels_new(1000, &l), 0);
	const size_t lane = (size_t)xsp_levels_lane(l, XSP_LANE_COUNTER);
	for (size_t i = 0; i < 100000; i++) {
		last = i == peak ? 1e9 : i == trough ? -1e9 : chance(&m, 1000);
		cr_assert_eq(xsp_levels_value(l, lane, (int64_t)i * 1000, last), 0);
	}
	cr_assert_eq(xsp_levels_end(l), 0);
	const size_t count = xsp_levels_cells(l, lane, &cells);
	cr_assert_leq(count, 1000);
	for (size_t i = 0; i < count; i++) {
		cr_assert(i == 0 || cells[i].start_ns >= cells[i - 1].start_ns);
		high = high || (cells[i].value > 1e8 && cells[i].start_ns == (int64_t)peak * 1000);
		low = low || (cells[i].value < -1e8 && cells[i].start_ns == (int64_t)trough * 1000);
	}
	cr_assert(high && low);
	cr_assert_float_eq(cells[count - 1].value, last, 1e-9);
	cr_assert_eq(cells[count - 1].start_ns, 99999000);
	xsp_levels_free(l);
}
