/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/memory/growth.h"

#include <math.h>
#include <string.h>

#define FIRST_PIECE_NS 1000000U
/* The program's start and end take this share of the time. */
#define BEGINNING 8 /* one piece in so many */
#define END 16
/* An amount grows if it rose at least this often, never fell, spans enough pieces, and rose in each
 * third of them. That rules out what is filled once and then stays. The last third must have its
 * share of the rise: that rules out a long start followed by trifles. By chance, one amount in a
 * hundred thousand would pass that only goes up and down. */
#define RISES 8
#define RISES_A_THIRD 2
#define LAST_THIRDS_SHARE 10 /* one part in so many */
#define LEAST_PIECES 10
#define LEAST_STEPS 2 /* during that time, for growth in one step */

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Joins pieces two by two. */
static void halve(struct xsp_growth *g)
{
	for (unsigned i = 0; i < g->count; i += 2)
		g->least[i / 2] =
			i + 1 < g->count ? least_of(g->least[i], g->least[i + 1]) : g->least[i];
	g->count = (g->count + 1) / 2;
	g->doubled++;
}

void xsp_growth_time(struct xsp_growth_clock *c, uint64_t ns)
{
	if (c->piece_ns == 0)
		*c = (struct xsp_growth_clock){
			.start_ns = ns, .last_ns = ns, .piece_ns = FIRST_PIECE_NS};
	if (ns > c->last_ns)
		c->last_ns = ns;
	while ((c->last_ns - c->start_ns) / c->piece_ns >= XSP_GROWTH_PIECES) {
		c->piece_ns *= 2;
		c->doubled++;
	}
}

/* Extends the last amount to the clock's time. */
static void pass(const struct xsp_growth_clock *c, struct xsp_growth *g)
{
	const unsigned at = (unsigned)((c->last_ns - c->start_ns) / c->piece_ns);

	while (g->doubled < c->doubled)
		halve(g);
	while (g->count <= at)
		g->least[g->count++] = g->now;
}

void xsp_growth_put(const struct xsp_growth_clock *c, struct xsp_growth *g, uint64_t amount)
{
	pass(c, g);
	g->now = amount;
	g->least[g->count - 1] = least_of(g->least[g->count - 1], amount);
}

#define Z95 1.96

/* Student's t, 95 %, two-sided, to within one percent for `degrees` of freedom from 8 on. */
static double student(double degrees)
{
	return Z95 + 2.4 / degrees + 2.9 / (degrees * degrees);
}

/* The quantile of a chi-squared distribution, by that of the normal one (Wilson and Hilferty). */
static double chi_squared(double degrees, double z)
{
	const double root = 1 - 2 / (9 * degrees) + z * sqrt(2 / (9 * degrees));

	return degrees * root * root * root;
}

/*
 * Samples come by chance: what grew is off by the square root of 1 / blocks, and that stays, so that
 * the points are no independent errors around the line, which `error` is made from. Of a count the
 * interval is that of a Poisson distribution; `sampling`: its variance, relative.
 */
static void set_interval(struct xsp_rate *r, double error, double sampling)
{
	r->low = r->slope - error;
	r->high = r->slope + error;
	if (sampling <= 0 || r->slope <= 0)
		return;
	const double off = error / Z95 / r->slope, blocks = 1 / (off * off + sampling);
	r->low = r->slope * chi_squared(2 * blocks, -Z95) / (2 * blocks);
	r->high = r->slope * chi_squared(2 * blocks + 2, Z95) / (2 * blocks);
}

static void fit(const uint64_t *y, const double *x, unsigned n, double sampling,
		struct xsp_rate *out)
{
	double mean_y = 0, mean_x = 0, sxx = 0, sxy = 0, residual = 0;

	for (unsigned i = 0; i < n; i++) {
		mean_y += (double)y[i] / n;
		mean_x += x[i] / n;
	}
	for (unsigned i = 0; i < n; i++) {
		sxx += (x[i] - mean_x) * (x[i] - mean_x);
		sxy += (x[i] - mean_x) * ((double)y[i] - mean_y);
	}
	out->slope = sxy / sxx;
	for (unsigned i = 0; i < n; i++) {
		const double off = (double)y[i] - mean_y - out->slope * (x[i] - mean_x);
		residual += off * off;
	}
	set_interval(out, student(n - 2) * sqrt(residual / (n - 2) / sxx), sampling);
}

/* ---- steps ---- */

static void widen(struct xsp_growth_steps *s)
{
	for (unsigned i = 0; i < XSP_GROWTH_STEP_PIECES / 2; i++)
		s->steps[i] = s->steps[2 * i] + s->steps[2 * i + 1];
	memset(s->steps + XSP_GROWTH_STEP_PIECES / 2, 0, sizeof(s->steps) / 2);
	s->piece_ns *= 2;
}

void xsp_growth_step(struct xsp_growth_steps *s, uint64_t from_ns, uint64_t to_ns)
{
	if (s->piece_ns == 0)
		s->piece_ns = FIRST_PIECE_NS;
	if (from_ns < s->start_ns || to_ns <= from_ns)
		return;
	while ((to_ns - s->start_ns) / s->piece_ns >= XSP_GROWTH_STEP_PIECES)
		widen(s);
	const double ns = (double)(to_ns - from_ns);
	for (uint64_t at = from_ns; at < to_ns;) {
		const uint64_t piece = (at - s->start_ns) / s->piece_ns;
		const uint64_t next = least_of(s->start_ns + (piece + 1) * s->piece_ns, to_ns);
		s->steps[piece] += (double)(next - at) / ns;
		at = next;
	}
}

