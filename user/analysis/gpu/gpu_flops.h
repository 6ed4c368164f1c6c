/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_flops.h - operators of PyTorch whose shapes were recorded: the operations that they ask for (catalog/torch/flops.h), the
 * bytes of the tensors that they read and wrote, and the time of the kernels that they launched.
 *
 * Kernels are told seconds later than operators: so many operators wait for theirs, the oldest goes first.
 */
#ifndef XSP_ANALYSIS_GPU_FLOPS_H
#define XSP_ANALYSIS_GPU_FLOPS_H

#include "timeline/timeline.h"

#define XSP_GPU_FLOPS_WAITING 262144U
/* The kernels of an operator that lasts longer may have been told before it ended: it is left out. */
#define XSP_GPU_FLOPS_LONGEST_NS 500000000ULL

/* Calls whose kernels are known. Sums may be XSP_TOO_MUCH. */
struct xsp_gpu_flops_use {
	xsp_name_id name;
	uint64_t calls, flops, gpu_ns;
	/* of all tensors that were recorded: at least so many had to be read or written, if nothing was still in a cache */
	uint64_t bytes;
};

struct xsp_gpu_flops;

int xsp_gpu_flops_new(const struct xsp_capture_reader *r, struct xsp_gpu_flops **out);
void xsp_gpu_flops_free(struct xsp_gpu_flops *f);

/* All return 0 or -ENOMEM. */
int xsp_gpu_flops_span(struct xsp_gpu_flops *f, const struct xsp_span *span);
/* `id` as xsp_gpu_activity.external. */
int xsp_gpu_flops_op(struct xsp_gpu_flops *f, uint64_t id, xsp_name_id name, uint64_t flops,
		     uint64_t bytes);
void xsp_gpu_flops_work(struct xsp_gpu_flops *f, uint64_t id, uint64_t ns);
/* Nothing more comes. */
int xsp_gpu_flops_end(struct xsp_gpu_flops *f);

size_t xsp_gpu_flops_uses(const struct xsp_gpu_flops *f, const struct xsp_gpu_flops_use **out);

#endif
