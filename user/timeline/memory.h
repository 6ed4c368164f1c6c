/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.h - memory from the outside: what the kernel counts of each process; and what CUDA's allocation calls and
 * PyTorch's allocators (--memory) gave and took, matched by address. Allocations before the recording are not known.
 */
#ifndef XSP_TIMELINE_MEMORY_H
#define XSP_TIMELINE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/gpu/cuda_table.h"
#include "xsptrace/event.h"

struct xsp_timeline;

/* What a process had at a moment; comes when it has changed. */
struct xsp_process_memory_at {
	uint64_t time_ns;
	uint32_t pid; /* root namespace */
	struct xsp_process_memory memory;
};

/* Whose memory it is. */
enum xsp_memory_pool {
	XSP_MEMORY_GPU, /* by CUDA's calls */
	XSP_MEMORY_PINNED, /* of the host, also by CUDA's calls */
	/* PyTorch's allocators, of any device: inside one of the others, or of the host */
	XSP_MEMORY_TORCH,
	XSP_MEMORY_HEAP, /* malloc's: what its sampled blocks stand for */
};
/* An allocator of the program's own, by --memory? */
static inline bool xsp_memory_is_allocator(enum xsp_memory_pool pool)
{
	return pool >= XSP_MEMORY_TORCH;
}

struct xsp_memory_event {
	uint64_t time_ns; /* end of CUDA's call */
	uint32_t pid, tid, row; /* root namespace */
	uint64_t address; /* or the handle of physical memory */
	int64_t bytes; /* negative: freed. HEAP: an estimate, as the next two */
	double blocks; /* it stands for so many: 1, HEAP: 1 and more */
	double variance; /* of bytes, as an estimate: 0, but not for HEAP's smaller ones */
	enum xsp_memory_pool pool;
	uint8_t device_type; /* of TORCH: XSP_C10_* of catalog/allocators.h */
	uint32_t device; /* XSP_GPU_NO_ID: not known, or there is only one */
	/* of this process, pool and device after it: from the allocator, else as far as known */
	uint64_t total;
	uint64_t reserved; /* what a device's allocator has for it, in use or not; else 0 */
	uint64_t op; /* id of the span around it; 0: none */
	uint32_t op_name; /* xsp_name_id, with op */
	uint32_t site; /* of an allocator: 1 + index of the place of allocation; 0: not known */
	bool unseen; /* a free that shows only when the address comes again, or by exec */
	bool exec; /* the whole process is gone; the timeline's alone */
	bool left_out; /* dropped with its call; the timeline's alone */
};

/* Of one process, pool and device. */
struct xsp_memory_use {
	uint32_t pid, device;
	enum xsp_memory_pool pool;
	uint8_t device_type;
	uint64_t now, peak, peak_ns, allocated;
	double allocations, frees; /* blocks */
	double now_variance, peak_variance, allocated_variance; /* HEAP */
	uint64_t unknown_frees; /* of earlier allocations, or in calls that were lost */
};
/* Complete after the run; in order of first use. */
size_t xsp_timeline_memory(const struct xsp_timeline *t, const struct xsp_memory_use **uses);

/* ---- --memory ---- */

/* A place of allocation: the innermost open span, and with --python the program's line; for the heap otherwise the
 * program's functions, the innermost first: "grow (grow.c:12) <- load <- main". */
struct xsp_memory_site {
	bool in_span;
	uint32_t span; /* xsp_name_id */
	uint32_t place; /* 1 + xsp_name_id: "train.py:21 train_step"; 0: not known */
	/* 1 + xsp_name_id: "Net_0.layers.0", the torch.nn.Module that is called; 0: none */
	uint32_t module;
	uint32_t file; /* of the heap, 1 + xsp_name_id: path of the source; 0: not known */
	uint32_t line;
};
/* Grows during the run. */
size_t xsp_timeline_memory_sites(const struct xsp_timeline *t,
				 const struct xsp_memory_site **sites);
/* Of the heap: the least number of bytes that a sampled block stands for; 0: no heap was recorded. */
uint64_t xsp_timeline_heap_period(const struct xsp_timeline *t);
/* Were allocations recorded? */
bool xsp_timeline_has_allocations(const struct xsp_timeline *t);
/* Why it is not known what is alive: so many of their events were lost (or more), or the recording paused. */
uint64_t xsp_timeline_allocations_lost(const struct xsp_timeline *t);
bool xsp_timeline_allocations_in_windows(const struct xsp_timeline *t);

#endif
