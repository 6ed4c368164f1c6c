/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_waits.h - --waits in the summary: threads and where their time went, locks, gaps without spans. */
#ifndef XSP_ANALYSIS_SUMMARY_WAITS_H
#define XSP_ANALYSIS_SUMMARY_WAITS_H

#include "report/report.h"
#include "analysis/names/summary.h"

struct xsp_summary_waits;

/* *out NULL: the capture has no waits. The others take NULL. */
int xsp_summary_waits_new(struct xsp_timeline *t, struct xsp_summary_waits **out);
void xsp_summary_waits_free(struct xsp_summary_waits *w);

/* 0 or -ENOMEM. */
int xsp_summary_waits_span(struct xsp_summary_waits *w, const struct xsp_span *span);
int xsp_summary_waits_wait(struct xsp_summary_waits *w, const struct xsp_wait *wait);

/* Threads, locks and gaps; it says how to record where they wait if that was not; nothing without waits. 0 or -ENOMEM. */
int xsp_summary_waits_report(struct xsp_summary_waits *w, struct xsp_capture_reader *r,
			     struct xsp_report *report);

#endif
