/* SPDX-License-Identifier: BSD-2-Clause */
/* format.h - the hooks of a format whose state is stacks and nothing else. */
#ifndef XSP_EXPORT_STACK_FORMAT_H
#define XSP_EXPORT_STACK_FORMAT_H

#include "export/export_private.h"

int xsp_stack_format_begin(struct xsp_export *x);
int xsp_stack_format_span(struct xsp_export *x, const struct xsp_span *span);
int xsp_stack_format_wait(struct xsp_export *x, const struct xsp_wait *wait);
void xsp_stack_format_discard(struct xsp_export *x);

/* In its row: all but its name and its end(), which seals them. */
#define XSP_STACK_FORMAT                                                                           \
	.stacks = true, .begin = xsp_stack_format_begin, .span = xsp_stack_format_span,            \
	.wait = xsp_stack_format_wait, .discard = xsp_stack_format_discard

#endif
