/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * analysis.h - an analysis of `xsptrace analyze`: a row of the table in analysis/analyses.c.
 *
 * All analyses listen to one run of the timeline. Each then adds its sections to the report, in the
 * order of the table. The rules (analysis/rules/rules.c) come last and read what the analyses
 * counted.
 */
#ifndef XSP_ANALYSIS_ANALYSIS_H
#define XSP_ANALYSIS_ANALYSIS_H

#include "report/report.h"
#include "timeline/timeline.h"

struct xsp_analyze_options;

struct xsp_analysis {
	const char *name;
	/* *state stays NULL if the capture has nothing for this analysis. 0 or a negative errno. */
	int (*begin)(struct xsp_timeline *t, struct xsp_capture_reader *r, void **state);
	struct xsp_timeline_sink (*sink)(void *state);
	int (*report)(void *state, struct xsp_report *report); /* NULL: only rules read it */
	void (*end)(void *state);
	/* Called before the run; may be NULL. The options stay valid until the end. */
	void (*configure)(void *state, const struct xsp_analyze_options *options);
};

/* The rows of the table in analysis/analyses.c. */
extern const struct xsp_analysis xsp_analysis_account, xsp_analysis_summary,
	xsp_analysis_call_sites, xsp_analysis_gpu, xsp_analysis_ranks, xsp_analysis_hot_code;

#endif
