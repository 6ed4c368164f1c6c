/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compare_judge.c - which differences are not chance.
 *
 * A difference counts if its interval lies beyond the threshold after Holm's correction for all
 * comparisons. A slower or busier machine slows everything down. So the common change of most
 * operators is subtracted from each operator (compare_names.c), and that of a device's kernels from
 * each kernel. One recording a side cannot show how runs differ by chance. Then the fastest steps
 * or calls must have changed as well.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/compare/compare_private.h"
#include "base/rows/order.h"

/* Rows with a smaller share of the time are not judged. In one recording such a short time is
 * mostly the probes' own, which varies from run to run. */
#define SMALL 0.01
#define SMALL_WITH_REPEATS 0.001
#define CHANCE 0.05

static bool is_memory(const struct comparison *c)
{
	return c->what == COMPARED_PEAK || c->what == COMPARED_GROWTH;
}

/* The difference beyond which there is more, or less. */
static double limit(const struct pair *p, const struct comparison *c, bool more)
{
	if (c->what == COMPARED_GROWTH)
		return more ? c->beyond : -c->beyond;
	return log(more ? 1 + p->threshold : 1 - p->threshold);
}

/* A value that all repeats share needs no spread, and neither does memory that grows evenly. In
 * one recording, a peak that is reached again and again counts as repeated. A peak that is
 * reached once is a single value, however long it lasts. */
static bool is_exact(const struct pair *p, const struct comparison *c)
{
	return c->what == COMPARED_GROWTH || (c->what == COMPARED_PEAK && (p->repeats || !c->once));
}

static bool is_judged(const struct pair *p, struct comparison *c)
{
	if (!c->in[0] || !c->in[1]) {
		c->why = WHY_RARE;
		c->verdict = c->seldom ? VERDICT_NONE : c->in[0] ? VERDICT_GONE : VERDICT_NEW;
		return false;
	}
	if (c->share < (p->repeats ? SMALL_WITH_REPEATS : SMALL))
		c->why = WHY_SMALL;
	else if (c->d.known && !(c->d.error > 0) && !is_exact(p, c))
		c->why = c->what == COMPARED_PEAK ? WHY_ONCE : WHY_NO_SPREAD;
	else if (c->d.known)
		return true;
	return false;
}

/* The probability that the true difference stays within the threshold. It is below 0.05 where
 * the 95 % interval lies beyond the threshold. */
static double probability(const struct pair *p, const struct comparison *c)
{
	const double up = limit(p, c, true), down = limit(p, c, false);

	if (!(c->d.error > 0))
		return c->d.by > up || c->d.by < down ? 0 : 1;
	return fmin(1,
		    2 * fmin(xsp_difference_above(&c->d, up), xsp_difference_below(&c->d, down)));
}

/* Could the machine, a common change or the other side explain the difference? */
static bool may_be_another(const struct pair *p, struct comparison *c, bool more)
{
	const double edge = limit(p, c, more);
	const bool changed = more ? c->raw > edge : c->raw < edge;

	if (c->what == COMPARED_GROWTH) {
		c->why = WHY_NO_GROWTH;
		return c->typical[more ? 1 : 0] < c->beyond;
	}
	if (is_memory(c))
		return false;
	if (c->what == COMPARED_KERNEL && c->alone && !p->repeats) {
		c->why = WHY_ALONE;
		return true;
	}
	c->why = p->repeats ? WHY_ALL : WHY_FASTEST;
	return !(changed && (p->repeats || (more ? c->fastest > edge : c->fastest < edge)));
}

static void judge(const struct pair *p, struct comparison *c)
{
	const bool above = c->d.low > limit(p, c, true), below = c->d.high < limit(p, c, false);

	c->why = above || below ? WHY_CHANCE : WHY_NOISE;
	if (c->p < CHANCE && (above || below)) {
		if (!may_be_another(p, c, above))
			c->verdict = above ? VERDICT_MORE : VERDICT_LESS;
	} else if (c->d.low >= limit(p, c, false) && c->d.high <= limit(p, c, true)) {
		const bool alike = c->raw >= limit(p, c, false) && c->raw <= limit(p, c, true);
		c->verdict = alike ? VERDICT_SAME : VERDICT_NONE;
		c->why = WHY_ALL;
	}
}

struct ranked {
	double p;
	size_t row;
};

static XSP_ORDER(by_p, struct ranked, XSP_RISING(p));

int xsp_compare_judge(struct pair *p)
{
	struct ranked *ranked = calloc(p->count + 1, sizeof(*ranked));
	double *corrected = calloc(p->count + 1, sizeof(*corrected));
	int rc = ranked != NULL && corrected != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < p->count && rc == 0; i++)
		if (is_judged(p, &p->rows[i]))
			ranked[p->judged++] = (struct ranked){probability(p, &p->rows[i]), i};
	if (rc == 0) {
		XSP_SORT(ranked, p->judged, by_p);
		for (size_t i = 0; i < p->judged; i++)
			corrected[i] = ranked[i].p;
		xsp_holm(corrected, p->judged);
		for (size_t i = 0; i < p->judged; i++) {
			p->rows[ranked[i].row].p = corrected[i];
			judge(p, &p->rows[ranked[i].row]);
		}
	}
	free(ranked);
	free(corrected);
	return rc;
}
