/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_gpu.h - CUDA in the summary: what the GPU did, the API's errors, losses. */
#ifndef XSP_ANALYSIS_SUMMARY_GPU_H
#define XSP_ANALYSIS_SUMMARY_GPU_H

#include "report/report.h"
#include "analysis/names/summary.h"

struct xsp_summary_gpu;

int xsp_summary_gpu_new(struct xsp_timeline *t, struct xsp_summary_gpu **out);
void xsp_summary_gpu_free(struct xsp_summary_gpu *g);

/* Adds a span of any kind; adds a GPU activity. 0 or -ENOMEM. */
int xsp_summary_gpu_span(struct xsp_summary_gpu *g, const struct xsp_span *span);
int xsp_summary_gpu_activity(struct xsp_summary_gpu *g, const struct xsp_gpu_activity *a);
int xsp_summary_gpu_memory(struct xsp_summary_gpu *g, const struct xsp_memory_event *e);

/* Did the target call CUDA's API? */
bool xsp_summary_gpu_called(const struct xsp_summary_gpu *g);

/* Kernels, copies, memory and errors; nothing if the target did not use CUDA. */
void xsp_summary_gpu_report(struct xsp_summary_gpu *g, struct xsp_capture_reader *r,
			    struct xsp_report *report);

#endif
