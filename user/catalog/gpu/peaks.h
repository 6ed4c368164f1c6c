/* SPDX-License-Identifier: BSD-2-Clause */
/* peaks.h - the most that a device can do, from what its driver says. */
#ifndef XSP_CATALOG_GPU_PEAKS_H
#define XSP_CATALOG_GPU_PEAKS_H

#include <stdbool.h>

#include "xsptrace/gpu.h"

/* Single-precision operations a second without tensor cores (a multiplication and an addition are
 * two), and bytes a second of the device's memory. False: the device is not known well enough. */
bool xsp_gpu_peaks(const struct xsp_gpu_device *device, double *flops, double *bytes);

#endif
