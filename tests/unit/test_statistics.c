/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics against published figures, and against what they promise: how often chance alone is taken for a difference. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

#include "analysis/compare/statistics.h"
#include "base/share_interval.h"

static void near_to(double got, double expected, double within)
{
	cr_expect(fabs(got - expected) <= within, "%.9g, expected %.9g", got, expected);
}

/* numpy.quantile */
Test(statistics, quantiles)
{
	double four[] = {4, 1, 3, 2}, one[] = {7};

	near_to(xsp_quantile(four, 4, 0.5), 2.5, 1e-12);
	near_to(xsp_quantile(four, 4, 0.1), 1.3, 1e-12);
	near_to(xsp_quantile(four, 4, 1), 4, 1e-12);
	near_to(xsp_quantile(one, 1, 0.25), 7, 0);
}

/* R: prop.test(5, 10, correct = FALSE), and so on */
Test(statistics, interval_of_a_share)
{
	const struct {
		double share, n, low, high;
	} table[] = {{0.5, 10, 0.2365931, 0.7634069},
		     {0.6, 100, 0.5020026, 0.6905987},
		     {1, 20, 0.8388748, 1},
		     {0, 20, 0, 0.1611252}};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		double low, high;
		xsp_share_interval(table[i].share, table[i].n, &low, &high);
		near_to(low, table[i].low, 1e-6);
		near_to(high, table[i].high, 1e-6);
	}
}

/* Tables of the t distribution; R: pt(2, 10, lower.tail = FALSE) */
Test(statistics, student)
{
	const struct {
		double upper, degrees, t;
	} table[] = {{0.025, 1, 12.706},   {0.025, 2, 4.303}, {0.025, 10, 2.228},
		     {0.025, 30, 2.042},   {0.005, 5, 4.032}, {0.0005, 8, 5.041},
		     {0.0005, 120, 3.373}, {0.05, 20, 1.725}, {0.1, 3, 1.638}};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		near_to(xsp_student_t(table[i].upper, table[i].degrees), table[i].t, 0.00051);
		near_to(xsp_student_above(table[i].t, table[i].degrees), table[i].upper, 1e-4);
		near_to(xsp_student_above(-table[i].t, table[i].degrees), 1 - table[i].upper, 1e-4);
	}
	near_to(xsp_student_above(2, 10), 0.036694, 5e-7);
	near_to(xsp_student_above(0, 4), 0.5, 1e-12);
	near_to(xsp_student_t(0.975, 2), -4.303, 0.0005);
}

/* Student's sleep data (1908); R: t.test(extra ~ group): t = -1.8608, df = 17.776, p-value =
 * 0.07939, 95 percent confidence interval -3.3654832 to 0.2054832. R assumes independent values, so
 * they are here in an order in which neighbours have nothing in common. */
Test(statistics, welch)
{
	const double a[] = {3.4, -1.6, 3.7, -1.2, 2.0, -0.2, 0.8, -0.1, 0.7, 0.0};
	const double b[] = {4.4, 0.1, 5.5, -0.1, 4.6, 0.8, 3.4, 1.1, 1.9, 1.6};
	const struct xsp_difference d = xsp_difference(a, 10, b, 10, 0);

	cr_expect(d.known);
	near_to(d.by, 1.58, 1e-9);
	near_to(d.low, -0.2054832, 5e-6);
	near_to(d.high, 3.3654832, 5e-6);
	near_to(d.degrees, 17.776, 0.0005);
	near_to(2 * xsp_difference_above(&d, 0), 0.07939, 5e-6);
	near_to(xsp_difference_below(&d, 0), 1 - 0.07939 / 2, 5e-6);
	/* Yuen's, by numpy from the formulas of Wilcox, Introduction to Robust Estimation (the same lines give
	 * 3.4463884028073513 for the example of scipy.stats.ttest_ind with trim=.2) */
	const struct xsp_difference trimmed = xsp_difference(a, 10, b, 10, 0.2);
	near_to(trimmed.by, 1.666666666666667, 1e-12);
	near_to(trimmed.error, 1.030857248442609, 1e-12);
	near_to(trimmed.degrees, 8.264708513637695, 1e-9);
}

