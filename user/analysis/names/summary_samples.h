/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_samples.h - --sample in the summary: the functions in which the time on CPUs went, and lines of Python. */
#ifndef XSP_ANALYSIS_SUMMARY_SAMPLES_H
#define XSP_ANALYSIS_SUMMARY_SAMPLES_H

#include <stdio.h>

#include "report/report.h"
#include "analysis/names/summary.h"

struct xsp_summary_samples;
struct xsp_json_writer;

/* *out NULL: the capture has no samples. The others take NULL. */
int xsp_summary_samples_new(struct xsp_timeline *t, struct xsp_summary_samples **out);
void xsp_summary_samples_free(struct xsp_summary_samples *s);

/* 0 or -ENOMEM. */
int xsp_summary_samples_sample(struct xsp_summary_samples *s, const struct xsp_sample *sample);

/* The tables, and what is to be said of them. */
int xsp_summary_samples_write(struct xsp_summary_samples *s, const struct xsp_capture_reader *r,
			      FILE *f, const struct xsp_summary_print *how);
/* Of their time on CPUs, what page faults took; most of it in a function, or line of Python (NULL: in none). */
struct xsp_fault_samples {
	uint64_t ns, all_ns, samples; /* samples: of all_ns */
	const char *function;
};
/* All 0 where there are no samples. */
struct xsp_fault_samples xsp_summary_samples_faults(struct xsp_summary_samples *s);
/* The same for programs: key "samples" (docs/formats.md). */
void xsp_summary_samples_json(struct xsp_summary_samples *s, struct xsp_json_writer *j);

/* The same, in a report; nothing where there are none. */
void xsp_summary_samples_report(struct xsp_summary_samples *s, struct xsp_report *report);

#endif
