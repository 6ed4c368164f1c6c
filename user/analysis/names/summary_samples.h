/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_samples.h - --sample in the summary: functions and lines of Python that took the time
 * on CPUs. */
#ifndef XSP_ANALYSIS_SUMMARY_SAMPLES_H
#define XSP_ANALYSIS_SUMMARY_SAMPLES_H

#include "report/report.h"
#include "analysis/names/summary.h"

struct xsp_summary_samples;

/* *out NULL: the capture has no samples. The other functions take NULL. */
int xsp_summary_samples_new(struct xsp_timeline *t, struct xsp_summary_samples **out);
void xsp_summary_samples_free(struct xsp_summary_samples *s);

/* 0 or -ENOMEM. */
int xsp_summary_samples_sample(struct xsp_summary_samples *s, const struct xsp_sample *sample);
/* Functions, lines of Python, and their caveats; nothing without samples. */
void xsp_summary_samples_report(struct xsp_summary_samples *s, const struct xsp_capture_reader *r,
				struct xsp_report *report);

#endif
