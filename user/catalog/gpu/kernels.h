/* SPDX-License-Identifier: BSD-2-Clause */
/* kernels.h - what a kernel does, by its name. */
#ifndef XSP_CATALOG_GPU_KERNELS_H
#define XSP_CATALOG_GPU_KERNELS_H

#include <stdbool.h>

/* Does this kernel move data between devices for a library (NCCL, RCCL, HCCL)? By its demangled
 * name, as HTA does. */
bool xsp_kernel_communicates(const char *name);

#endif
