/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_memory.h - memory in the summary: what each process had. */
#ifndef XSP_ANALYSIS_SUMMARY_MEMORY_H
#define XSP_ANALYSIS_SUMMARY_MEMORY_H

#include "analysis/memory/growth.h"
#include "report/report.h"
#include "analysis/names/summary.h"

struct xsp_summary_memory;

/* *out NULL is allowed in all others: nothing is told. */
int xsp_summary_memory_new(struct xsp_timeline *t, struct xsp_summary_memory **out);
void xsp_summary_memory_free(struct xsp_summary_memory *m);

/* Of memory that was allocated. Its process's number as the process itself sees it. */
uint32_t xsp_summary_memory_pid(const struct xsp_timeline *t, const struct xsp_memory_use *use);
/* Where there are several processes " of process 4242", else "". */
#define XSP_SUMMARY_MEMORY_OWNER 40
const char *xsp_summary_memory_owner(const struct xsp_timeline *t, const struct xsp_memory_use *use,
				     char out[XSP_SUMMARY_MEMORY_OWNER]);

/* 0 or -ENOMEM. */
int xsp_summary_memory_process(struct xsp_summary_memory *m,
			       const struct xsp_process_memory_at *at);

/* The process with index `i` whose anonymous memory grows for good (analysis/memory/growth.h); false: none is left. steps: NULL where
 * there are none. */
struct xsp_growing_process {
	uint32_t pid; /* as it sees itself */
	const char *name;
	struct xsp_slope slope;
	uint64_t first, last; /* bytes */
};
bool xsp_summary_memory_growing(const struct xsp_summary_memory *m,
				const struct xsp_capture_reader *r,
				const struct xsp_growth_steps *steps, size_t *i,
				struct xsp_growing_process *out);

/* A row a process; nothing where there are none. */
void xsp_summary_memory_report(struct xsp_summary_memory *m, const struct xsp_capture_reader *r,
			       struct xsp_report *report);

#endif
