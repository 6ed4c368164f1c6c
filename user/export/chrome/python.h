/* SPDX-License-Identifier: BSD-2-Clause */
/* python.h - the Python lines that a span was called from, as Kineto writes them. */
#ifndef XSP_EXPORT_CHROME_PYTHON_H
#define XSP_EXPORT_CHROME_PYTHON_H

#include "export/export_private.h"

int xsp_chrome_python(struct xsp_export *x, const struct xsp_span *span,
		      const struct xsp_section *section);

/* "FILE(LINE): FUNCTION", escaped. 0 or -ENOMEM. */
int xsp_chrome_python_line(struct xsp_export *x, const struct xsp_capture_python_frame *frame);

#endif
