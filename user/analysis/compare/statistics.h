/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * statistics.h - is one set of measurements larger than another? Pure functions.
 *
 * Measurements of one run follow each other in time and are not independent. A drift, or a machine
 * that is busy for a while, makes neighbours alike. Then the interval gets as wide as the few
 * independent values would make it.
 */
#ifndef XSP_ANALYSIS_STATISTICS_H
#define XSP_ANALYSIS_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

/* Reorders the n > 0 values. Interpolates linearly, as numpy's quantile does by default. */
double xsp_quantile(double *values, size_t n, double share);

/* Student's t: the probability above `t`, and the t above which the share `upper` (0 to 1) lies.
 * degrees > 0. */
double xsp_student_above(double t, double degrees);
double xsp_student_t(double upper, double degrees);

/* Correlation of each value with the one before it, -1 to 1; 0 if fewer than 4 values, or all
 * are equal. */
double xsp_autocorrelation(const double *values, size_t n);

/* The mean of b minus that of a, by Welch's t test. With `trim` (above 0, below 0.5), by Yuen's:
 * without that share of each side's smallest and largest values. */
struct xsp_difference {
	bool known; /* each side has at least two values */
	double by, low, high; /* with its 95 % interval */
	/* standard error (0: no spread on either side), and degrees of freedom */
	double error, degrees;
	double spread[2]; /* standard deviation of each side's values, as used for the error */
};
struct xsp_difference xsp_difference(const double *a, size_t a_count, const double *b,
				     size_t b_count, double trim);
/*
 * The median of b minus that of a, of few values of which some may be far off: less than half of a
 * side are in neither the medians nor the spread. So few show little of their spread: `variance` is
 * what is known of it otherwise, and counts like that of XSP_KNOWN_BEFORE values. At least 3 values
 * a side.
 */
#define XSP_KNOWN_BEFORE 4
struct xsp_difference xsp_difference_of_medians(const double *a, size_t a_count, const double *b,
						size_t b_count, double variance);
/* The standard error of a trimmed mean, and the values' standard deviation; n >= 4. */
double xsp_trimmed_error(const double *values, size_t n, double trim, double *spread);
/* Widens the interval by another, independent error. `known`: it is no estimate from the same few
 * values, which leaves more degrees of freedom. */
void xsp_difference_widen(struct xsp_difference *d, double error, bool known);
/* The probability of this difference, or a more extreme one, if the true difference were
 * `limit`. The difference must be known, with an error above 0. */
double xsp_difference_above(const struct xsp_difference *d, double limit);
double xsp_difference_below(const struct xsp_difference *d, double limit);

/* Holm's correction of n rising probabilities, in place. Accept all below s as differences: the
 * chance that any of them is false is at most s, whatever n is. */
void xsp_holm(double *p, size_t n);

#endif
