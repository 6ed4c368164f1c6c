/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * summary_allocations.h - --memory in the summary: how much PyTorch had allocated, what of it is alive at the end and
 * where that was allocated, and what only grows.
 */
#ifndef XSP_ANALYSIS_SUMMARY_ALLOCATIONS_H
#define XSP_ANALYSIS_SUMMARY_ALLOCATIONS_H

#include <stdio.h>

#include "analysis/summary.h"
#include "base/json_writer.h"

struct xsp_summary_allocations;

/* *out NULL: the capture has none. The others take NULL. */
int xsp_summary_allocations_new(struct xsp_timeline *t, struct xsp_summary_allocations **out);
void xsp_summary_allocations_free(struct xsp_summary_allocations *a);

/* 0 or -ENOMEM. */
int xsp_summary_allocations_event(struct xsp_summary_allocations *a,
				  const struct xsp_memory_event *e);

/* What is alive, by where it was allocated. 0 or -ENOMEM. */
int xsp_summary_allocations_table(struct xsp_summary_allocations *a, FILE *f,
				  const struct xsp_summary_print *how);
/* The sums, and what grows. `warn` writes a line that the reader must not miss. */
void xsp_summary_allocations_print(struct xsp_summary_allocations *a,
				   const struct xsp_capture_reader *r, FILE *f,
				   void (*warn)(void *ctx, const char *text), void *ctx);
/* The same for programs, inside an object. 0 or -ENOMEM. */
int xsp_summary_allocations_json(struct xsp_summary_allocations *a, struct xsp_json_writer *j);

#endif
