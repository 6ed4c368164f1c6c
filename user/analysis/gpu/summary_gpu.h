/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_gpu.h - CUDA in the summary: what the GPU did, errors of the API, losses. */
#ifndef XSP_ANALYSIS_SUMMARY_GPU_H
#define XSP_ANALYSIS_SUMMARY_GPU_H

#include <stdio.h>

#include "report/report.h"
#include "analysis/names/summary.h"
#include "base/json_writer.h"

struct xsp_summary_gpu;

int xsp_summary_gpu_new(struct xsp_timeline *t, struct xsp_summary_gpu **out);
void xsp_summary_gpu_free(struct xsp_summary_gpu *g);

/* A span of any kind; an activity of the GPU. 0 or -ENOMEM. */
int xsp_summary_gpu_span(struct xsp_summary_gpu *g, const struct xsp_span *span);
int xsp_summary_gpu_activity(struct xsp_summary_gpu *g, const struct xsp_gpu_activity *a);
int xsp_summary_gpu_memory(struct xsp_summary_gpu *g, const struct xsp_memory_event *e);

/* Were calls of CUDA's API seen? */
bool xsp_summary_gpu_called(const struct xsp_summary_gpu *g);

/* The kernels that took most time. */
void xsp_summary_gpu_table(struct xsp_summary_gpu *g, FILE *f, const struct xsp_summary_print *how);
/* Kernels, memory and errors as JSON, inside an object. */
void xsp_summary_gpu_json(struct xsp_summary_gpu *g, struct xsp_json_writer *j);
/* Nothing if the target has not used CUDA. `warn` writes a line that the reader must not miss. */
void xsp_summary_gpu_print(struct xsp_summary_gpu *g, struct xsp_capture_reader *r, FILE *f,
			   void (*warn)(void *ctx, const char *text), void *ctx);

/* Kernels, copies and errors, in a report; nothing where there are none. */
void xsp_summary_gpu_report(struct xsp_summary_gpu *g, struct xsp_report *report);

#endif
