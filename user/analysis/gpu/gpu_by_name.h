/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_by_name.h - what devices did, by name: kernels, copies and sets; and how it was launched, by device. In any order.
 */
#ifndef XSP_ANALYSIS_GPU_BY_NAME_H
#define XSP_ANALYSIS_GPU_BY_NAME_H

#include "analysis/gpu/gpu_sweep.h"
#include "base/histogram.h"

/* HTA's outliers. */
#define XSP_GPU_LONG_CALL_NS 50000U
#define XSP_GPU_LONG_DELAY_NS 100000U

/* Means and extremes are of those that do not go beyond a cut: `whole` of `count`. */
struct xsp_gpu_name_use {
	enum xsp_gpu_kind kind;
	enum xsp_gpu_class class;
	const char *name; /* the timeline's, or this table's */
	uint64_t count, total_ns;
	uint64_t whole, whole_ns, least_ns, most_ns;
	double squares; /* of ns */
	struct xsp_histogram durations;
	uint64_t shorter; /* than the call that launched them, of... */
	uint64_t launched; /* ... those whose launch is known */
	/* kernels on a device that is known */
	uint64_t occupied; /* of how many the occupancy is known */
	double occupancy; /* their sum, 0 to 1 each */
	const char *limit; /* of the last one: "REGS|SMEM" */
	/* copies and sets */
	uint64_t bytes, whole_bytes, asynchronous;
	uint64_t timed; /* that lasted more than 0 ns */
	double bandwidth; /* their sum, bytes/s each */
	double least_bandwidth, most_bandwidth;
};

/* Of one device and kind. Synchronous copies and work of graphs are in none: nobody waits for their launch, or it is not
 * theirs alone. */
struct xsp_gpu_launch_use {
	uint64_t count, call_ns, most_call_ns, long_calls;
	uint64_t delay_ns, most_delay_ns,
		long_delays; /* from the call's end to the beginning, not below 0 */
	uint64_t shorter; /* activities that are shorter than their call */
	struct xsp_histogram delays;
};
#define XSP_GPU_LAUNCH_KINDS 3 /* XSP_GPU_IS_KERNEL, _MEMCPY, _MEMSET */

struct xsp_gpu_by_name;

int xsp_gpu_by_name_new(struct xsp_gpu_by_name **out); /* 0 or -ENOMEM */
void xsp_gpu_by_name_free(struct xsp_gpu_by_name *n);

/* Is its launch one of those that are counted? */
bool xsp_gpu_is_launched(const struct xsp_gpu_activity *a);
/* Of a kernel, copy, set or graph. *index: its name's. 0 or -ENOMEM. */
int xsp_gpu_by_name_add(struct xsp_gpu_by_name *n, const struct xsp_gpu_activity *a,
			uint32_t *index);
/* `device`: the sweep's index. */
int xsp_gpu_by_name_launch(struct xsp_gpu_by_name *n, const struct xsp_gpu_activity *a,
			   uint32_t device);

size_t xsp_gpu_by_name_uses(const struct xsp_gpu_by_name *o, const struct xsp_gpu_name_use **rows);
/* NULL: none on this device. */
const struct xsp_gpu_launch_use *xsp_gpu_by_name_launches(const struct xsp_gpu_by_name *n,
							  uint32_t device, enum xsp_gpu_kind kind);

#endif
