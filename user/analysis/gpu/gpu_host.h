/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_host.h - what the threads that launch did while their device had nothing to do.
 *
 * Spans and waits are held until the devices' idle time up to their end is known; then they get their part of it. That a
 * thread launches is seen when it does, and what it did before is what its first launch was late for: so those of all threads
 * are held. There are bounds: spans that are too many are taken with what is known by then, of threads that have not launched
 * the oldest are forgotten, and of idle time long ago only sums over longer and longer stretches are kept, for spans that
 * are still open.
 */
#ifndef XSP_ANALYSIS_GPU_HOST_H
#define XSP_ANALYSIS_GPU_HOST_H

#include "analysis/names/name_rows.h"
#include "timeline/timeline.h"

#define XSP_GPU_HOST_HELD_MOST (1U << 21) /* spans and waits, 24 bytes each */
#define XSP_GPU_HOST_BEFORE_MOST (1U << 19) /* besides, of threads that have not launched */
#define XSP_GPU_HOST_POINTS_MOST (1U << 17) /* of idle time of a thread and device, 16 bytes each */

/* Where the threads were. */
struct xsp_gpu_host_use {
	bool wait; /* off its CPU: why and where; else in a span */
	xsp_name_id name; /* the innermost span; of names that only number the first one */
	uint32_t parent; /* 1 + its parent's name, the same; 0: none */
	uint32_t why; /* of a wait: enum xsp_wait_class */
	uint32_t place; /* of a wait: 1 + xsp_name_id; 0: not known */
	const struct xsp_capture_python_frame *line; /* NULL: not known */
	uint64_t idle_ns; /* of devices, summed: without what is in spans inside it */
};

struct xsp_gpu_host;

int xsp_gpu_host_new(const struct xsp_timeline *t, struct xsp_gpu_host **out); /* 0 or -ENOMEM */
void xsp_gpu_host_free(struct xsp_gpu_host *h);

/* 0 or -ENOMEM. */
int xsp_gpu_host_span(struct xsp_gpu_host *h, const struct xsp_span *span);
int xsp_gpu_host_wait(struct xsp_gpu_host *h, const struct xsp_wait *wait);
/* The thread launches: what it does is not forgotten any more. */
int xsp_gpu_host_launches(struct xsp_gpu_host *h, uint32_t tid);
/* The device (an index) had nothing to do, because the thread had not launched; of a device in order of time. */
int xsp_gpu_host_gap(struct xsp_gpu_host *h, uint32_t tid, uint32_t device, uint64_t from_ns,
		     uint64_t to_ns);
/* All gaps that begin before this have been told. */
int xsp_gpu_host_pass(struct xsp_gpu_host *h, uint64_t ns);

/* Valid until the next call. */
size_t xsp_gpu_host_uses(const struct xsp_gpu_host *h, const struct xsp_gpu_host_use **out);
/* All idle time that was told of; in spans; of the rest, the threads were in none. */
uint64_t xsp_gpu_host_idle_ns(const struct xsp_gpu_host *h);
uint64_t xsp_gpu_host_span_ns(const struct xsp_gpu_host *h);
/* Spans and waits that were taken too early, for want of room; of those that a thread had before its first launch, all that
 * were forgotten by then, if a device was idle in the time of some. */
uint64_t xsp_gpu_host_early(const struct xsp_gpu_host *h);

/* The name's row: analysis/names/name_rows.h. 0 or -ENOMEM. */
int xsp_gpu_host_row(struct xsp_gpu_host *h, xsp_name_id id, xsp_name_id *row);

/* As it is shown: "ProfilerStep#*" for names that only number, where there are several, as in the table of operations. */
#define XSP_GPU_HOST_NAME_MAX XSP_NAME_ROW_TEXT
const char *xsp_gpu_host_name(const struct xsp_gpu_host *h, xsp_name_id id,
			      char out[XSP_GPU_HOST_NAME_MAX]);

#endif
