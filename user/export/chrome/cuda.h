/* SPDX-License-Identifier: BSD-2-Clause */
/* cuda.h - the sections of a CUDA call as arguments of its slice. */
#ifndef XSP_EXPORT_CHROME_CUDA_H
#define XSP_EXPORT_CHROME_CUDA_H

#include "export/export_private.h"

int xsp_chrome_cuda_arguments(struct xsp_export *x, const struct xsp_span *span,
			      const struct xsp_section *section);
int xsp_chrome_cuda_result(struct xsp_export *x, const struct xsp_span *span,
			   const struct xsp_section *section);
int xsp_chrome_cuda_written(struct xsp_export *x, const struct xsp_span *span,
			    const struct xsp_section *section);

/* What a call returned that failed. */
void xsp_chrome_cuda_error(struct xsp_export *x, enum xsp_cuda_api api, uint32_t code);

#endif
