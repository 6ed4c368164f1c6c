/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * summary_allocations.h - --memory in the summary: how much PyTorch or the heap allocated. What is
 * alive at the end, and where was it allocated? What only grows?
 */
#ifndef XSP_ANALYSIS_SUMMARY_ALLOCATIONS_H
#define XSP_ANALYSIS_SUMMARY_ALLOCATIONS_H

#include "analysis/memory/growth.h"
#include "report/report.h"
#include "analysis/names/summary.h"

struct xsp_summary_allocations;

/* *out is NULL if the capture has no allocations. The other functions accept NULL. */
int xsp_summary_allocations_new(struct xsp_timeline *t, struct xsp_summary_allocations **out);
void xsp_summary_allocations_free(struct xsp_summary_allocations *a);

/* 0 or -ENOMEM. */
int xsp_summary_allocations_event(struct xsp_summary_allocations *a,
				  const struct xsp_memory_event *e);

/* A place that allocated memory. */
struct xsp_allocation_site {
	const struct xsp_memory_site *where;
	uint64_t alive, alive_bytes;
	uint64_t allocations, bytes;
	uint64_t alive_error; /* 95 % error of alive_bytes if that is an estimate; else 0 */
	/* of alive_bytes; not known with losses, or over MAX_GROWTHS sites */
	struct xsp_slope slope;
};
/* Call it after the run. Growing sites come first, the fastest at the top; an empty one ends the
 * array. The caller frees it. NULL: out of memory. steps: NULL if there are none. */
struct xsp_allocation_site *xsp_summary_allocations_growing(const struct xsp_summary_allocations *a,
							    const struct xsp_growth_steps *steps,
							    size_t *count);
/* "aten::empty at train.py:21 train_step"; bytes are not escaped. */
void xsp_summary_allocations_name(const struct xsp_summary_allocations *a,
				  const struct xsp_memory_site *where, char *out, size_t size);
/* Is it known what is alive, and what grows? */
bool xsp_summary_allocations_sure(const struct xsp_summary_allocations *a);

/* Reports what is alive by where it was allocated, the sums, and what grows; nothing without
 * allocations. 0 or -ENOMEM. */
int xsp_summary_allocations_report(struct xsp_summary_allocations *a,
				   const struct xsp_capture_reader *r, struct xsp_report *report);

#endif
