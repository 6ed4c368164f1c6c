/* SPDX-License-Identifier: BSD-2-Clause */
/* gpu_peaks.h - what a device can do at most, from what the driver says of it. */
#ifndef XSP_CATALOG_GPU_PEAKS_H
#define XSP_CATALOG_GPU_PEAKS_H

#include <stdbool.h>

#include "xsptrace/gpu.h"

/* Single-precision operations a second without tensor cores (a multiplication and an addition are two), and bytes a
 * second of its own memory. False: the device is not known well enough. */
bool xsp_gpu_peaks(const struct xsp_gpu_device *device, double *flops, double *bytes);

#endif
