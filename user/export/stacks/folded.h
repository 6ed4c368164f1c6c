/* SPDX-License-Identifier: BSD-2-Clause */
/* folded.h - a line of folded stacks. */
#ifndef XSP_EXPORT_FOLDED_H
#define XSP_EXPORT_FOLDED_H

#include "model/stacks/stacks.h"

/* The path to the node at hand: text, not terminated, and where each of its frames ends. Zero-initialise; the text is
 * malloced. */
struct xsp_folded_line {
	char *text;
	size_t capacity;
	size_t ends[XSP_STACKS_DEPTH + 3];
};

/* Puts the frame of `depth` (1 to XSP_STACKS_DEPTH + 2) behind that of its parent. 0 or -ENOMEM. */
int xsp_folded_frame(struct xsp_folded_line *l, uint32_t depth, const char *name);

#endif
