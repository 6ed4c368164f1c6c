/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_memory.h - GPU memory from the outside: bytes that CUDA's allocation calls gave and took, matched
 * by address. What was allocated before the recording is not known.
 */
#ifndef XSP_TIMELINE_GPU_MEMORY_H
#define XSP_TIMELINE_GPU_MEMORY_H

#include <stdint.h>

#include "catalog/cuda_table.h"

struct xsp_timeline;

struct xsp_memory_event {
	uint64_t time_ns; /* end of the call */
	uint32_t pid, tid, row; /* root namespace */
	uint64_t address; /* or the handle of physical memory */
	int64_t bytes; /* negative: freed */
	uint32_t device; /* XSP_GPU_NO_ID: which one is not known */
	bool host; /* pinned memory of the host */
	uint64_t total; /* of this process and device (or host) after it */
	uint64_t op; /* id of the operator around it; 0: none */
	uint32_t op_name; /* xsp_name_id, with op */
	bool left_out; /* with its call; of the timeline alone */
};

/* Of one process and device (or of pinned host memory). */
struct xsp_memory_use {
	uint32_t pid, device;
	bool host;
	uint64_t now, peak, peak_ns, allocations, frees;
	uint64_t unknown_frees; /* of what was allocated before, or in calls that were lost */
};
/* Complete after the run; in the order they were met. */
size_t xsp_timeline_memory(const struct xsp_timeline *t, const struct xsp_memory_use **uses);

#endif
