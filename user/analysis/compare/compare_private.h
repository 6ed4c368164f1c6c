/* SPDX-License-Identifier: BSD-2-Clause */
/* compare_private.h - what measuring, judging and reporting share. */
#ifndef XSP_ANALYSIS_COMPARE_PRIVATE_H
#define XSP_ANALYSIS_COMPARE_PRIVATE_H

#include "analysis/compare/compare.h"
#include "analysis/compare/statistics.h"

enum compared {
	COMPARED_STEP, /* how long a step takes */
	COMPARED_IN_STEP, /* what of it is an operator's own */
	COMPARED_OPERATOR, /* own time of a call, and so of the next three */
	COMPARED_LINE,
	COMPARED_MODULE,
	COMPARED_KERNEL,
	COMPARED_PEAK, /* memory */
	COMPARED_GROWTH, /* of that, bytes a step or a second */
	COMPARED_KINDS,
};

enum verdict {
	VERDICT_NONE,
	VERDICT_SAME, /* the interval lies between both thresholds */
	VERDICT_LESS, /* faster, less memory */
	VERDICT_MORE,
	VERDICT_NEW,
	VERDICT_GONE,
};

/* Why there is no verdict. */
enum why {
	WHY_NOISE, /* the interval holds a threshold */
	WHY_FEW, /* measurements */
	WHY_NO_SPREAD, /* so it cannot be told what chance does */
	WHY_CHANCE, /* among so many that are compared */
	WHY_FASTEST, /* the fastest ones are not slower: what came between is not the program's */
	WHY_ALL, /* all the others changed alike: so does a busier machine */
	WHY_SMALL, /* not judged */
	WHY_RARE, /* new or gone, but seldom */
	WHY_PEAK, /* memory at its most says something else than most of the time does */
	WHY_NO_GROWTH, /* the other side gave memory back; this one only did not */
	WHY_ONCE, /* memory: all pieces of time have what was reached once, and then kept */
	WHY_ALONE, /* too few kernels to tell a slower one from a slower GPU */
};

/* One row. */
struct comparison {
	enum compared what;
	const char *name;
	bool in[2]; /* on each side, as what follows */
	bool seldom; /* a name that is not in all captures of a side where it is, or not most of the time */
	double typical[2]; /* ns, or bytes; NAN: not known */
	double calls[2]; /* a step; NAN: not known */
	double share; /* of all own time of its kind, on the side where that is more */
	struct xsp_difference
		d; /* of logarithms, beside the common one; of GROWTH of bytes themselves */
	double raw; /* ... with the common one */
	double fastest; /* difference of the fastest ones' logarithms; NAN: not asked for */
	bool alone; /* nothing else tells what the machine did, so none of it is taken out */
	bool once; /* PEAK, of pieces of time: most of them show again what one of them reached */
	double beyond; /* GROWTH: least difference, and growth, that matters; else unused */
	double p;
	enum verdict verdict;
	enum why why;
};

/* What most kernels of a device changed by: a GPU has a clock of its own. */
struct device_change {
	char kernels
		[64]; /* whose they are: "" where all ran on the same devices, else " of device 1" */
	char all[80]; /* "[all kernels of device 1]" */
	bool known; /* not of too few kernels */
	double by; /* difference of logarithms, which is taken out */
};

/* One side against the first. */
struct pair {
	const struct xsp_compare_side *a, *b;
	double threshold;
	const struct xsp_series **series; /* of all captures; the caller's to free */
	size_t from[3]; /* those of the sides: from[0] to from[1], from there to from[2] */
	bool repeats; /* captures are the measurements */
	bool steps; /* on both sides */
	struct comparison *rows;
	size_t count, capacity;
	size_t judged; /* among which chance is shared out */
	bool common_known;
	double common; /* what most of the operators changed by, which is taken out: difference of logarithms */
	struct device_change *devices; /* the caller's to free */
	size_t device_count;
};

/* ---- compare_measure.c ---- */

#define LEAST_REPEATS 3U /* captures a side that are measurements by themselves */
#define LEAST_BLOCKS 4U /* of one capture, else */

/* A name on both sides: its row in each capture, or NULL. */
struct joined {
	const char *name;
	const struct xsp_series_row **rows;
	uint32_t devices[2]; /* of a kernel, on each side: see struct xsp_series_row */
};

/* Measurements of one side, at the same places for all names: blocks of steps or pieces of time of one capture behind
 * those of the one before it. NAN: none there. */
struct measured {
	double *values;
	size_t count, capacity;
	double fastest; /* NAN: there are none */
};
struct both {
	struct measured sides[2];
	double middle[2]; /* median of what is known; NAN: nothing is */
};

int xsp_compare_put(struct measured *m, double value); /* 0 or -ENOMEM, as all of these */
double xsp_compare_log(double value); /* NAN: there is none */
void xsp_compare_free(struct both *b); /* what it holds */
bool xsp_compare_is_of_steps(enum compared what);
/* Logarithms of a name's times; NULL: of steps, or what of them is in no call. */
int xsp_compare_times(const struct pair *p, const struct joined *j, enum compared what,
		      struct both *out);
int xsp_compare_middle(const struct measured *m, double *out);
int xsp_compare_middles(struct both *b);
/* A row of what is on both sides, of which nothing is known yet. */
struct comparison xsp_compare_row(enum compared what, const char *name);
/* Of enough measurements; of steps all must be known. Uses them up. */
void xsp_compare_difference(const struct pair *p, struct both *b, struct comparison *c);
int xsp_compare_add(struct pair *p, const struct comparison *c);

/* compare_names.c: fills pair->rows. */
int xsp_compare_measure(struct pair *p);
/* compare_memory.c: memory's. */
int xsp_compare_memory(struct pair *p);
/* compare_judge.c: their verdicts. 0 or -ENOMEM. */
int xsp_compare_judge(struct pair *p);

#endif
