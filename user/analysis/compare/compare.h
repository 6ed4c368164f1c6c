/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compare.h - recordings set side by side: what became slower or faster, by how much, and how sure that is
 * (docs/compare.md).
 *
 * What is measured is a step's time, or a call's, or memory. With three captures a side and more each capture is one
 * measurement; with fewer, what one of them says of its own spread stands for that: medians of blocks of steps, means
 * of calls in pieces of time. Verdicts are Holm's over all that is compared, at 5 %.
 */
#ifndef XSP_ANALYSIS_COMPARE_H
#define XSP_ANALYSIS_COMPARE_H

#include "report/report.h"
#include "analysis/compare/series.h"

struct xsp_compare_capture {
	const char *path, *command, *host, *version; /* "" where that is not known */
	const char *filters; /* of the recording, the same */
	const struct xsp_series *series;
	const struct xsp_report *report; /* of analyze, for its findings; or NULL */
	const struct xsp_report *nearly; /* ... from half of the thresholds on; or NULL */
	uint64_t lost; /* events */
	bool lost_known;
	uint64_t windows; /* of --max-overhead: 0: recorded all the time */
	bool damaged;
	bool late; /* some probes came late */
};

struct xsp_compare_side {
	const struct xsp_compare_capture *captures;
	size_t count;
};

enum xsp_compare_found {
	XSP_COMPARE_SLOWER = 1 << 0, /* steps, or anything in them */
	XSP_COMPARE_MEMORY = 1 << 1, /* more of it, or growing faster */
	XSP_COMPARE_NEW_BOTTLENECK = 1 << 2,
};

/*
 * Each side but the first against that one. `threshold` 0.05: what differs by less is the same. *found: enum
 * xsp_compare_found of all of them. 0 or -ENOMEM.
 */
int xsp_compare(const struct xsp_compare_side *sides, size_t count, double threshold,
		struct xsp_report *report, unsigned *found);

#endif
