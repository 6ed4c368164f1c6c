/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_flops.h - PyTorch operators whose shapes were recorded. Counts the operations they ask for
 * (catalog/torch/flops.h), the bytes of the tensors they read and write, and the time of their
 * kernels.
 *
 * Records of kernels come seconds after operators. A limited number of operators wait for their
 * kernels; the oldest goes first.
 */
#ifndef XSP_ANALYSIS_GPU_FLOPS_H
#define XSP_ANALYSIS_GPU_FLOPS_H

#include "timeline/timeline.h"

#define XSP_GPU_FLOPS_WAITING 262144U
/* A longer operator is not counted, since records of its kernels may come before it ends. */
#define XSP_GPU_FLOPS_LONGEST_NS 500000000ULL

/* Counts the calls whose kernels are known. Sums may be XSP_TOO_MUCH. */
struct xsp_gpu_flops_use {
	xsp_name_id name;
	uint64_t calls, flops, gpu_ns;
	/* size of all recorded tensors: at least so much is read or written without a cache */
	uint64_t bytes;
};

struct xsp_gpu_flops;

int xsp_gpu_flops_new(const struct xsp_capture_reader *r, struct xsp_gpu_flops **out);
void xsp_gpu_flops_free(struct xsp_gpu_flops *f);

/* All functions return 0 or -ENOMEM. */
int xsp_gpu_flops_span(struct xsp_gpu_flops *f, const struct xsp_span *span);
/* `id`: as in xsp_gpu_activity.external. */
int xsp_gpu_flops_op(struct xsp_gpu_flops *f, uint64_t id, xsp_name_id name, uint64_t flops,
		     uint64_t bytes);
void xsp_gpu_flops_work(struct xsp_gpu_flops *f, uint64_t id, uint64_t ns);
/* Call it when no more records come. */
int xsp_gpu_flops_end(struct xsp_gpu_flops *f);

size_t xsp_gpu_flops_uses(const struct xsp_gpu_flops *o, const struct xsp_gpu_flops_use **rows);

#endif
