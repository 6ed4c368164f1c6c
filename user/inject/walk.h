/* SPDX-License-Identifier: BSD-2-Clause */
/* walk.h - a stopped thread's stack: is anything on it that must not be interrupted? */
#ifndef XSP_INJECT_WALK_H
#define XSP_INJECT_WALK_H

#include "inject/image.h"

/* DWARF numbers of x86-64 (psABI 3.6.2): rax rdx rcx rbx rsi rdi rbp rsp r8..r15, return address */
#define XSP_WALK_REGISTERS 17
enum { XSP_WALK_RBX = 3, XSP_WALK_RBP = 6, XSP_WALK_RSP = 7, XSP_WALK_RA = 16 };

struct xsp_walk {
	uint64_t values[XSP_WALK_REGISTERS];
	uint32_t known; /* bit n: values[n] is known in this frame */
};

/*
 * One frame up by the call frame information that covers `pc` (for a caller: the return address - 1).
 * Returns 0; 1 when there is no caller (the rule for the return address is "undefined");
 * -ENOENT when the information is missing or of a kind that is not understood.
 */
int xsp_walk_step(const struct xsp_image *image, struct xsp_walk *w, uint64_t pc);

/*
 * NULL if the stack holds no frame of the loader, an allocator, a signal handler, or another banned
 * function; else what was found, a constant text. Follows the call frame information; from where
 * that ends (code made at run time) every word of the rest that could be a return address counts.
 */
const char *xsp_walk_danger(const struct xsp_image *image, const struct xsp_walk *start);

#endif
