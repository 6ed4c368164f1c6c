/* SPDX-License-Identifier: BSD-2-Clause */
/* compare_memory.c - the memory of two sides: its peak, and what grows. */
#include <errno.h>
#include <math.h>

#include "analysis/compare/compare_private.h"
#include "base/rows/u64map.h"

#define WARM_UP_PIECES 2U /* in these, memory grows for other reasons */

static const struct xsp_series_memory *memory_of(const struct xsp_series *s, uint64_t hash)
{
	const struct xsp_series_memory *all;
	const size_t n = xsp_series_memory(s, &all);

	for (size_t i = 0; i < n; i++)
		if (all[i].hash == hash)
			return &all[i];
	return NULL;
}

static double steps_or_seconds(const struct pair *p, const struct xsp_series *s)
{
	return p->steps ? (double)xsp_series_step_count(s)
			: (double)xsp_series_recorded_ns(s) * 1e-9;
}

/* Steps, or seconds, up to a time that is given in pieces. */
static double units_until(const struct pair *p, const struct xsp_series *s, double at)
{
	return p->steps ? xsp_series_steps_until(s, at)
			: (double)xsp_series_recorded_ns(s) * 1e-9 / XSP_SERIES_PIECES * at;
}

/* How much the minimum rises from one piece of time to the next, per step or second. Memory that
 * a step takes and returns does not show in minima. Only the work between the two minima counts.
 * A program that waits for the machine may finish no step in a piece; then the next piece counts
 * for both. */
static int measure_growth(const struct pair *p, const struct xsp_series *s,
			  const struct xsp_series_memory *m, struct measured *out)
{
	double first = 0, first_units = 0, before = 0, before_units = 0;

	/* the last piece is the program's end, where freed memory says nothing */
	for (unsigned i = WARM_UP_PIECES; i + 1 < XSP_SERIES_PIECES; i++) {
		const bool there = m != NULL && i >= m->first;
		const double least = there ? (double)m->least[i] : 0;
		const double units = units_until(p, s, there ? m->least_at[i] : i);
		/* what was loaded before the first step is no growth of steps */
		if (i == WARM_UP_PIECES || !(before_units > 0)) {
			first = least;
			first_units = units;
		} else if (!(units > before_units)) {
			continue;
		} else if (!p->repeats &&
			   xsp_compare_put(out, (least - before) / (units - before_units)) < 0) {
			return -ENOMEM;
		}
		before = least;
		before_units = units;
	}
	if (!p->repeats)
		return 0;
	return xsp_compare_put(out, before_units > first_units
					    ? (before - first) / (before_units - first_units)
					    : NAN);
}

static int measure_peak(const struct pair *p, const struct xsp_series_memory *m,
			struct measured *out)
{
	if (m == NULL)
		return 0;
	if (p->repeats)
		return xsp_compare_put(out, xsp_compare_log((double)m->peak));
	for (unsigned i = m->first; i < XSP_SERIES_PIECES; i++)
		if (xsp_compare_put(out, xsp_compare_log((double)m->most[i])) < 0)
			return -ENOMEM;
	return 0;
}

static int measure(const struct pair *p, uint64_t hash, enum compared what, struct both *out)
{
	int rc = 0;

	for (unsigned side = 0; side < 2; side++) {
		out->sides[side].fastest = NAN;
		for (size_t i = p->from[side]; i < p->from[side + 1] && rc == 0; i++) {
			const struct xsp_series_memory *m = memory_of(p->series[i], hash);
			rc = what == COMPARED_GROWTH
				     ? measure_growth(p, p->series[i], m, &out->sides[side])
				     : measure_peak(p, m, &out->sides[side]);
		}
	}
	return rc == 0 ? xsp_compare_middles(out) : rc;
}

/* In how many pieces of time it rose to `typical` (a logarithm) instead of keeping it from
 * before. */
