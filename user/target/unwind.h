/* SPDX-License-Identifier: BSD-2-Clause */
/* unwind.h - from a function to its caller, by call frame information. */
#ifndef XSP_TARGET_UNWIND_H
#define XSP_TARGET_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/module.h"

#if defined(__aarch64__)
/* DWARF numbers of arm64 (AADWARF64 4.1): x0 to x30, sp. x29 and sp go by the names of their like. */
#define XSP_WALK_REGISTERS 32
enum { XSP_WALK_RBP = 29, XSP_WALK_RA = 30, XSP_WALK_RSP = 31 };
#else
/* DWARF numbers of x86-64 (psABI 3.6.2): rax rdx rcx rbx rsi rdi rbp rsp r8..r15, return address */
#define XSP_WALK_REGISTERS 17
enum { XSP_WALK_RBX = 3, XSP_WALK_RBP = 6, XSP_WALK_RSP = 7, XSP_WALK_RA = 16 };
#endif

#define XSP_WALK_ALL                                                                               \
	(UINT32_MAX >> (32 - XSP_WALK_REGISTERS)) /* `known`: of a thread that is stopped */

struct xsp_walk {
	uint64_t values[XSP_WALK_REGISTERS];
	uint32_t known; /* bit n: values[n] is known in this frame */
	uint32_t programs; /* bytes of call frame programs run up to this frame */
	bool interrupted; /* by a signal: its address is an instruction, not the one after a call */
	bool called; /* has made a call: the return address is its own, and no longer its caller's */
};

/* Reads memory of the process: 0, or a negative errno. */
typedef int (*xsp_walk_load_fn)(const void *ctx, uint64_t address, void *to, size_t size);

/*
 * Goes one frame up by the call frame information that covers the module's address (for a caller:
 * the return address - 1). Returns 0; 1 if there is no caller (the rule for the return address is
 * "undefined"); -ENOENT if the information is missing or not understood.
 */
int xsp_walk_up(struct xsp_module *module, uint64_t addr, xsp_walk_load_fn load, const void *ctx,
		struct xsp_walk *w);

/*
 * Goes one frame up by the frame pointer alone, which points at the caller's frame pointer and the
 * return address. Returns 0, or -ENOENT if it is unknown, below the stack pointer or unreadable;
 * `w` is then unchanged.
 */
int xsp_walk_up_frame_pointer(xsp_walk_load_fn load, const void *ctx, struct xsp_walk *w);

#endif
