/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_waits.h - --waits in the summary: where threads spent their time, locks, gaps. */
#ifndef XSP_ANALYSIS_SUMMARY_WAITS_H
#define XSP_ANALYSIS_SUMMARY_WAITS_H

#include "report/report.h"
#include "analysis/names/summary.h"

struct xsp_summary_waits;

/* *out is NULL if the capture has no waits. The other functions accept NULL. */
int xsp_summary_waits_new(struct xsp_timeline *t, struct xsp_summary_waits **out);
void xsp_summary_waits_free(struct xsp_summary_waits *w);

/* 0 or -ENOMEM. */
int xsp_summary_waits_span(struct xsp_summary_waits *w, const struct xsp_span *span);
int xsp_summary_waits_wait(struct xsp_summary_waits *w, const struct xsp_wait *wait);

/* Reports threads, locks and gaps; nothing without waits. If the capture does not say where threads
 * wait, explains how to record that. 0 or -ENOMEM. */
int xsp_summary_waits_report(struct xsp_summary_waits *w, struct xsp_capture_reader *r,
			     struct xsp_report *report);

#endif
