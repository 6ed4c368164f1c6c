/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/compare/statistics.h"

#include <math.h>
#include <stdlib.h>

#include "base/rows/order.h"

#define CONFIDENCE 0.95

static XSP_ORDER(by_value, double, XSP_COMPARE(*x, *y));

double xsp_quantile(double *values, size_t n, double share)
{
	qsort(values, n, sizeof(*values), by_value);
	const double at = share * (double)(n - 1);
	const size_t i = (size_t)at;
	return i + 1 < n ? values[i] + (at - (double)i) * (values[i + 1] - values[i])
			 : values[n - 1];
}

/* ---- Student's t, by the incomplete beta function ---- */

/* Its continued fraction, by Lentz's method: Numerical Recipes, 6.4. */
static double beta_fraction(double a, double b, double x)
{
	const double least = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), result;

	d = 1 / (fabs(d) < least ? least : d);
	result = d;
	for (int m = 1; m <= 1000; m++) {
		const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		for (int i = 0; i < 2; i++) {
			const double step = i == 0 ? even : odd;
			d = 1 + step * d;
			c = 1 + step / c;
			d = 1 / (fabs(d) < least ? least : d);
			c = fabs(c) < least ? least : c;
			result *= c * d;
		}
		if (fabs(c * d - 1) < 1e-15)
			break;
	}
	return result;
}

/* Regularised: I_x(a, b). Not by lgamma(), which writes to a global. */
static double incomplete_beta(double a, double b, double x)
{
	int sign;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	const double front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) +
				 a * log(x) + b * log1p(-x));
	return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
					 : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double xsp_student_above(double t, double degrees)
{
	const double tail = incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t)) / 2;

	return t > 0 ? tail : 1 - tail;
}

