/* SPDX-License-Identifier: BSD-2-Clause */
/* analyses.h - from a capture to a report: all analyses in one run of the timeline, then all rules. */
#ifndef XSP_ANALYSIS_ANALYSES_H
#define XSP_ANALYSIS_ANALYSES_H

#include "analysis/analysis.h"
#include "model/pass.h"

struct xsp_analyze_options {
	const struct xsp_cut *cut; /* a part of it; NULL: all */
	const char *step; /* what marks a step (timeline/steps.h); NULL: the known names */
	const char *batch; /* the value that is the samples of a step; NULL: "batch_size" */
	const double *
		thresholds; /* by index of xsp_rules (analysis/rules/rules.h); NULL: their defaults */
	struct xsp_report
		*nearly; /* gets what rules find from half of these on; NULL: not asked for */
	struct xsp_pass_listener beside; /* who else listens to the same run; zeros: nobody */
};

struct xsp_ranks;

/* Reads the capture once and fills the report. 0, or a negative errno and *err. */
int xsp_analyze(struct xsp_capture_reader *r, const struct xsp_analyze_options *o,
		struct xsp_report *report, struct xsp_error *err);
/* Of several captures, matched: what their ranks did to each other. `thresholds` as above. 0 or -ENOMEM. */
int xsp_analyze_ranks(struct xsp_ranks *ranks, const double *thresholds, struct xsp_report *report);

#endif