/* R: acf(1:10)$acf[2] */
Test(statistics, autocorrelation)
{
	const double rising[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, flat[] = {2, 2, 2, 2, 2};

	near_to(xsp_autocorrelation(rising, 10), 0.7, 1e-12);
	near_to(xsp_autocorrelation(flat, 5), 0, 0);
	near_to(xsp_autocorrelation(rising, 3), 0, 0);
}

/* R: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm") */
Test(statistics, holm)
{
	double p[] = {0.01, 0.02, 0.03, 0.04, 0.05}, q[] = {0.2, 0.6, 0.9};
	const double expected[] = {0.05, 0.08, 0.09, 0.09, 0.09};

	xsp_holm(p, 5);
	for (size_t i = 0; i < 5; i++)
		near_to(p[i], expected[i], 1e-12);
	xsp_holm(q, 3);
	near_to(q[0], 0.6, 1e-12);
	near_to(q[1], 1, 0);
	near_to(q[2], 1, 0);
}

Test(statistics, what_cannot_be_known)
{
	const double few[] = {1}, equal[] = {3, 3, 3}, others[] = {4, 4, 4}, wild[] = {1, NAN, 2};

	cr_expect_not(xsp_difference(few, 1, equal, 3, 0).known);
	cr_expect_not(xsp_difference(equal, 3, wild, 3, 0.2).known);
	const struct xsp_difference d = xsp_difference(equal, 3, others, 3, 0);
	cr_expect(d.known);
	cr_expect_eq(d.error, 0);
	cr_expect_eq(d.by, 1);
	cr_expect_eq(d.low, 1);
	cr_expect_eq(d.high, 1);
}

/* Two of five far off change neither the medians nor the spread; what is known before counts as much
 * as four values. */
Test(statistics, medians_of_few)
{
	const double a[] = {1.0, 9.0, 1.1, 0.9, 7.0}, b[] = {2.0, 2.1, 30.0, 1.9, 2.05};
	const struct xsp_difference d = xsp_difference_of_medians(a, 5, b, 5, 0.01);

	cr_expect(d.known);
	cr_expect_float_eq(d.by, 2.05 - 1.1, 1e-12);
	cr_expect_eq(d.degrees, 4 + 2 + 2);
	cr_expect(d.low > 0.5 && d.high < 1.4, "%f to %f", d.low, d.high);
	cr_expect_not(xsp_difference_of_medians(a, 2, b, 5, 0.01).known);
}

/* ---- chance ---- */

static double uniform(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
	const double r = sqrt(-2 * log(uniform(state)));

	return r * cos(2 * 3.14159265358979 * uniform(state));
}

#define RUNS 2000
#define UNITS 16

/* Of RUNS pairs without a difference, the share in which the 95 % interval does not contain 0.
 * `common`: of a value with the previous one; `tails`: one of ten is much larger; `drift`: over a
 * whole run, in standard deviations. */
static double false_share(double common, bool tails, double drift)
{
	uint64_t state = 42;
	unsigned wrong = 0;

	for (int run = 0; run < RUNS; run++) {
		double side[2][UNITS];
		for (int k = 0; k < 2; k++) {
			const double slope = drift * normal(&state) / UNITS;
			double last = normal(&state);
			for (int i = 0; i < UNITS; i++) {
				last = common * last + sqrt(1 - common * common) * normal(&state);
				side[k][i] = last + slope * (i - UNITS / 2);
				if (tails && uniform(&state) < 0.1)
					side[k][i] += 10 * uniform(&state);
			}
		}
		const struct xsp_difference d = xsp_difference(side[0], UNITS, side[1], UNITS, 0.2);
		wrong += d.low > 0 || d.high < 0;
	}
	return (double)wrong / RUNS;
}

/* The interval contains the truth as often as it says: of 2,000, within 1 %. For values that have
 * much in common, 16 of them do not show well how much. */
Test(statistics, as_often_wrong_as_is_said)
{
	const double independent = false_share(0, false, 0), tails = false_share(0, true, 0),
		     drift = false_share(0, false, 4), common = false_share(0.3, false, 0),
		     much = false_share(0.6, false, 0);

	cr_log_info("wrong: %.3f independent, %.3f tails, %.3f drift, %.3f and %.3f common",
		    independent, tails, drift, common, much);
	cr_expect_leq(independent, 0.05 + 0.01);
	cr_expect_leq(tails, 0.05 + 0.01);
	cr_expect_leq(drift, 0.05 + 0.01);
	cr_expect_leq(common, 0.07 + 0.01);
	cr_expect_leq(much, 0.12 + 0.01);
}
