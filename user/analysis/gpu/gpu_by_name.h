/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_by_name.h - what devices did, by name (kernels, copies and sets), and how it was launched, by
 * device. Activities may come in any order.
 */
#ifndef XSP_ANALYSIS_GPU_BY_NAME_H
#define XSP_ANALYSIS_GPU_BY_NAME_H

#include "analysis/gpu/gpu_sweep.h"
#include "base/histogram.h"

/* The least duration of a long call, as for HTA's outliers. */
#define XSP_GPU_LONG_CALL_NS 50000U
#define XSP_GPU_LONG_DELAY_NS 100000U

/* Means and extremes count only activities within the range: `whole` of `count`. */
struct xsp_gpu_name_use {
	enum xsp_gpu_kind kind;
	enum xsp_gpu_class class;
	const char *name; /* owned by the timeline or by this table */
	uint64_t count, total_ns;
	uint64_t whole, whole_ns, least_ns, most_ns;
	double squares; /* sum of squared durations, ns */
	struct xsp_histogram durations;
	uint64_t shorter; /* activities shorter than the call that launched them... */
	uint64_t launched; /* ... out of those whose launch is known */
	/* For kernels on a known device. */
	uint64_t occupied; /* kernels whose occupancy is known */
	double occupancy; /* sum of their occupancies, each 0 to 1 */
	const char *limit; /* of the last kernel: "REGS|SMEM" */
	/* For copies and sets. */
	uint64_t bytes, whole_bytes, asynchronous;
	uint64_t timed; /* those that lasted more than 0 ns */
	double bandwidth; /* sum of their bandwidths, bytes/s */
	double least_bandwidth, most_bandwidth;
};

/* Launches on one device, of one kind. Synchronous copies do not count, as nobody waits for their
 * launch. Nor does work of graphs, as many activities share one launch. */
struct xsp_gpu_launch_use {
	uint64_t count, call_ns, most_call_ns, long_calls;
	/* Long delays last from the end of the call to the start of the activity, 0 at least. */
	uint64_t delay_ns, most_delay_ns, long_delays;
	uint64_t shorter; /* activities shorter than their call */
	struct xsp_histogram delays;
};
#define XSP_GPU_LAUNCH_KINDS 3 /* XSP_GPU_IS_KERNEL, _MEMCPY, _MEMSET */

struct xsp_gpu_by_name;

int xsp_gpu_by_name_new(struct xsp_gpu_by_name **out); /* 0 or -ENOMEM */
void xsp_gpu_by_name_free(struct xsp_gpu_by_name *n);

/* Does its launch count? */
bool xsp_gpu_is_launched(const struct xsp_gpu_activity *a);
/* Adds a kernel, copy, set or graph. *index: the row of its name. 0 or -ENOMEM. */
int xsp_gpu_by_name_add(struct xsp_gpu_by_name *n, const struct xsp_gpu_activity *a,
			uint32_t *index);
/* `device`: index in the sweep. */
int xsp_gpu_by_name_launch(struct xsp_gpu_by_name *n, const struct xsp_gpu_activity *a,
			   uint32_t device);

size_t xsp_gpu_by_name_uses(const struct xsp_gpu_by_name *o, const struct xsp_gpu_name_use **rows);
/* NULL: the device has none. */
const struct xsp_gpu_launch_use *xsp_gpu_by_name_launches(const struct xsp_gpu_by_name *n,
							  uint32_t device, enum xsp_gpu_kind kind);

#endif
