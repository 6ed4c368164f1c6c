/* SPDX-License-Identifier: BSD-2-Clause */
/* gpu.h - what `analyze` reports about GPUs, and what rules read of it. */
#ifndef XSP_ANALYSIS_GPU_H
#define XSP_ANALYSIS_GPU_H

#include "analysis/analysis.h"
#include "analysis/gpu/gpu_by_name.h"
#include "analysis/gpu/gpu_flops.h"
#include "analysis/gpu/gpu_host.h"
#include "analysis/gpu/gpu_path.h"
#include "analysis/gpu/gpu_sweep.h"

struct xsp_gpu_analysis {
	struct xsp_timeline *timeline;
	uint64_t origin_ns; /* start of the capture, from which moments are counted */
	struct xsp_gpu_sweep *sweep;
	struct xsp_gpu_host *host;
	struct xsp_gpu_by_name *names;
	struct xsp_gpu_flops *flops;
	struct xsp_gpu_path *path;
	bool events_lost;
	uint64_t unlaunched; /* their call is not known, or lies outside the range */
	bool ended; /* the sweep has ended */
};

/* Defined in gpu_report.c. 0 or -ENOMEM. */
int xsp_gpu_report(const struct xsp_gpu_analysis *g, struct xsp_report *r);

#endif
