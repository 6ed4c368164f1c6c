/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_values.h - the values that the program reports, in the summary. */
#ifndef XSP_ANALYSIS_SUMMARY_VALUES_H
#define XSP_ANALYSIS_SUMMARY_VALUES_H

#include "report/report.h"
#include "analysis/names/summary.h"
#include "analysis/names/value_rows.h"

/* Adds a section of values if there are any. In a full report, the section of steps gets samples
 * per second. They come from `step_ns`, a thread's mean step (0: there are none), and from the
 * value `batch`, the samples in a step. */
void xsp_summary_values_report(const struct xsp_value_rows *r, const struct xsp_timeline *t,
			       const char *batch, double step_ns, struct xsp_report *report);

#endif
