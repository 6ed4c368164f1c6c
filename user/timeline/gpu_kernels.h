/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_kernels.h - names of kernels without CUPTI: of host functions by their symbols, of handles by the
 * calls that gave them out. What no call has told stays without a name.
 */
#ifndef XSP_TIMELINE_GPU_KERNELS_H
#define XSP_TIMELINE_GPU_KERNELS_H

#include <stdint.h>

#include "catalog/gpu/cuda_table.h"

struct xsp_timeline;

/* The kernel that a launch of process `pid` names by `function`; NULL: not known. */
const char *xsp_timeline_kernel(const struct xsp_timeline *t, uint32_t pid, uint64_t function);

#endif