double xsp_student_t(double upper, double degrees)
{
	double low = 0, high = 1;

	if (upper > 0.5)
		return -xsp_student_t(1 - upper, degrees);
	while (high < 1e15 && xsp_student_above(high, degrees) > upper)
		high *= 2;
	for (int i = 0; i < 100; i++) {
		const double middle = (low + high) / 2;
		if (xsp_student_above(middle, degrees) > upper)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

/* ---- differences ---- */

/* One side: mean, its squared error, and that error's degrees of freedom. */
struct side {
	double mean, error2, degrees, spread;
};

/* The value with `rank` others below it. It checks few of them and moves none. */
static double value_at(const double *values, size_t n, size_t rank)
{
	for (size_t i = 0; i < n; i++) {
		size_t below = 0;
		for (size_t k = 0; k < n; k++)
			below += values[k] < values[i] || (k < i && !(values[k] > values[i]));
		if (below == rank)
			return values[i];
	}
	return NAN; /* some value is NAN */
}

static double between(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

/* Autocorrelation of values that are clamped to low and high. */
static double autocorrelation(const double *values, size_t n, double low, double high)
{
	double mean = 0, squares = 0, products = 0;

	for (size_t i = 0; i < n; i++)
		mean += between(values[i], low, high) / (double)n;
	for (size_t i = 0; i < n; i++) {
		const double off = between(values[i], low, high) - mean;
		squares += off * off;
		if (i > 0)
			products += off * (between(values[i - 1], low, high) - mean);
	}
	return n < 4 || !(squares > 0) ? 0 : products / squares;
}

double xsp_autocorrelation(const double *values, size_t n)
{
	return autocorrelation(values, n, -INFINITY, INFINITY);
}

/* Yuen's: the mean of the trimmed values, and the spread of all values with both tails clamped. */
static struct side side_of(const double *values, size_t n, double trim)
{
	const size_t cut = (size_t)(trim * (double)n);
	const double left = (double)(n - 2 * cut);
	const double low = value_at(values, n, cut), high = value_at(values, n, n - 1 - cut);
	double sum = 0, mean = 0, squares = 0;

	for (size_t i = 0; i < n; i++)
		sum += between(values[i], low, high);
	mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += pow(between(values[i], low, high) - mean, 2);
	/* Independent values correlate by about -1/n, so that is where zero begins. A pure drift
	 * comes close to 1. */
	double common = autocorrelation(values, n, low, high) + (n >= 4 ? 1 / (double)n : 0);
	common = common < 0 ? 0 : common > 0.9 ? 0.9 : common;
	const double less = (1 + common) / (1 - common), degrees = left / less - 1;
	return (struct side){
		.mean = (sum - (double)cut * (low + high)) / left,
		.error2 = squares / (left * (left - 1)) * less,
		.degrees = degrees > 1 ? degrees : 1,
		.spread = sqrt(squares / (left * (left - 1)) * (double)n),
	};
}

#define MANY_DEGREES 60

void xsp_difference_widen(struct xsp_difference *d, double error, bool known)
{
	const double before = d->error;

	d->error = hypot(before, error);
	if (known && before > 0)
		d->degrees = fmin(fmax(d->degrees, MANY_DEGREES),
				  d->degrees * pow(d->error / before, 4));
	const double reach = d->error * xsp_student_t((1 - CONFIDENCE) / 2, d->degrees);
	d->low = d->by - reach;
	d->high = d->by + reach;
}

struct xsp_difference xsp_difference(const double *a, size_t a_count, const double *b,
				     size_t b_count, double trim)
{
	struct xsp_difference d = {0};

	if (a_count < 2 || b_count < 2)
		return d;
	const struct side x = side_of(a, a_count, trim), y = side_of(b, b_count, trim);
	const double error2 = x.error2 + y.error2;
	d.known = isfinite(x.mean) && isfinite(y.mean) && isfinite(error2);
	d.by = y.mean - x.mean;
	/* rounding leaves an error that is no spread */
	d.error = sqrt(error2) > 1e-12 * (fabs(x.mean) + fabs(y.mean)) ? sqrt(error2) : 0;
	d.degrees = d.error > 0 ? error2 * error2 /
					  (x.error2 * x.error2 / x.degrees +
					   y.error2 * y.error2 / y.degrees)
				: (double)(a_count + b_count - 2);
	d.spread[0] = x.spread;
	d.spread[1] = y.spread;
	xsp_difference_widen(&d, 0, false);
	return d;
}

double xsp_trimmed_error(const double *values, size_t n, double trim, double *spread)
{
	const struct side s = side_of(values, n, trim);

	*spread = s.spread;
	return sqrt(s.error2);
}

/* Squares of what the smaller half of the values is off their median, made as large as all would be
 * by chance, and how many there are. */
static double squares_around(const double *values, size_t n, double middle, double *degrees)
{
	/* for a normal distribution, by the number of values: from 200,000 draws */
	static const double shown[] = {0.350, 0.470, 0.264, 0.333, 0.227, 0.278, 0.207, 0.242};
	const size_t left_out = (n - 1) / 2, kept = n - left_out;
	const double share = n - 3 < sizeof(shown) / sizeof(shown[0]) ? shown[n - 3] : 0.2;
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		const double off = fabs(values[i] - middle);
		size_t below = 0;
		for (size_t k = 0; k < n; k++)
			below += fabs(values[k] - middle) < off ||
				 (k < i && !(fabs(values[k] - middle) > off));
		sum += below < kept ? off * off : 0;
	}
	*degrees += (double)(kept - 1);
	return sum / share;
}

static double median_of(const double *values, size_t n)
{
	return (value_at(values, n, (n - 1) / 2) + value_at(values, n, n / 2)) / 2;
}

struct xsp_difference xsp_difference_of_medians(const double *a, size_t a_count, const double *b,
						size_t b_count, double variance)
{
	struct xsp_difference d = {0};

	if (a_count < 3 || b_count < 3)
		return d;
	const double x = median_of(a, a_count), y = median_of(b, b_count);
	double degrees = XSP_KNOWN_BEFORE, squares = XSP_KNOWN_BEFORE * variance;
	squares += squares_around(a, a_count, x, &degrees);
	squares += squares_around(b, b_count, y, &degrees);
	/* the variance of a median of n values is at most pi / 2n of theirs */
	const double error2 =
		squares / degrees * M_PI_2 * (1 / (double)a_count + 1 / (double)b_count);
	d.known = isfinite(x) && isfinite(y) && isfinite(error2);
	d.by = y - x;
	d.error = sqrt(error2);
	d.degrees = degrees;
	d.spread[0] = d.spread[1] = sqrt(squares / degrees);
	xsp_difference_widen(&d, 0, false);
	return d;
}

double xsp_difference_above(const struct xsp_difference *d, double limit)
{
	return xsp_student_above((d->by - limit) / d->error, d->degrees);
}

double xsp_difference_below(const struct xsp_difference *d, double limit)
{
	return xsp_student_above((limit - d->by) / d->error, d->degrees);
}

void xsp_holm(double *p, size_t n)
{
	double least = 0;

	for (size_t i = 0; i < n; i++) {
		const double corrected = p[i] * (double)(n - i);
		least = corrected > least ? corrected : least;
		p[i] = least < 1 ? least : 1;
	}
}
