/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_report.h - the state of the analysis "summary", for rules. */
#ifndef XSP_ANALYSIS_SUMMARY_REPORT_H
#define XSP_ANALYSIS_SUMMARY_REPORT_H

#include "analysis/analysis.h"
#include "analysis/names/summary_private.h"

struct xsp_summary_analysis {
	struct xsp_timeline *timeline;
	struct xsp_capture_reader *reader;
	struct xsp_summary *summary;
	const char *batch; /* xsp_analyze_options.batch */
};

/* In summaries the head comes first and the losses come last. */
void xsp_summary_head(struct xsp_summary *s, struct xsp_capture_reader *r,
		      struct xsp_report *report);
void xsp_summary_tail(struct xsp_summary *s, struct xsp_capture_reader *r,
		      struct xsp_report *report);

#endif
