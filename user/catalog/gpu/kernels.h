/* SPDX-License-Identifier: BSD-2-Clause */
/* kernels.h - what a kernel does, by its name. */
#ifndef XSP_CATALOG_GPU_KERNELS_H
#define XSP_CATALOG_GPU_KERNELS_H

#include <stdbool.h>

/* Does this kernel move data between devices: one of a library (NCCL, RCCL, HCCL), or of a program's
 * own collectives? By its name, demangled or not, in any case of letters. */
bool xsp_kernel_communicates(const char *name);

#endif
