/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_host.h - what threads that launch did while their device was idle.
 *
 * Spans and waits are held until the devices' idle time up to their end is known; then each gets
 * its share. A thread counts as launching from its first launch on, but what it did before made
 * that launch late. So spans of all threads are held.
 *
 * There are limits. Spans above the limit get their share from what is known by then. Threads that
 * have not launched lose their oldest entries. Older idle time is kept only as sums over longer and
 * longer stretches, for spans that are still open.
 */
#ifndef XSP_ANALYSIS_GPU_HOST_H
#define XSP_ANALYSIS_GPU_HOST_H

#include "analysis/names/name_rows.h"
#include "timeline/timeline.h"

#define XSP_GPU_HOST_HELD_MOST (1U << 21) /* spans and waits, 24 bytes each */
#define XSP_GPU_HOST_BEFORE_MOST (1U << 19) /* in addition, for threads that have not launched */
#define XSP_GPU_HOST_POINTS_MOST (1U << 17) /* for each thread and device, 16 bytes each */

/* What the threads did, in spans or off their CPU. */
struct xsp_gpu_host_use {
	bool wait; /* true: off its CPU, with a reason and a place; false: in a span */
	xsp_name_id name; /* innermost span; the first of names that differ only in a number */
	uint32_t parent; /* 1 + row of its parent's name; 0: none */
	uint32_t why; /* of a wait: enum xsp_wait_class */
	uint32_t place; /* of a wait: 1 + xsp_name_id; 0: not known */
	const struct xsp_capture_python_frame *line; /* NULL: not known */
	uint64_t idle_ns; /* summed over devices, without the time in inner spans */
};

struct xsp_gpu_host;

int xsp_gpu_host_new(const struct xsp_timeline *t, struct xsp_gpu_host **out); /* 0 or -ENOMEM */
void xsp_gpu_host_free(struct xsp_gpu_host *h);

/* 0 or -ENOMEM. */
int xsp_gpu_host_span(struct xsp_gpu_host *h, const struct xsp_span *span);
int xsp_gpu_host_wait(struct xsp_gpu_host *h, const struct xsp_wait *wait);
/* The thread launches: from now on its entries are kept. */
int xsp_gpu_host_launches(struct xsp_gpu_host *h, uint32_t tid);
/* Device `device` (an index) was idle because thread `tid` had not launched yet. Each device's gaps
 * come in order of time. */
int xsp_gpu_host_gap(struct xsp_gpu_host *h, uint32_t tid, uint32_t device, uint64_t from_ns,
		     uint64_t to_ns);
/* Call it once all gaps that begin before `ns` are known. */
int xsp_gpu_host_pass(struct xsp_gpu_host *h, uint64_t ns);

/* Valid until the next call. */
size_t xsp_gpu_host_uses(const struct xsp_gpu_host *o, const struct xsp_gpu_host_use **rows);
struct xsp_gpu_host_sums {
	uint64_t idle_ns; /* of all */
	uint64_t span_ns; /* of it, in spans; the threads were in none during the rest */
	/* spans and waits that got their share too early, for want of room. Includes entries dropped
	 * before a thread's first launch, if a device was idle during any of them */
	uint64_t early;
};
const struct xsp_gpu_host_sums *xsp_gpu_host_sums(const struct xsp_gpu_host *h);

/* Returns the row of the name (analysis/names/name_rows.h). 0 or -ENOMEM. */
int xsp_gpu_host_row(struct xsp_gpu_host *h, xsp_name_id id, xsp_name_id *row);

/* The name as shown: "ProfilerStep#*" where several differ only in a number. */
#define XSP_GPU_HOST_NAME_MAX XSP_NAME_ROW_TEXT
const char *xsp_gpu_host_name(const struct xsp_gpu_host *h, xsp_name_id id,
			      char out[XSP_GPU_HOST_NAME_MAX]);

#endif
