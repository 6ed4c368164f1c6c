/* SPDX-License-Identifier: BSD-2-Clause */
/* Growth without end is distinguished from ups and downs, for amounts with a known slope. */
#include <criterion/criterion.h>
#include <string.h>

#include "analysis/memory/growth.h"

#define SECOND 1000000000ULL
#define STEP_NS 7000000ULL

/* Steps of a program: each allocates `held` for half of its time, and adds amount(at) of the whole,
 * 0 to 1, for good. */
static struct xsp_slope run(uint64_t seconds, uint64_t step_ns, double (*amount)(double at),
			    double at_end)
{
	struct xsp_growth_clock c = {0};
	struct xsp_growth g = {0};
	const uint64_t end = seconds * SECOND;

	for (uint64_t t = 0; t < end; t += step_ns) {
		const uint64_t kept = (uint64_t)amount((double)t / (double)end);
		xsp_growth_time(&c, 5 * SECOND + t);
		xsp_growth_put(&c, &g, kept + 1000000);
		xsp_growth_time(&c, 5 * SECOND + t + step_ns / 2);
		xsp_growth_put(&c, &g, kept);
	}
	if (at_end >= 0)
		xsp_growth_put(&c, &g, (uint64_t)at_end);
	return xsp_growth_slope(&c, &g, NULL);
}

static double leak(double at)
{
	return 50000 + 100000 * at;
}

static double flat(double at)
{
	(void)at;
	return 123456;
}

/* A cache, or a model that is loaded. */
static double filled_once(double at)
{
	return at < 0.4 ? 1e6 * at : 4e5;
}

/* PyTorch's first steps, and what its lists of numbers need from then on. */
static double warmed_up(double at)
{
	return (at < 0.4 ? 1e6 * at : 4e5) + 1e4 * at;
}

/* What a cycle of the garbage collector holds. */
static double collected(double at)
{
	return 1000 * (double)((int)(at * 700) % 97);
}

Test(growth, slope_and_its_interval)
{
	const struct xsp_slope s = run(10, STEP_NS, leak, -1);

	cr_expect(s.known && s.grows);
	cr_expect(s.low <= 10000 && 10000 <= s.high, "%.0f to %.0f", s.low, s.high);
	cr_expect_float_eq(s.slope, 10000, 300);
}

Test(growth, long_steps)
{
	cr_expect(run(60, 3 * SECOND, leak, -1).grows);
}

Test(growth, until_the_program_ends)
{
	cr_expect(run(10, STEP_NS, leak, 0).grows, "all is freed at its exit");
	cr_expect_not(run(10, STEP_NS, leak, 60000).grows, "much is freed at the end of an epoch");
}

Test(growth, what_does_not_grow)
{
	cr_expect_not(run(10, STEP_NS, flat, -1).grows);
	cr_expect_not(run(10, STEP_NS, warmed_up, -1).grows, "a long beginning, and trifles");
	cr_expect_not(run(10, STEP_NS, filled_once, -1).grows);
	cr_expect_not(run(10, STEP_NS, collected, -1).grows);
}

Test(growth, too_little_to_tell)
{
	struct xsp_growth_clock c = {0};
	struct xsp_growth g = {0};

	cr_expect_not(xsp_growth_slope(&c, &g, NULL).known);
	for (uint64_t t = 1; t < 100; t++) {
		xsp_growth_time(&c, t * 1000000);
		xsp_growth_put(&c, &g, 1000 * t);
	}
	cr_expect_not(xsp_growth_slope(&c, &g, NULL).known);
}

/* Chance is no growth: of many amounts that walk at random from step to step, none is named. */
Test(growth, noise)
{
	uint64_t state = 42;

	for (int i = 0; i < 500; i++) {
		struct xsp_growth_clock c = {0};
		struct xsp_growth g = {0};
		for (uint64_t t = 0; t < 200; t++) {
			state = state * 6364136223846793005ULL + 1442695040888963407ULL;
			xsp_growth_time(&c, t * 10000000);
			xsp_growth_put(&c, &g, state >> 40);
		}
		cr_assert_not(xsp_growth_slope(&c, &g, NULL).grows);
	}
}

/* 1,000 bytes a step. Steps take 2 ms at first and 20 ms later, with a pause between. Whatever the
 * speed, that is what a step takes. */
Test(growth, a_step_where_steps_go_at_different_speeds)
{
	const uint64_t first = 5 * SECOND;
	struct xsp_growth_steps steps = {.start_ns = first};
	struct xsp_growth_clock c = {0};
	struct xsp_growth g = {0};
	uint64_t at = first, kept = 0;

	for (unsigned i = 0; i < 2500; i++) {
		const uint64_t ns = i < 2000 ? 2000000 : 20000000;
		xsp_growth_time(&c, at + ns / 2);
		xsp_growth_put(&c, &g, kept += 1000);
		xsp_growth_step(&steps, at, at + ns);
		at += ns + (i == 2200 ? SECOND : 0);
	}
	xsp_growth_time(&c, at);
	const struct xsp_slope s = xsp_growth_slope(&c, &g, &steps);
	cr_expect(s.grows && s.steps_known);
	cr_expect_float_eq(s.a_step.slope, 1000, 5, "%f", s.a_step.slope);
	cr_expect(s.a_step.low <= 1000 && 1000 <= s.a_step.high, "%f to %f", s.a_step.low,
		  s.a_step.high);
	cr_expect(s.a_step.high - s.a_step.low < 20);
	double sum = 0;
	for (unsigned i = 0; i < XSP_GROWTH_STEP_PIECES; i++)
		sum += steps.steps[i];
	cr_expect_float_eq(sum, 2500, 1e-6, "each is counted once");
	cr_expect_not(xsp_growth_slope(&c, &g, NULL).steps_known);
}