static size_t times_reached(const struct pair *p, unsigned side, uint64_t hash, double typical)
{
	size_t n = 0;

	for (size_t i = p->from[side]; i < p->from[side + 1]; i++) {
		const struct xsp_series_memory *m = memory_of(p->series[i], hash);
		for (unsigned k = 0; m != NULL && k < XSP_SERIES_PIECES; k++)
			n += m->rose[k] &&
			     fabs(xsp_compare_log((double)m->most[k]) - typical) < 1e-9;
	}
	return n;
}

/* The highest peak among the side's captures. */
static double most_of(const struct pair *p, unsigned side, uint64_t hash)
{
	double most = 0;

	for (size_t i = p->from[side]; i < p->from[side + 1]; i++) {
		const struct xsp_series_memory *m = memory_of(p->series[i], hash);
		most = fmax(most, m != NULL ? (double)m->peak : 0);
	}
	return most;
}

/* The least growth that is noticeable over the recording, compared with all memory. */
static double growth_that_matters(const struct pair *p, uint64_t hash)
{
	double steps = 0;

	for (size_t i = p->from[1]; i < p->from[2]; i++)
		steps += steps_or_seconds(p, p->series[i]) / (double)(p->from[2] - p->from[1]);
	return fmax(most_of(p, 0, hash) * p->threshold, 1 << 20) / fmax(steps, 1);
}

/* The spread in one recording comes from pieces of time, but the value that counts is the peak.
 * Where the two differ, the peak's spread is not known. */
static void take_most(const struct pair *p, uint64_t hash, struct comparison *c)
{
	for (unsigned side = 0; side < 2; side++)
		c->typical[side] = most_of(p, side, hash);
	c->raw = xsp_compare_log(c->typical[1]) - xsp_compare_log(c->typical[0]);
	if (c->d.known && !(fabs(c->raw - c->d.by) <= log1p(p->threshold))) {
		c->d = (struct xsp_difference){0};
		c->why = WHY_PEAK;
	}
}

static int compare_memory_of(struct pair *p, const struct xsp_series_memory *m, enum compared what)
{
	const bool peak = what == COMPARED_PEAK;
	struct comparison c = xsp_compare_row(what, m->name);
	struct both bytes = {0};
	int rc = measure(p, m->hash, what, &bytes);

	if (rc == 0)
		rc = xsp_compare_difference(p, &bytes, &c);
	if (rc == 0) {
		for (unsigned side = 0; side < 2; side++) {
			const double middle = bytes.middle[side];
			c.typical[side] = peak ? exp(middle) : middle;
			c.once = c.once ||
				 (peak && times_reached(p, side, m->hash, middle) < LEAST_BLOCKS);
		}
		c.raw = c.d.by;
		c.fastest = NAN;
		c.beyond = peak ? 0 : growth_that_matters(p, m->hash);
		if (peak && !p->repeats)
			take_most(p, m->hash, &c);
		rc = xsp_compare_add(p, &c);
	}
	xsp_compare_free(&bytes);
	return rc;
}

/* Could the place be one that a capture does not follow? */
static bool may_be_left_out(const struct pair *p, const struct xsp_series_memory *m)
{
	for (size_t i = 0; m->place && i < p->from[2]; i++)
		if (xsp_series_places_left_out(p->series[i]) > 0 &&
		    memory_of(p->series[i], m->hash) == NULL)
			return true;
	return false;
}

/* Compares each name once, as the first capture that has it lists it. */
int xsp_compare_memory(struct pair *p)
{
	struct xsp_u64map seen = {0};
	int rc = 0;

	for (size_t i = 0; i < p->from[2] && rc == 0; i++) {
		const struct xsp_series_memory *all;
		const size_t n = xsp_series_memory(p->series[i], &all);
		for (size_t k = 0; k < n && rc == 0; k++) {
			if (xsp_u64map_get(&seen, all[k].hash) != NULL ||
			    may_be_left_out(p, &all[k]))
				continue;
			rc = xsp_u64map_set(&seen, all[k].hash, 1);
			if (rc == 0)
				rc = compare_memory_of(p, &all[k], COMPARED_GROWTH);
			if (rc == 0 && !all[k].place)
				rc = compare_memory_of(p, &all[k], COMPARED_PEAK);
		}
	}
	xsp_u64map_free(&seen);
	return rc;
}
