/* SPDX-License-Identifier: BSD-2-Clause */
/* analyses.h - from a capture to a report: one run of the timeline for analyses, then the rules. */
#ifndef XSP_ANALYSIS_ANALYSES_H
#define XSP_ANALYSIS_ANALYSES_H

#include "analysis/analysis.h"
#include "model/pass.h"

struct xsp_analyze_options {
	const struct xsp_cut *cut; /* the range to analyze; NULL: the whole capture */
	const char *step; /* what marks a step (timeline/steps.h); NULL: the known names */
	const char *batch; /* the value that gives a step's number of samples; NULL: "batch_size" */
	/* By index of xsp_rules (analysis/rules/rules.h); NULL: the rules' defaults. */
	const double *thresholds;
	/* Gets the findings that reach half of these thresholds; NULL: not asked for. */
	struct xsp_report *nearly;
	/* another listener to the same run; zeros: there is none */
	struct xsp_pass_listener beside;
};

struct xsp_ranks;

/* Reads the capture once and fills the report. 0, or a negative errno and *err. */
int xsp_analyze(struct xsp_capture_reader *r, const struct xsp_analyze_options *o,
		struct xsp_report *report, struct xsp_error *err);
/* What the ranks of matched captures did to each other. `thresholds`: as above. 0 or -ENOMEM. */
int xsp_analyze_ranks(struct xsp_ranks *ranks, const double *thresholds, struct xsp_report *report);

#endif
