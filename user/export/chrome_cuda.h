/* SPDX-License-Identifier: BSD-2-Clause */
/* chrome_cuda.h - the sections of a CUDA call as arguments of its slice. */
#ifndef XSP_EXPORT_CHROME_CUDA_H
#define XSP_EXPORT_CHROME_CUDA_H

#include "export/chrome_details.h"

int xsp_chrome_cuda_words(struct xsp_export *x, const struct xsp_span *span,
			  const struct xsp_section *section);
int xsp_chrome_cuda_result(struct xsp_export *x, const struct xsp_span *span,
			   const struct xsp_section *section);
int xsp_chrome_cuda_written(struct xsp_export *x, const struct xsp_span *span,
			    const struct xsp_section *section);

#endif
