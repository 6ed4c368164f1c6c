/* SPDX-License-Identifier: BSD-2-Clause */
/* unwind.h - from a function to its caller, by call frame information: x86-64. */
#ifndef XSP_TARGET_UNWIND_H
#define XSP_TARGET_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/module.h"

/* DWARF numbers of x86-64 (psABI 3.6.2): rax rdx rcx rbx rsi rdi rbp rsp r8..r15, return address */
#define XSP_WALK_REGISTERS 17
enum { XSP_WALK_RBX = 3, XSP_WALK_RBP = 6, XSP_WALK_RSP = 7, XSP_WALK_RA = 16 };

struct xsp_walk {
	uint64_t values[XSP_WALK_REGISTERS];
	uint32_t known; /* bit n: values[n] is known in this frame */
	uint32_t programs; /* bytes of call frame programs that were run up to this frame */
	bool interrupted; /* by a signal: its address is of an instruction, not behind a call */
};

/* Memory of the process: 0, or a negative errno. */
typedef int (*xsp_walk_load_fn)(const void *ctx, uint64_t address, void *to, size_t size);

/*
 * One frame up by the call frame information that covers the module's address (of a caller: the return
 * address - 1). Returns 0; 1 when there is no caller (the rule for the return address is "undefined");
 * -ENOENT when the information is missing or of a kind that is not understood.
 */
int xsp_walk_up(struct xsp_module *module, uint64_t addr, xsp_walk_load_fn load, const void *ctx,
		struct xsp_walk *w);

/*
 * One frame up by the frame pointer alone: there stand the caller's frame pointer and the return address. Returns
 * 0, or -ENOENT when it is not known, lies below the stack pointer or cannot be read; `w` is then unchanged.
 */
int xsp_walk_up_frame_pointer(xsp_walk_load_fn load, const void *ctx, struct xsp_walk *w);

#endif
