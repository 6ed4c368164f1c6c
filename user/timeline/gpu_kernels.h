/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_kernels.h - names of kernels without CUPTI: host functions by their symbols, handles by the calls that returned
 * them. Others have no name.
 */
#ifndef XSP_TIMELINE_GPU_KERNELS_H
#define XSP_TIMELINE_GPU_KERNELS_H

#include <stdint.h>

#include "catalog/gpu/cuda_table.h"

struct xsp_timeline;

/* The kernel behind `function` in a launch of process `pid`; NULL: not known. */
const char *xsp_timeline_kernel(const struct xsp_timeline *t, uint32_t pid, uint64_t function);

#endif
