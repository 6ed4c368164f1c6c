/* SPDX-License-Identifier: BSD-2-Clause */
/* format.h - what formats of stacks share: hooks whose only state is stacks, and lines of folded
 * stacks. */
#ifndef XSP_EXPORT_STACK_FORMAT_H
#define XSP_EXPORT_STACK_FORMAT_H

#include "export/export_private.h"
#include "model/stacks/stacks.h"

int xsp_stack_format_begin(struct xsp_export *x);
int xsp_stack_format_span(struct xsp_export *x, const struct xsp_span *span);
int xsp_stack_format_wait(struct xsp_export *x, const struct xsp_wait *wait);
int xsp_stack_format_sample(struct xsp_export *x, const struct xsp_sample *sample);
void xsp_stack_format_discard(struct xsp_export *x);

/* The fields of a format's row, except its name and its end(), which seals the stacks. */
#define XSP_STACK_FORMAT                                                                           \
	.stacks = true, .begin = xsp_stack_format_begin, .span = xsp_stack_format_span,            \
	.wait = xsp_stack_format_wait, .outside = xsp_stack_format_sample,                         \
	.discard = xsp_stack_format_discard

/* The path to the current node: its text without terminator, and where each frame ends in it.
 * Zero-initialise; the text is malloced. */
struct xsp_folded_line {
	char *text;
	size_t capacity;
	size_t ends[XSP_STACKS_DEPTH + 3];
};

/* Appends the frame of `depth` (1 to XSP_STACKS_DEPTH + 2) to its parent's path. 0 or -ENOMEM. */
int xsp_folded_frame(struct xsp_folded_line *l, uint32_t depth, const char *name);

#endif
