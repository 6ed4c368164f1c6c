/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * occupancy.h - how many blocks of a kernel fit on a multiprocessor, by the rules of
 * cuda_occupancy.h with its defaults, as Kineto applies them: no carveout preference, dynamic
 * shared memory opted in. tests/unit/test_occupancy.c compares the result with that header where it
 * is installed.
 */
#ifndef XSP_CATALOG_OCCUPANCY_H
#define XSP_CATALOG_OCCUPANCY_H

#include <stdbool.h>
#include <stdint.h>

#include "xsptrace/gpu.h"

struct xsp_occupancy {
	int active_blocks; /* on a multiprocessor */
	int limit_registers, limit_shared, limit_warps, limit_blocks, limit_barriers;
	int registers_per_block, shared_per_block; /* allocated */
	const char *factors; /* "REGS|SMEM": what limits it; static */
};

/* False: the device is not known well enough, or its generation has no rules here. */
bool xsp_occupancy(const struct xsp_gpu_device *device, const struct xsp_gpu_kernel *kernel,
		   struct xsp_occupancy *out);
/* The blocks of the kernel for each multiprocessor of the device; not an integer. */
double xsp_blocks_per_multiprocessor(const struct xsp_gpu_device *device,
				     const struct xsp_gpu_kernel *kernel);
/* The share of a multiprocessor's threads that the kernel can occupy, 0 to 1: Kineto's "est.
 * achieved occupancy". */
double xsp_occupancy_share(const struct xsp_gpu_device *device, const struct xsp_gpu_kernel *kernel,
			   const struct xsp_occupancy *occupancy);

#endif
