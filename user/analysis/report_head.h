/* SPDX-License-Identifier: BSD-2-Clause */
/* report_head.h - a report's first section: what was recorded, and which part of it was lost. */
#ifndef XSP_ANALYSIS_REPORT_HEAD_H
#define XSP_ANALYSIS_REPORT_HEAD_H

#include "report/report.h"
#include "timeline/timeline.h"

/* Call it after the run. */
void xsp_report_head(struct xsp_timeline *t, const struct xsp_capture_reader *r,
		     struct xsp_report *report);

#endif
