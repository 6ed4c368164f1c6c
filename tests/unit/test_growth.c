/* SPDX-License-Identifier: BSD-2-Clause */
/* Growth without end is distinguished from ups and downs, for amounts with a known slope. */
#include <criterion/criterion.h>
#include <math.h>
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
	return xsp_growth_slope(&c, &g, NULL, NULL);
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

	cr_expect_not(xsp_growth_slope(&c, &g, NULL, NULL).known);
	for (uint64_t t = 1; t < 100; t++) {
		xsp_growth_time(&c, t * 1000000);
		xsp_growth_put(&c, &g, 1000 * t);
	}
	cr_expect_not(xsp_growth_slope(&c, &g, NULL, NULL).known);
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
		cr_assert_not(xsp_growth_slope(&c, &g, NULL, NULL).grows);
	}
}

/* A leak of 400 blocks of 3,000 bytes a second for 7 s, of which a sample is taken as by
 * --memory=malloc (decode_heap()): its rate lies in the interval in 90 to 99 of 100 runs, and it is
 * found in all but one of thousands. */
static double chance(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*state >> 11) / (double)(1ULL << 53);
}

static struct xsp_slope sampled_leak(double period, double until, uint64_t *state)
{
	const double size = 3000;
	struct xsp_growth_clock c = {0};
	struct xsp_growth g = {0};
	double amount = 0;

	for (unsigned i = 0; i < 2800; i++) {
		xsp_growth_time(&c, 5 * SECOND + i * (SECOND / 400));
		if (i < 2800 * until && chance(state) < size / period)
			amount += period;
		xsp_growth_put(&c, &g, (uint64_t)amount);
	}
	return xsp_growth_slope(
		&c, &g, NULL,
		&(struct xsp_growth_samples){.grain = period - size, .all_kept = true});
}

Test(growth, the_interval_of_a_sampled_leak_holds_its_rate)
{
	static const double periods[] = {65536, 131072, 524288};
	uint64_t state = 7;

	for (unsigned p = 0; p < 3; p++) {
		unsigned in = 0, found = 0;
		double width = 0;
		for (unsigned i = 0; i < 1000; i++) {
			const struct xsp_slope s = sampled_leak(periods[p], 1, &state);
			in += s.low <= 1.2e6 && 1.2e6 <= s.high;
			found += s.grows;
			width += (s.high - s.low) / 1.2e6 / 1000;
		}
		cr_expect(in >= 900 && in <= 990, "period %.0f: in %u of 1000 intervals",
			  periods[p], in);
		cr_expect_geq(found, 998, "period %.0f: found in %u of 1000", periods[p], found);
		/* four standard deviations of the number of blocks in the 13 of 16 parts that count */
		const double least = 4 / sqrt(1.2e6 * 7 * 13 / 16 / periods[p]);
		cr_expect(width > 0.8 * least && width < 1.5 * least,
			  "period %.0f: as wide as %.2f of it, not %.2f", periods[p], width, least);
	}
}

Test(growth, samples_of_what_is_filled_once)
{
	uint64_t state = 7;

	for (unsigned i = 0; i < 1000; i++)
		cr_assert_not(sampled_leak(i % 2 ? 65536 : 524288, 0.4, &state).grows);
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
	const struct xsp_slope s = xsp_growth_slope(&c, &g, &steps, NULL);
	cr_expect(s.grows && s.steps_known);
	cr_expect_float_eq(s.a_step.slope, 1000, 5, "%f", s.a_step.slope);
	cr_expect(s.a_step.low <= 1000 && 1000 <= s.a_step.high, "%f to %f", s.a_step.low,
		  s.a_step.high);
	cr_expect(s.a_step.high - s.a_step.low < 20);
	double sum = 0;
	for (unsigned i = 0; i < XSP_GROWTH_STEP_PIECES; i++)
		sum += steps.steps[i];
	cr_expect_float_eq(sum, 2500, 1e-6, "each is counted once");
	cr_expect_not(xsp_growth_slope(&c, &g, NULL, NULL).steps_known);
}
