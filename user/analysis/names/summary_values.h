/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_values.h - the values that the program told, in the summary. */
#ifndef XSP_ANALYSIS_SUMMARY_VALUES_H
#define XSP_ANALYSIS_SUMMARY_VALUES_H

#include "report/report.h"
#include "analysis/names/summary.h"
#include "analysis/names/value_rows.h"

/* A section of them; nothing if there were none. In a full report that of steps gets samples
 * a second: with `step_ns`, the mean of a thread's steps (0: there are none), and the value `batch`, the samples of a
 * step. */
void xsp_summary_values_report(const struct xsp_value_rows *r, const struct xsp_timeline *t,
			       const char *batch, double step_ns, struct xsp_report *report);

#endif
