/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_waits.h - --waits in the summary: threads and where their time went, locks, gaps without spans. */
#ifndef XSP_ANALYSIS_SUMMARY_WAITS_H
#define XSP_ANALYSIS_SUMMARY_WAITS_H

#include <stdio.h>

#include "report/report.h"
#include "analysis/names/summary.h"
#include "base/json_writer.h"

struct xsp_summary_waits;

/* *out NULL: the capture has no waits. The others take NULL. */
int xsp_summary_waits_new(struct xsp_timeline *t, struct xsp_summary_waits **out);
void xsp_summary_waits_free(struct xsp_summary_waits *w);

/* 0 or -ENOMEM. */
int xsp_summary_waits_span(struct xsp_summary_waits *w, const struct xsp_span *span);
int xsp_summary_waits_wait(struct xsp_summary_waits *w, const struct xsp_wait *wait);

/* The table of threads; the lines on locks and gaps. */
int xsp_summary_waits_write(struct xsp_summary_waits *w, struct xsp_capture_reader *r, FILE *f,
			    const struct xsp_summary_print *how);

/* The same as JSON, inside an object. */
int xsp_summary_waits_json(struct xsp_summary_waits *w, struct xsp_capture_reader *r,
			   struct xsp_json_writer *j);

/* Threads and locks as a section of a report, which says how to record where they wait if that was not; nothing without
 * waits. 0 or -ENOMEM. */
int xsp_summary_waits_report(struct xsp_summary_waits *w, bool with_stacks,
			     struct xsp_report *report);

#endif
