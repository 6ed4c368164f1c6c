/* SPDX-License-Identifier: BSD-2-Clause */
/* compare_measure.c - what is measured on two sides, at which points, and how such measurements
 * differ. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/compare_private.h"
#include "base/rows/grow.h"

#define BLOCKS 16U /* of a capture's steps */
#define STEPS_IN_BLOCK 5U /* enough for the median to ignore interruptions */
#define LEAST_STEPS 12U
#define TRIMMED 0.2 /* share of the blocks, at either end */
#define RESTLESS 0.1 /* standard deviation of blocks, as a share */
#define FAST 0.1 /* share of the fastest steps */

int xsp_compare_put(struct measured *m, double value)
{
	return XSP_APPEND(m->values, m->capacity, m->count, value);
}

double xsp_compare_log(double value)
{
	return value > 0 ? log(value) : NAN;
}

void xsp_compare_free(struct both *b)
{
	free(b->sides[0].values);
	free(b->sides[1].values);
}

int xsp_compare_add(struct pair *p, const struct comparison *c)
{
	return XSP_APPEND(p->rows, p->capacity, p->count, *c);
}

struct comparison xsp_compare_row(enum compared what, const char *name)
{
	return (struct comparison){.what = what,
				   .name = name,
				   .in = {true, true},
				   .typical = {NAN, NAN},
				   .calls = {NAN, NAN},
				   .fastest = NAN,
				   .share = 1};
}

/* ---- measurements: logarithms of times, as ratios are wanted ---- */

/* Which part of a capture's steps is measured. */
enum part { PART_WHOLE, PART_ROW, PART_OUTSIDE, PART_NOTHING };

/* Medians of blocks of consecutive steps; with repeats one median of all steps. */
static int measure_steps(const struct pair *p, const struct xsp_series *s, enum part part,
			 const struct xsp_series_row *row, struct measured *m)
{
	double ns[XSP_SERIES_STEPS], sorted[XSP_SERIES_STEPS];
	const size_t n = xsp_series_steps(s, ns);
	size_t blocks = n < LEAST_STEPS			    ? 0
			: n < STEPS_IN_BLOCK * LEAST_BLOCKS ? LEAST_BLOCKS
			: n < STEPS_IN_BLOCK * BLOCKS	    ? n / STEPS_IN_BLOCK
							    : BLOCKS;

	if (part == PART_ROW || part == PART_OUTSIDE)
		xsp_series_shares(s, row, ns, NULL);
	if (part == PART_NOTHING)
		memset(ns, 0, n * sizeof(*ns));
	if (p->repeats)
		blocks = n >= LEAST_STEPS;
	for (size_t i = 0; i < blocks; i++) {
		const size_t from = i * n / blocks, to = (i + 1) * n / blocks;
		memcpy(sorted, ns + from, (to - from) * sizeof(*ns));
		if (xsp_compare_put(m, xsp_compare_log(xsp_quantile(sorted, to - from, 0.5))) < 0)
			return -ENOMEM;
	}
	memcpy(sorted, ns, n * sizeof(*ns));
	m->fastest = fmin(m->fastest, n > 0 ? xsp_compare_log(xsp_quantile(sorted, n, FAST)) : NAN);
	return 0;
}

/* Means of calls in each piece of time. */
static int measure_calls(const struct pair *p, const struct xsp_series_row *row, struct measured *m)
{
	double known[XSP_SERIES_PIECES], ns;
	size_t n = 0;

	for (unsigned i = 0; i < XSP_SERIES_PIECES; i++) {
		const bool there = row != NULL && xsp_series_call(row, i, &ns) && ns > 0;
		const double value = there ? log(ns) : NAN;
		if (!p->repeats && xsp_compare_put(m, value) < 0)
			return -ENOMEM;
		if (!there)
			continue;
		known[n++] = value;
		m->fastest = fmin(m->fastest, value); /* fmin() ignores NAN */
	}
	return p->repeats ? xsp_compare_put(m, n > 0 ? xsp_quantile(known, n, 0.5) : NAN) : 0;
}

bool xsp_compare_is_of_steps(enum compared what)
{
	return what == COMPARED_STEP || what == COMPARED_IN_STEP;
}

static int measure(const struct pair *p, const struct joined *j, enum compared what, unsigned side,
		   struct measured *m)
{
	int rc = 0;

	m->fastest = NAN;
	for (size_t i = p->from[side]; i < p->from[side + 1] && rc == 0; i++) {
		const struct xsp_series_row *row = j != NULL ? j->rows[i] : NULL;
		const enum part part = what == COMPARED_STEP ? PART_WHOLE
				       : j == NULL	     ? PART_OUTSIDE
				       : row == NULL	     ? PART_NOTHING
							     : PART_ROW;
		if (xsp_compare_is_of_steps(what))
			rc = measure_steps(p, p->series[i], part, row, m);
		else
			rc = measure_calls(p, row, m);
	}
	return rc;
}

int xsp_compare_times(const struct pair *p, const struct joined *j, enum compared what,
		      struct both *out)
{
	int rc = measure(p, j, what, 0, &out->sides[0]);

	if (rc == 0)
		rc = measure(p, j, what, 1, &out->sides[1]);
	return rc == 0 ? xsp_compare_middles(out) : rc;
}

/* ---- differences ---- */

/* Removes unknown values and returns how many there were. */
static size_t keep_known(struct measured *m)
{
	const size_t all = m->count;

	m->count = 0;
	for (size_t i = 0; i < all; i++)
		if (!isnan(m->values[i]))
			m->values[m->count++] = m->values[i];
	return all - m->count;
}

int xsp_compare_middle(const struct measured *m, double *out)
{
	struct measured copy = {0};
	int rc = 0;

	for (size_t i = 0; i < m->count && rc == 0; i++)
		if (!isnan(m->values[i]))
			rc = xsp_compare_put(&copy, m->values[i]);
	*out = rc == 0 && copy.count > 0 ? xsp_quantile(copy.values, copy.count, 0.5) : NAN;
	free(copy.values);
	return rc;
}

int xsp_compare_middles(struct both *b)
{
	int rc = xsp_compare_middle(&b->sides[0], &b->middle[0]);

	return rc == 0 ? xsp_compare_middle(&b->sides[1], &b->middle[1]) : rc;
}

/* Adds an estimate of the differences between runs, which one run cannot show. It equals the
 * spread of the run's blocks where that is a tenth or more; it is a fraction of it below that. */
static double between_runs(double between_blocks)
{
	return between_blocks * fmin(1, between_blocks / RESTLESS);
}

void xsp_compare_difference(const struct pair *p, struct both *b, struct comparison *c)
{
	struct measured *sides = b->sides;
	const size_t least = p->repeats ? LEAST_REPEATS : LEAST_BLOCKS;
	const size_t unknown = keep_known(&sides[0]) + keep_known(&sides[1]);

	if (sides[0].count < least || sides[1].count < least ||
	    (unknown > 0 && xsp_compare_is_of_steps(c->what))) {
		c->why = WHY_FEW;
		return;
	}
	c->d = xsp_difference(sides[0].values, sides[0].count, sides[1].values, sides[1].count,
			      p->repeats ? 0 : TRIMMED);
	if (p->repeats)
		return;
	c->fastest = sides[1].fastest - sides[0].fastest;
	if (c->what != COMPARED_GROWTH && c->d.error > 0)
		xsp_difference_widen(
			&c->d, hypot(between_runs(c->d.spread[0]), between_runs(c->d.spread[1])));
}
