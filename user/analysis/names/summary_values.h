/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_values.h - the values that the program told, in the summary. */
#ifndef XSP_ANALYSIS_SUMMARY_VALUES_H
#define XSP_ANALYSIS_SUMMARY_VALUES_H

#include <stdio.h>

#include "report/report.h"
#include "analysis/names/summary.h"
#include "analysis/names/value_rows.h"
#include "base/json_writer.h"

/* A small table. Nothing if there were none. */
void xsp_summary_values_write(const struct xsp_value_rows *r, const struct xsp_timeline *t, FILE *f,
			      const struct xsp_summary_print *how);
/* A section of them; nothing if there were none. And in that of steps, samples a second: with `step_ns`, the mean of a
 * thread's steps (0: there are none), and the value `batch`, the samples of a step. */
void xsp_summary_values_report(const struct xsp_value_rows *r, const struct xsp_timeline *t,
			       const char *batch, double step_ns, struct xsp_report *report);
/* The same for programs, inside an object. */
void xsp_summary_values_json(const struct xsp_value_rows *r, const struct xsp_timeline *t,
			     struct xsp_json_writer *j);

#endif
