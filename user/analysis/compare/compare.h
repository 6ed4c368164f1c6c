/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compare.h - compares recordings: what became slower or faster, by how much, and how sure that is
 * (docs/compare.md).
 *
 * It measures the time of steps and of calls, and memory. With at least three captures on each
 * side, each capture is one measurement. With fewer, parts of one capture are: medians of blocks of
 * steps, and means of calls in pieces of time. Verdicts apply Holm's correction to all comparisons,
 * at 5 %.
 */
#ifndef XSP_ANALYSIS_COMPARE_H
#define XSP_ANALYSIS_COMPARE_H

#include "report/report.h"
#include "analysis/compare/series.h"

struct xsp_compare_capture {
	const char *path, *command, *host, *version; /* "" where not known */
	const char *filters; /* of the recording; "" where not known */
	const struct xsp_series *series;
	const struct xsp_report *report; /* from analyze, for its findings; or NULL */
	const struct xsp_report *nearly; /* the same with half the thresholds; or NULL */
	uint64_t lost; /* events */
	bool lost_known;
	uint64_t windows; /* of --max-overhead; 0: recorded all the time */
	bool damaged;
	bool late; /* some probes were placed late */
};

struct xsp_compare_side {
	const struct xsp_compare_capture *captures;
	size_t count;
};

enum xsp_compare_found {
	XSP_COMPARE_SLOWER = 1 << 0, /* steps, or anything in them */
	XSP_COMPARE_MEMORY = 1 << 1, /* more memory, or faster growth */
	XSP_COMPARE_NEW_BOTTLENECK = 1 << 2,
};

/*
 * Compares each later side with the first one. `threshold` 0.05: a smaller difference counts as
 * none. *found: enum xsp_compare_found, over all sides. 0 or -ENOMEM.
 */
int xsp_compare(const struct xsp_compare_side *sides, size_t count, double threshold,
		struct xsp_report *report, unsigned *found);

#endif
