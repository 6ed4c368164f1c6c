/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_allocations_private.h - what collecting allocations and reporting them share. */
#ifndef XSP_ANALYSIS_SUMMARY_ALLOCATIONS_PRIVATE_H
#define XSP_ANALYSIS_SUMMARY_ALLOCATIONS_PRIVATE_H

#include <math.h>

#include "analysis/memory/summary_allocations.h"
#include "base/rows/tally.h"
#include "report/list.h"

/* Sites of the timeline whose spans differ only in a number ("ProfilerStep#17") are one site. */
struct site {
	uint32_t where; /* index of the timeline's first one */
	uint64_t alive_bytes, bytes;
	double alive, allocations; /* in blocks */
	double variance, all_variance; /* of alive_bytes, of bytes */
	struct xsp_growth *growth; /* of alive_bytes; NULL: too many sites */
};

struct xsp_summary_allocations {
	struct xsp_timeline *timeline;
	XSP_TALLY(struct site); /* by what identifies a site */
	size_t growths;
	uint32_t *index_of; /* by the timeline's index: 1 + index here; 0: none yet */
	size_t index_of_capacity;
	struct xsp_growth_clock clock;
	bool known; /* it is known what is alive */
};

static inline uint64_t xsp_allocations_whole(double blocks)
{
	return blocks > 0 ? (uint64_t)(blocks + 0.5) : 0;
}

#define NORMAL_95 1.96

static inline uint64_t xsp_allocations_error_of(double variance)
{
	return variance > 0 ? (uint64_t)(NORMAL_95 * sqrt(variance)) : 0;
}

static inline bool xsp_allocations_is_heap(const struct xsp_summary_allocations *a)
{
	return xsp_timeline_heap_period(a->timeline) > 0;
}

/* The span's name. Names that differ only in a number get their common form, in `common`. */
#define XSP_ALLOCATIONS_SPAN 400
const char *xsp_allocations_span(const struct xsp_summary_allocations *a,
				 const struct xsp_memory_site *s,
				 char common[XSP_ALLOCATIONS_SPAN]);

/* For qsort(). xsp_allocations_rank() returns all sites; an empty one ends the array. The caller
 * frees it. NULL: out of memory. */
int xsp_allocations_by_alive(const void *a, const void *b);
int xsp_allocations_by_slope(const void *a, const void *b);
struct xsp_allocation_site *xsp_allocations_rank(const struct xsp_summary_allocations *a,
						 const struct xsp_growth_steps *steps,
						 int (*order)(const void *, const void *));

/* Rows are of struct xsp_memory_use and struct xsp_allocation_site. */
extern const struct xsp_list xsp_allocations_pools, xsp_allocations_heap_sites,
	xsp_allocations_pool_sites;
/* "host memory", plus " of process 4242" where there are several processes. */
void xsp_allocations_pool_name(const struct xsp_summary_allocations *a,
			       const struct xsp_memory_use *u, char *out, size_t size);
/* "aten::empty at train.py:21 train_step in Net_0.layers.0"; each part takes so many columns at
 * most (0: all it needs). */
void xsp_allocations_site_name(const struct xsp_summary_allocations *a,
			       const struct xsp_memory_site *s, size_t columns, char *out,
			       size_t size);

#endif
