/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_memory.h - memory in the summary: how much each process had. */
#ifndef XSP_ANALYSIS_SUMMARY_MEMORY_H
#define XSP_ANALYSIS_SUMMARY_MEMORY_H

#include "analysis/memory/growth.h"
#include "report/report.h"
#include "analysis/names/summary.h"

struct xsp_summary_memory;

/* *out may become NULL. The other functions accept NULL and then report nothing. */
int xsp_summary_memory_new(struct xsp_timeline *t, struct xsp_summary_memory **out);
void xsp_summary_memory_free(struct xsp_summary_memory *m);

/* The number, as it sees itself, of the process that allocated this memory. */
uint32_t xsp_summary_memory_pid(const struct xsp_timeline *t, const struct xsp_memory_use *use);
/* " of process 4242" if there are several processes, else "". */
#define XSP_SUMMARY_MEMORY_OWNER 40
const char *xsp_summary_memory_owner(const struct xsp_timeline *t, const struct xsp_memory_use *use,
				     char out[XSP_SUMMARY_MEMORY_OWNER]);

/* 0 or -ENOMEM. */
int xsp_summary_memory_process(struct xsp_summary_memory *m,
			       const struct xsp_process_memory_at *at);

/* Finds a process from index `i` on whose anonymous memory grows for good
 * (analysis/memory/growth.h). False: none is left. steps: NULL if there are none. */
struct xsp_growing_process {
	uint32_t pid; /* as the process sees itself */
	const char *name;
	struct xsp_slope slope;
	uint64_t first, last; /* bytes */
};
bool xsp_summary_memory_growing(const struct xsp_summary_memory *m,
				const struct xsp_capture_reader *r,
				const struct xsp_growth_steps *steps, size_t *i,
				struct xsp_growing_process *out);

/* Reports a row for each process; nothing if there are none. */
void xsp_summary_memory_report(struct xsp_summary_memory *m, const struct xsp_capture_reader *r,
			       struct xsp_report *report);

#endif
