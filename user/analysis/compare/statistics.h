/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * statistics.h - is one set of measurements larger than another? Pure functions.
 *
 * Measurements of one run follow each other in time and are not independent: where the neighbours of a value are like
 * it (a drift, a machine that is busy for a while), the interval is made as wide as so few independent ones would have it.
 */
#ifndef XSP_ANALYSIS_STATISTICS_H
#define XSP_ANALYSIS_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

/* Of n > 0 values, which are put in another order. Between two of them: linear, as numpy's quantile does by default. */
double xsp_quantile(double *values, size_t n, double share);

/* Of a share that n > 0 independent draws found: the interval in which the true one is in 95 cases of 100, by Wilson. */
void xsp_share_interval(double share, double n, double *low, double *high);

/* Student's t: the probability of more than `t`, and the t above which `upper` (0 to 1) of it lies. degrees > 0. */
double xsp_student_above(double t, double degrees);
double xsp_student_t(double upper, double degrees);

/* What a value has in common with the one before it: -1 to 1; 0 of fewer than 4 values, or equal ones. */
double xsp_autocorrelation(const double *values, size_t n);

/* mean(b) - mean(a), by Welch's t test; with `trim` above 0 (and below 0.5) without so large a share of each side's
 * smallest and largest values, by Yuen's. */
struct xsp_difference {
	bool known; /* two values a side at least */
	double by, low, high; /* the interval in which it is in 95 cases of 100 */
	double error, degrees; /* standard error, 0: all values of a side are one; of freedom */
	double spread[2]; /* standard deviation of the values of each side, as the error has it */
};
struct xsp_difference xsp_difference(const double *a, size_t a_count, const double *b,
				     size_t b_count, double trim);
/* Makes the interval as wide as another error beside its own would. */
void xsp_difference_widen(struct xsp_difference *d, double error);
/* The probability of such a difference, or one that is farther off, if the true one were `limit`: how sure it is to be
 * above the limit, or below it. It must be known, and its error above 0. */
double xsp_difference_above(const struct xsp_difference *d, double limit);
double xsp_difference_below(const struct xsp_difference *d, double limit);

/* Holm's correction of n probabilities that rise, in place: if all below a share s are taken for differences, the chance that
 * any of them is none is at most s, however many were looked at. */
void xsp_holm(double *p, size_t n);

#endif
