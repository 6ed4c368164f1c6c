/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * summary_allocations.h - --memory in the summary: how much PyTorch, or the heap, had allocated, what of it is alive at the end and
 * where that was allocated, and what only grows.
 */
#ifndef XSP_ANALYSIS_SUMMARY_ALLOCATIONS_H
#define XSP_ANALYSIS_SUMMARY_ALLOCATIONS_H

#include "analysis/memory/growth.h"
#include "report/report.h"
#include "analysis/names/summary.h"

struct xsp_summary_allocations;

/* *out NULL: the capture has none. The others take NULL. */
int xsp_summary_allocations_new(struct xsp_timeline *t, struct xsp_summary_allocations **out);
void xsp_summary_allocations_free(struct xsp_summary_allocations *a);

/* 0 or -ENOMEM. */
int xsp_summary_allocations_event(struct xsp_summary_allocations *a,
				  const struct xsp_memory_event *e);

/* Where memory was allocated. */
struct xsp_allocation_site {
	const struct xsp_memory_site *where;
	uint64_t alive, alive_bytes;
	uint64_t allocations, bytes;
	uint64_t alive_error; /* of alive_bytes, 95%: an estimate's; else 0 */
	struct xsp_slope slope; /* of alive_bytes; not known with losses, or of too many sites */
};
/* Behind the run: those that grow first, the fastest first; an empty one ends them. The caller's to free; NULL: out of memory. steps: NULL where
 * there are none. */
struct xsp_allocation_site *xsp_summary_allocations_growing(const struct xsp_summary_allocations *a,
							    const struct xsp_growth_steps *steps,
							    size_t *count);
/* "aten::empty at train.py:21 train_step"; raw bytes. */
void xsp_summary_allocations_name(const struct xsp_summary_allocations *a,
				  const struct xsp_memory_site *where, char *out, size_t size);
/* Can what is alive be told, and what grows? */
bool xsp_summary_allocations_sure(const struct xsp_summary_allocations *a);

/* What is alive, by where it was allocated, the sums, and what grows; nothing where there are none. 0 or -ENOMEM. */
int xsp_summary_allocations_report(struct xsp_summary_allocations *a,
				   const struct xsp_capture_reader *r, struct xsp_report *report);

#endif
