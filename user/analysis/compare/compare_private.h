/* SPDX-License-Identifier: BSD-2-Clause */
/* compare_private.h - what measuring, judging and reporting share. */
#ifndef XSP_ANALYSIS_COMPARE_PRIVATE_H
#define XSP_ANALYSIS_COMPARE_PRIVATE_H

#include "analysis/compare/compare.h"
#include "analysis/compare/statistics.h"

enum compared {
	COMPARED_STEP, /* the time of a step */
	COMPARED_IN_STEP, /* an operator's own time in a step */
	COMPARED_OPERATOR, /* own time of a call, as in the next three */
	COMPARED_LINE,
	COMPARED_MODULE,
	COMPARED_KERNEL,
	COMPARED_PEAK, /* memory at its most */
	COMPARED_GROWTH, /* growth of memory, bytes per step or second */
	COMPARED_KINDS,
};

enum verdict {
	VERDICT_NONE,
	VERDICT_SAME, /* the interval lies between both thresholds */
	VERDICT_LESS, /* faster, or less memory */
	VERDICT_MORE,
	VERDICT_NEW,
	VERDICT_GONE,
};

/* Why a row has no verdict. */
enum why {
	WHY_NOISE, /* a threshold lies in the interval */
	WHY_FEW, /* too few measurements */
	WHY_NO_SPREAD, /* without a spread, chance cannot be estimated */
	WHY_CHANCE, /* chance, among so many comparisons */
	WHY_FASTEST, /* the fastest ones did not change, so the disturbance came from outside */
	WHY_ALL, /* all the others changed alike, as on a busier machine */
	WHY_SMALL, /* too small to judge */
	WHY_RARE, /* new or gone, but rare */
	WHY_PEAK, /* the peak differs from what most of the time shows */
	WHY_NO_GROWTH, /* the other side gave memory back, and this one merely did not */
	WHY_ONCE, /* one piece of time reached the peak, and later ones kept it */
	WHY_ALONE, /* too few kernels to tell a slower kernel from a slower GPU */
};

struct comparison {
	enum compared what;
	const char *name;
	bool in[2]; /* present on each side */
	bool seldom; /* not in all captures of a side that has it, or not most of the time */
	double typical[2]; /* ns, or bytes; NAN: not known */
	double calls[2]; /* per step; NAN: not known */
	double share; /* of all own time of its kind, on the side where it is larger */
	struct xsp_difference d; /* of logarithms, without the common change; for GROWTH of bytes */
	double raw; /* the same with the common change */
	double fastest; /* difference of the logarithms of the fastest; NAN: not measured */
	bool alone; /* nothing else shows what the machine did, so nothing is subtracted */
	bool once; /* PEAK in pieces of time: one piece reached it, and most only keep it */
	double beyond; /* GROWTH: the least difference, and growth, that matters; else unused */
	double p;
	enum verdict verdict;
	enum why why;
};

/* The common change of a device's kernels: each GPU has its own clock. */
struct device_change {
	char kernels[64]; /* "" if all kernels ran on the same devices; else " of device 1" */
	char all[80]; /* "[all kernels of device 1]" */
	bool known; /* false: too few kernels */
	double by; /* difference of logarithms, which is subtracted */
};

/* The first side, and another one that is compared with it. */
struct pair {
	const struct xsp_compare_side *a, *b;
	double threshold;
	const struct xsp_series **series; /* of all captures; the caller frees it */
	size_t from[3]; /* side i has the series from[i] to from[i + 1] */
	size_t disturbed; /* captures that are not among them */
	bool repeats; /* each capture is one measurement: the middle of its points */
	bool steps; /* both sides have steps */
	struct comparison *rows;
	size_t count, capacity;
	size_t judged; /* comparisons that share the chance of an error */
	bool common_known;
	/* the common change of most operators, which is subtracted: difference of logarithms */
	double common;
	struct device_change *devices; /* the caller frees it */
	size_t device_count;
};

/* ---- compare_measure.c ---- */

#define LEAST_REPEATS 3U /* captures a side that are measurements by themselves */
#define LEAST_BLOCKS 4U /* of one capture, without repeats */

/* A name on both sides: its row in each capture, or NULL. */
struct joined {
	const char *name;
	const struct xsp_series_row **rows;
	uint32_t devices[2]; /* of a kernel, on each side: see struct xsp_series_row */
};

/* Measurements of one side, at the same points for all names. The points are blocks of steps or
 * pieces of time, capture after capture. NAN: no value there. */
struct measured {
	double *values;
	uint32_t *of; /* the capture of each */
	size_t count, capacity, of_capacity;
	uint32_t capture; /* of the values that are put next */
	double fastest; /* NAN: there are none */
	bool by_clock; /* times by the clock: another program may be in them */
};
struct both {
	struct measured sides[2];
	double middle[2]; /* median of the known values; NAN: none is known */
};

int xsp_compare_put(struct measured *m, double value); /* 0 or -ENOMEM, as all of these */
double xsp_compare_log(double value); /* NAN: there is none */
void xsp_compare_free(struct both *b); /* frees what it holds */
bool xsp_compare_is_of_steps(enum compared what);
/* Logarithms of a name's times. NULL: of steps, or of their time in no call. */
int xsp_compare_times(const struct pair *p, const struct joined *j, enum compared what,
		      struct both *out);
int xsp_compare_middle(const struct measured *m, double *out);
int xsp_compare_middles(struct both *b);
/* A new row, present on both sides, with nothing known yet. */
struct comparison xsp_compare_row(enum compared what, const char *name);
/* Needs enough measurements; for steps, all must be known. Consumes them. */
int xsp_compare_difference(const struct pair *p, struct both *b, struct comparison *c);
int xsp_compare_add(struct pair *p, const struct comparison *c);

/* compare_names.c: fills pair->rows. */
int xsp_compare_measure(struct pair *p);
/* compare_memory.c: adds the rows of memory. */
int xsp_compare_memory(struct pair *p);
/* compare_judge.c: sets the verdicts. 0 or -ENOMEM. */
int xsp_compare_judge(struct pair *p);

/* compare_account.c */
/* Is it the same place, or subject of a finding, but for numbers of lines and processes? */
bool xsp_compare_same_place(const char *a, const char *b);
/* Adds the places of both accounts. `side`: as in the tables' rows. 0 or -ENOMEM. */
int xsp_compare_accounts(const struct pair *p, const char *side, struct xsp_report *report);

#endif
