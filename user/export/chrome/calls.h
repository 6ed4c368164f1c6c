/* SPDX-License-Identifier: BSD-2-Clause */
/* calls.h - calls of CUDA's API as slices, as Kineto writes them: cuda_runtime and cuda_driver. */
#ifndef XSP_EXPORT_CHROME_CALLS_H
#define XSP_EXPORT_CHROME_CALLS_H

#include "export/export_private.h"

int xsp_chrome_call(struct xsp_export *x, const struct xsp_gpu_call *call);
/* Is the span a call of CUDA's API? Then it is written here, now or when CUPTI's record has come. */
bool xsp_chrome_is_call(const struct xsp_export *x, const struct xsp_span *span);
int xsp_chrome_call_span(struct xsp_export *x, const struct xsp_span *span);

#endif
