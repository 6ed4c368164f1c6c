/* SPDX-License-Identifier: BSD-2-Clause */
/* cfi_step.h - one frame up a thread's stack, by call frame information. x86-64. */
#ifndef XSP_TARGET_CFI_STEP_H
#define XSP_TARGET_CFI_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/eh_frame.h"

/* DWARF numbers of x86-64 (psABI 3.6.2): rax rdx rcx rbx rsi rdi rbp rsp r8..r15, return address */
#define XSP_WALK_REGISTERS 17
enum { XSP_WALK_RBX = 3, XSP_WALK_RBP = 6, XSP_WALK_RSP = 7, XSP_WALK_RA = 16 };

struct xsp_walk {
	uint64_t values[XSP_WALK_REGISTERS];
	uint32_t known; /* bit n: values[n] is known in this frame */
	bool interrupted; /* by a signal: its address is of an instruction, not behind a call */
};

/* What a walk stands on. Both return 0 or a negative errno. */
struct xsp_walk_source {
	/* The FDE that covers `pc`, the bytes of .eh_frame that it lies in, and pc as its file has it. */
	int (*fde)(const void *ctx, uint64_t pc, struct xsp_fde *fde, const uint8_t **data,
		   uint64_t *addr);
	int (*load)(const void *ctx, uint64_t address, void *to, size_t size);
	const void *ctx;
};

/*
 * One frame up by the call frame information that covers `pc` (for a caller: the return address - 1).
 * Returns 0; 1 when there is no caller (the rule for the return address is "undefined");
 * -ENOENT when the information is missing or of a kind that is not understood.
 */
int xsp_cfi_step(const struct xsp_walk_source *s, struct xsp_walk *w, uint64_t pc);

#endif
