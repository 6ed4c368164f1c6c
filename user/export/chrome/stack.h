/* SPDX-License-Identifier: BSD-2-Clause */
/* stack.h - the native stack of a slice as Kineto's "Call stack": "inner;outer;...". */
#ifndef XSP_EXPORT_CHROME_STACK_H
#define XSP_EXPORT_CHROME_STACK_H

#include "export/export_private.h"

int xsp_chrome_stack(struct xsp_export *x, const struct xsp_span *span,
		     const struct xsp_section *section);

#endif