/* Counts the steps up to each of the times, which are in order. */
static void count_steps(const struct xsp_growth_steps *s, uint64_t start_ns, uint64_t piece_ns,
			double *by, unsigned count)
{
	uint64_t passed = 0;
	double sum = 0;

	for (unsigned i = 0; i < count; i++) {
		const uint64_t ns = start_ns + i * piece_ns;
		by[i] = 0;
		if (ns <= s->start_ns || s->piece_ns == 0)
			continue;
		const uint64_t piece = (ns - s->start_ns) / s->piece_ns;
		for (; passed < piece && passed < XSP_GROWTH_STEP_PIECES; passed++)
			sum += s->steps[passed];
		by[i] = sum;
		if (piece < XSP_GROWTH_STEP_PIECES)
			by[i] += s->steps[piece] * (double)((ns - s->start_ns) % s->piece_ns) /
				 (double)s->piece_ns;
	}
}

/*
 * Growth for each step: where steps vary in speed, the slope over time fits no step. What grows is
 * least as its piece begins. A step may be going on then, and may have grown already or not. Least
 * squares may therefore be off by SLACK steps over all of them.
 */
#define SLACK 1.5

static void fit_steps(const struct xsp_growth_steps *s, const struct xsp_growth *g,
		      uint64_t start_ns, uint64_t piece_ns, double sampling, struct xsp_slope *out)
{
	double x[XSP_GROWTH_PIECES];

	count_steps(s, start_ns, piece_ns, x, g->count);
	const double steps = x[g->count - 1] - x[0];
	out->steps_known = steps >= LEAST_STEPS;
	if (!out->steps_known)
		return;
	fit(g->least, x, g->count, sampling, &out->a_step);
	const double slack = fabs(out->a_step.slope) * SLACK / steps;
	out->a_step.low -= slack;
	out->a_step.high += slack;
}

/* ---- slopes ---- */

static bool rises(const uint64_t *y, unsigned n)
{
	unsigned times[3] = {0};

	for (unsigned i = 1; i < n; i++) {
		if (y[i] < y[i - 1])
			return false;
		times[3 * i / n] += y[i] > y[i - 1];
	}
	for (unsigned i = 0; i < 3; i++)
		if (times[i] < RISES_A_THIRD)
			return false;
	if (y[n - 1] - y[2 * n / 3] < (y[n - 1] - y[0]) / LAST_THIRDS_SHARE)
		return false;
	return times[0] + times[1] + times[2] >= RISES;
}

/* So many sampled blocks, none of which was given back, and so much of the rise in each half of the
 * time: a constant leak of 13 blocks is missed once in a thousand times. */
#define SAMPLES 6
#define HALFS_SHARE 20 /* one part in so many */

/* Too few samples to rise often. */
static bool keeps_samples(const struct xsp_growth *g, const uint64_t *y, unsigned n,
			  const struct xsp_growth_samples *samples)
{
	const double rise = (double)y[n - 1] - (double)y[0],
		     later = (double)y[n - 1] - (double)y[n / 2];

	return samples != NULL && samples->all_kept && samples->grain > 0 &&
	       (double)g->now >= SAMPLES * samples->grain && later * HALFS_SHARE >= rise &&
	       (rise - later) * HALFS_SHARE >= rise;
}

/* The variance of a line's slope, where it follows a sum of independent parts, is 6/5 of what two
 * points at its ends would give. */
static double sampling_of(const struct xsp_growth *all, const struct xsp_growth_samples *samples)
{
	const double rise = (double)all->least[all->count - 1] - (double)all->least[0];

	return samples != NULL && rise > 0 ? 1.2 * samples->grain / rise : 0;
}

/*
 * Joins pieces until each holds a whole step of the program, if enough pieces remain. What is
 * partly freed at the end has not grown for good; what is freed completely may have, since the
 * program ends.
 */
struct xsp_slope xsp_growth_slope(const struct xsp_growth_clock *c, const struct xsp_growth *g,
				  const struct xsp_growth_steps *steps,
				  const struct xsp_growth_samples *samples)
{
	struct xsp_slope out = {0};
	struct xsp_growth all = *g;
	uint64_t piece_ns = c->piece_ns;
	double seconds[XSP_GROWTH_PIECES];
	struct xsp_rate a_second;

	if (c->last_ns - c->start_ns < XSP_GROWTH_LEAST_NS)
		return out;
	pass(c, &all);
	const unsigned first = all.count / BEGINNING;
	const unsigned n = all.count - first - all.count / END;
	const uint64_t start_ns = c->start_ns + first * piece_ns;
	memmove(all.least, all.least + first, n * sizeof(*all.least));
	const bool kept = g->now == 0 || g->now >= all.least[n - 1];
	for (all.count = n; all.count >= LEAST_PIECES && !out.grows; piece_ns *= 2) {
		for (unsigned i = 0; i < all.count; i++)
			seconds[i] = i * (double)piece_ns * 1e-9;
		const double sampling = sampling_of(&all, samples);
		fit(all.least, seconds, all.count, sampling, &a_second);
		out.slope = a_second.slope;
		out.low = a_second.low;
		out.high = a_second.high;
		if (steps != NULL)
			fit_steps(steps, &all, start_ns, piece_ns, sampling, &out);
		out.known = true;
		out.grows = kept && out.low > 0 &&
			    (rises(all.least, all.count) ||
			     keeps_samples(g, all.least, all.count, samples));
		halve(&all);
	}
	return out;
}
