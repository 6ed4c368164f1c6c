/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.h - memory from the outside. It shows what the kernel counts for each process. It also
 * shows what CUDA's allocation calls and PyTorch's allocators (--memory) gave and took, matched by
 * address. Allocations before the recording are not known.
 */
#ifndef XSP_TIMELINE_MEMORY_H
#define XSP_TIMELINE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/gpu/cuda_table.h"
#include "xsptrace/event.h"

struct xsp_timeline;

/* The memory of a process at a moment; comes when it has changed. */
struct xsp_process_memory_at {
	uint64_t time_ns;
	uint32_t pid; /* root namespace */
	struct xsp_process_memory memory;
};

/* Who gave out the memory. */
enum xsp_memory_pool {
	XSP_MEMORY_GPU, /* from CUDA's calls */
	XSP_MEMORY_PINNED, /* the host's, also from CUDA's calls */
	/* from PyTorch's allocators, for any device: part of one of the others, or of the host */
	XSP_MEMORY_TORCH,
	XSP_MEMORY_HEAP, /* from malloc: what its sampled blocks stand for */
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
	int64_t bytes; /* negative: freed. For HEAP it is an estimate, as are the next two */
	double blocks; /* how many it stands for: 1, for HEAP 1 or more */
	double variance; /* of the estimate of bytes: 0, except for HEAP's smaller blocks */
	enum xsp_memory_pool pool;
	uint8_t device_type; /* for TORCH: XSP_C10_* of catalog/allocators.h */
	uint32_t device; /* XSP_GPU_NO_ID: not known, or there is only one */
	/* what this process, pool and device have after it: from the allocator, else as far as
	 * known */
	uint64_t total;
	uint64_t reserved; /* what the allocator holds of the device, in use or not; else 0 */
	uint64_t op; /* id of the span around it; 0: none */
	uint32_t op_name; /* xsp_name_id, with op */
	uint32_t site; /* for an allocator: 1 + index of the allocation's place; 0: not known */
	bool unseen; /* a free that shows only when the address comes again, or by exec */
	bool exec; /* the whole process is gone; private to the timeline */
	bool left_out; /* dropped with its call; private to the timeline */
};

/* The memory of one process, pool and device. */
struct xsp_memory_use {
	uint32_t pid, device;
	enum xsp_memory_pool pool;
	uint8_t device_type;
	uint64_t now, peak, peak_ns, allocated;
	double allocations, frees; /* blocks */
	double now_variance, peak_variance, allocated_variance; /* HEAP */
	uint64_t unknown_frees; /* of earlier allocations, or of allocations in lost calls */
};
/* Complete after the run; in order of first use. */
size_t xsp_timeline_memory(const struct xsp_timeline *t, const struct xsp_memory_use **uses);

/* ---- --memory ---- */

/* A place of allocation. It is the innermost open span, and with --python the program's line.
 * Otherwise the heap has the program's functions, the innermost first: "grow (grow.c:12) <- load <-
 * main". */
struct xsp_memory_site {
	bool in_span;
	uint32_t span; /* xsp_name_id */
	uint32_t place; /* 1 + xsp_name_id: "train.py:21 train_step"; 0: not known */
	/* 1 + xsp_name_id: "Net_0.layers.0", the torch.nn.Module that is called; 0: none */
	uint32_t module;
	uint32_t file; /* for the heap: 1 + xsp_name_id of the source's path; 0: not known */
	uint32_t line;
};
/* Grows during the run. */
size_t xsp_timeline_memory_sites(const struct xsp_timeline *t,
				 const struct xsp_memory_site **sites);
/* The least number of bytes that a sampled block of the heap stands for; 0: no heap was
 * recorded. */
uint64_t xsp_timeline_heap_period(const struct xsp_timeline *t);
/* Were allocations recorded? */
bool xsp_timeline_has_allocations(const struct xsp_timeline *t);
/* Why nobody knows what is alive: this many events of allocations were lost (or more), or the
 * recording paused. */
uint64_t xsp_timeline_allocations_lost(const struct xsp_timeline *t);
bool xsp_timeline_allocations_in_windows(const struct xsp_timeline *t);

#endif
