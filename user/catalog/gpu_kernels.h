/* SPDX-License-Identifier: BSD-2-Clause */
/* gpu_kernels.h - what kernels are for, by their names. */
#ifndef XSP_CATALOG_GPU_KERNELS_H
#define XSP_CATALOG_GPU_KERNELS_H

#include <stdbool.h>

/* Is it a kernel of a library that moves data between devices (NCCL, RCCL, HCCL)? By demangled name, as HTA tells them. */
bool xsp_kernel_communicates(const char *name);

#endif
