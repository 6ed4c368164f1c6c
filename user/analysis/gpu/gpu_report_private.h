/* SPDX-License-Identifier: BSD-2-Clause */
/* gpu_report_private.h - what the two halves of the GPU section share. */
#ifndef XSP_ANALYSIS_GPU_REPORT_PRIVATE_H
#define XSP_ANALYSIS_GPU_REPORT_PRIVATE_H

#include "analysis/gpu/gpu.h"
#include "base/saturate.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define COLUMN(key, title, unit, source)                                                           \
	{                                                                                          \
		key, title, XSP_UNIT_##unit, false, source                                         \
	}
#define IDENTITY(key, title, unit, source)                                                         \
	{                                                                                          \
		key, title, XSP_UNIT_##unit, true, source                                          \
	}
#define BY XSP_BY
#define CELL(name, type, value) XSP_REPORT_CELL(name, struct writer, type, value)

static const char *const class_names[XSP_GPU_CLASSES] = {"compute", "communication", "memory"};

#define BIT(class) (1U << XSP_GPU_FOR_##class)

struct writer {
	const struct xsp_gpu_analysis *g;
	struct xsp_report_section *section;
	const struct xsp_gpu_device_use *devices;
	size_t device_count;
	uint64_t kernels_ns; /* sum over all kernels */
};

/* ---- cells ---- */

static inline struct xsp_cell ratio(double part, double whole)
{
	return whole > 0 ? xsp_cell_real(part / whole) : xsp_cell_absent();
}

static inline struct xsp_cell ratio_of_sums(uint64_t part, uint64_t whole, double times)
{
	return part == XSP_TOO_MUCH || whole == XSP_TOO_MUCH
		       ? xsp_cell_absent()
		       : ratio((double)part * times, (double)whole);
}

static inline struct xsp_cell mean_cell(uint64_t sum, uint64_t count)
{
	return sum == XSP_TOO_MUCH ? xsp_cell_absent() : xsp_cell_integer(sum / count);
}

/* Never above the greatest value, which is exact. */
static inline struct xsp_cell quantile(const struct xsp_histogram *h, double share, uint64_t most)
{
	const uint64_t ns = xsp_histogram_quantile(h, share);

	return xsp_cell_integer(ns < most ? ns : most);
}

/* The process's number as outputs show it. */
static inline struct xsp_cell pid_cell(const struct xsp_gpu_analysis *g, uint32_t pid)
{
	const struct xsp_timeline_thread *th = xsp_timeline_thread(g->timeline, pid);

	return xsp_cell_integer(th != NULL && th->ns_pid != 0 ? th->ns_pid : pid);
}

static inline struct xsp_cell moment_cell(const struct xsp_gpu_analysis *g, uint64_t ns)
{
	return xsp_cell_integer(ns > g->origin_ns ? ns - g->origin_ns : 0);
}

/* The name of GPU work; NULL: XSP_GPU_NOWHERE. */
const char *xsp_gpu_work_name(const struct writer *w, uint32_t name);
/* Kernels and copies; operators; the critical path. 0 or -ENOMEM. */
int xsp_gpu_report_names(struct writer *w);
void xsp_gpu_report_operators(const struct writer *w);
int xsp_gpu_report_path(const struct writer *w);

#endif
