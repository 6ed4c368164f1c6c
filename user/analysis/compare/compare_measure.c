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
/* What one run differs from the next, as a standard deviation, however even its blocks are. */
#define BETWEEN_RUNS 0.005
/* Of the time that other programs took, as much may be in a run's times by the clock; and times on a CPU
 * are off by that part of the share that was taken (caches, clocks, the other thread of a core). */
#define OFF_BY_READY 0.5
#define CPU_OFF_BY_READY 0.01

int xsp_compare_put(struct measured *m, double value)
{
	size_t count = m->count;
	const int rc = XSP_APPEND(m->of, m->of_capacity, count, m->capture);

	return rc < 0 ? rc : XSP_APPEND(m->values, m->capacity, m->count, value);
}

double xsp_compare_log(double value)
{
	return value > 0 ? log(value) : NAN;
}

void xsp_compare_free(struct both *b)
{
	for (unsigned side = 0; side < 2; side++) {
		free(b->sides[side].values);
		free(b->sides[side].of);
	}
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

/* Adds an estimate of the differences between runs, which one run cannot show. It equals the
 * spread of the run's blocks where that is a tenth or more; it is a fraction of it below that. */
static double between_runs(double between_blocks)
{
	return between_blocks * fmin(1, between_blocks / RESTLESS);
}

/* Medians of blocks of consecutive steps. */
static int measure_steps(const struct xsp_series *s, enum part part,
			 const struct xsp_series_row *row, bool on_cpu, struct measured *m)
{
	double ns[XSP_SERIES_STEPS], sorted[XSP_SERIES_STEPS];
	const size_t n = xsp_series_steps(s, ns);
	const size_t blocks = n < LEAST_STEPS			  ? 0
			      : n < STEPS_IN_BLOCK * LEAST_BLOCKS ? LEAST_BLOCKS
			      : n < STEPS_IN_BLOCK * BLOCKS	  ? n / STEPS_IN_BLOCK
								  : BLOCKS;

	if (part == PART_ROW || part == PART_OUTSIDE)
		xsp_series_shares(s, row, on_cpu, ns, NULL);
	if (part == PART_NOTHING)
		memset(ns, 0, n * sizeof(*ns));
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
static int measure_calls(const struct xsp_series_row *row, bool on_cpu, struct measured *m)
{
	double ns;

	for (unsigned i = 0; i < XSP_SERIES_PIECES; i++) {
		const bool there = row != NULL && xsp_series_call(row, i, on_cpu, &ns) && ns > 0;
		if (xsp_compare_put(m, there ? log(ns) : NAN) < 0)
			return -ENOMEM;
		if (there)
			m->fastest = fmin(m->fastest, log(ns)); /* fmin() ignores NAN */
	}
	return 0;
}

bool xsp_compare_is_of_steps(enum compared what)
{
	return what == COMPARED_STEP || what == COMPARED_IN_STEP;
}

/* Where it computes in all captures, its time on a CPU is compared: no other program changes that. */
static bool is_on_cpu(const struct pair *p, const struct joined *j)
{
	bool any = false;

	for (size_t i = 0; j != NULL && i < p->from[2]; i++) {
		if (j->rows[i] != NULL && !xsp_series_computes(j->rows[i]))
			return false;
		any = any || j->rows[i] != NULL;
	}
	return any;
}

static int measure(const struct pair *p, const struct joined *j, enum compared what, unsigned side,
		   struct measured *m)
{
	const bool on_cpu = is_on_cpu(p, j);
	int rc = 0;

	m->fastest = NAN;
	m->by_clock = !on_cpu && what != COMPARED_KERNEL;
	for (size_t i = p->from[side]; i < p->from[side + 1] && rc == 0; i++) {
		const struct xsp_series_row *row = j != NULL ? j->rows[i] : NULL;
		m->capture = (uint32_t)i;
		const enum part part = what == COMPARED_STEP ? PART_WHOLE
				       : j == NULL	     ? PART_OUTSIDE
				       : row == NULL	     ? PART_NOTHING
							     : PART_ROW;
		if (xsp_compare_is_of_steps(what))
			rc = measure_steps(p->series[i], part, row, on_cpu, m);
		else
			rc = measure_calls(row, on_cpu, m);
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
	for (size_t i = 0; i < all; i++) {
		if (isnan(m->values[i]))
			continue;
		m->of[m->count] = m->of[i];
		m->values[m->count++] = m->values[i];
	}
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
	free(copy.of);
	return rc;
}

int xsp_compare_middles(struct both *b)
{
	int rc = xsp_compare_middle(&b->sides[0], &b->middle[0]);

	return rc == 0 ? xsp_compare_middle(&b->sides[1], &b->middle[1]) : rc;
}

/* The variance of a capture's times, for what runs differ by anyway, and for what the machine did. */
static double variance_of_run(const struct pair *p, const struct measured *m, size_t capture)
{
	const double ready = xsp_series_ready_share(p->series[capture]);
	const double off = m->by_clock ? OFF_BY_READY * ready / fmax(1 - ready, 0.01)
				       : CPU_OFF_BY_READY * ready;

	return BETWEEN_RUNS * BETWEEN_RUNS + off * off;
}

/* Makes each capture's points one value, their median. Appends to `variances` what each capture shows
 * of the variance of such a value. */
static int join_captures(const struct pair *p, struct measured *m, struct measured *variances)
{
	size_t n = 0;
	int rc = 0;

	for (size_t from = 0, to; from < m->count && rc == 0; from = to) {
		double spread = 0, error = 0;
		for (to = from + 1; to < m->count && m->of[to] == m->of[from];)
			to++;
		if (to - from >= LEAST_BLOCKS)
			error = xsp_trimmed_error(m->values + from, to - from, TRIMMED, &spread);
		rc = xsp_compare_put(variances, error * error + pow(between_runs(spread), 2) +
							variance_of_run(p, m, m->of[from]));
		m->values[n++] = xsp_quantile(m->values + from, to - from, 0.5);
	}
	m->count = n;
	return rc;
}

/* Both sides' captures as values; *variance: that of one of them. */
static int join_sides(const struct pair *p, struct measured sides[2], double *variance)
{
	struct measured variances = {0};
	int rc = join_captures(p, &sides[0], &variances);

	if (rc == 0)
		rc = join_captures(p, &sides[1], &variances);
	/* what computes is right in most captures; what waits is off in all that were disturbed */
	if (rc == 0 && !sides[0].by_clock)
		rc = xsp_compare_middle(&variances, variance);
	for (size_t i = 0; i < variances.count && sides[0].by_clock; i++)
		*variance += variances.values[i] / (double)variances.count;
	free(variances.values);
	free(variances.of);
	return rc;
}

/* What runs differ by, and what is due to the machine, of a side whose captures are no repeats. */
static double error_of_runs(const struct pair *p, const struct measured *m, unsigned side)
{
	double sum = 0;

	for (size_t i = p->from[side]; i < p->from[side + 1]; i++)
		sum += variance_of_run(p, m, i);
	return sqrt(sum) / (double)(p->from[side + 1] - p->from[side]);
}

int xsp_compare_difference(const struct pair *p, struct both *b, struct comparison *c)
{
	struct measured *sides = b->sides;
	const bool times = c->what != COMPARED_PEAK && c->what != COMPARED_GROWTH;
	const size_t least = p->repeats ? LEAST_REPEATS : LEAST_BLOCKS;
	const size_t unknown = keep_known(&sides[0]) + keep_known(&sides[1]);
	double variance = 0;

	if (p->repeats && times && join_sides(p, sides, &variance) < 0)
		return -ENOMEM;
	if (sides[0].count < least || sides[1].count < least ||
	    (unknown > 0 && xsp_compare_is_of_steps(c->what))) {
		c->why = WHY_FEW;
		return 0;
	}
	if (p->repeats && times) {
		c->d = xsp_difference_of_medians(sides[0].values, sides[0].count, sides[1].values,
						 sides[1].count, variance);
		return 0;
	}
	c->d = xsp_difference(sides[0].values, sides[0].count, sides[1].values, sides[1].count,
			      p->repeats ? 0 : TRIMMED);
	if (p->repeats)
		return 0;
	c->fastest = sides[1].fastest - sides[0].fastest;
	if (c->what == COMPARED_GROWTH || !(c->d.error > 0))
		return 0;
	xsp_difference_widen(
		&c->d, hypot(between_runs(c->d.spread[0]), between_runs(c->d.spread[1])), false);
	xsp_difference_widen(
		&c->d, hypot(error_of_runs(p, &sides[0], 0), error_of_runs(p, &sides[1], 1)), true);
	return 0;
}
