/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_gpu.h - CUDA in the summary: what the GPU did, errors of the API, losses. */
#ifndef XSP_ANALYSIS_SUMMARY_GPU_H
#define XSP_ANALYSIS_SUMMARY_GPU_H

#include "report/report.h"
#include "analysis/names/summary.h"

struct xsp_summary_gpu;

int xsp_summary_gpu_new(struct xsp_timeline *t, struct xsp_summary_gpu **out);
void xsp_summary_gpu_free(struct xsp_summary_gpu *g);

/* A span of any kind; an activity of the GPU. 0 or -ENOMEM. */
int xsp_summary_gpu_span(struct xsp_summary_gpu *g, const struct xsp_span *span);
int xsp_summary_gpu_activity(struct xsp_summary_gpu *g, const struct xsp_gpu_activity *a);
int xsp_summary_gpu_memory(struct xsp_summary_gpu *g, const struct xsp_memory_event *e);

/* Were calls of CUDA's API seen? */
bool xsp_summary_gpu_called(const struct xsp_summary_gpu *g);

/* Kernels, copies, memory and errors; nothing where the target has not used CUDA. */
void xsp_summary_gpu_report(struct xsp_summary_gpu *g, struct xsp_capture_reader *r,
			    struct xsp_report *report);

#endif
