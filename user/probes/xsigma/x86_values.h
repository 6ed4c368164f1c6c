/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86_values.h - what is known of registers and stack slots along straight x86-64 code: constants,
 * addresses in the module, and distances from what a register held where the code began. Anything
 * that is not understood is unknown.
 */
#ifndef XSP_PROBES_X86_VALUES_H
#define XSP_PROBES_X86_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <Zydis/Zydis.h>

enum xsp_value_kind {
	XSP_VALUE_UNKNOWN = 0,
	XSP_VALUE_CONSTANT, /* n */
	XSP_VALUE_ADDRESS, /* n: an address of the module */
	XSP_VALUE_REGISTER, /* what register `base` held at the beginning, plus n */
};
struct xsp_value {
	uint8_t kind; /* enum xsp_value_kind */
	uint8_t base; /* 0..15: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8.. */
	int64_t n;
};
bool xsp_value_same(struct xsp_value a, struct xsp_value b);

#define XSP_VALUE_SLOTS 64
struct xsp_value_slot {
	struct xsp_value at; /* XSP_VALUE_REGISTER: its address; 8 bytes. Else: free */
	struct xsp_value value;
};
/*
 * Addresses on the stack that a function passes to others or keeps. Functions that it calls, and
 * its writes through pointers, may reach from there upwards, up to the next escaped address. Those
 * that get the address of a guard stay inside the guard.
 */
#define XSP_ESCAPED_ADDRESSES 128
struct xsp_escaped {
	struct {
		struct xsp_value at; /* XSP_VALUE_REGISTER of the stack pointer */
		bool guard, other; /* passed to functions of a guard; to any other */
	} items[XSP_ESCAPED_ADDRESSES];
	size_t count;
	bool all; /* more than there was room for */
};
struct xsp_values {
	struct xsp_value reg[16];
	struct xsp_value xmm[16][2]; /* low and high 8 bytes */
	struct xsp_value_slot slots[XSP_VALUE_SLOTS];
	const struct xsp_escaped *escaped; /* NULL: everything is within reach */
};

/* What a function must preserve for its caller: rbx, rsp, rbp, r12..r15 (System V ABI, 3.2.1). */
#define XSP_REGS_KEPT (1U << 3 | 1U << 4 | 1U << 5 | 0xfU << 12)

enum { XSP_REG_RSP = 4, XSP_REG_RBP = 5, XSP_REG_RSI = 6, XSP_REG_RDI = 7 };

/* Initially each register holds its own first value, and memory is unknown. */
void xsp_values_begin(struct xsp_values *v);
/* Executes one instruction that does not change the flow; `next`: the address after it. */
void xsp_values_step(struct xsp_values *v, const ZydisDecodedInstruction *d,
		     const ZydisDecodedOperand *ops, uint64_t next);
/* The number of the general register (as in xsp_value.base) that the operand is, or is part of; or
 * -1. */
int xsp_values_register(const ZydisDecodedOperand *o);
/* A call that returns: what the System V ABI lets a function change becomes unknown. */
void xsp_values_call(struct xsp_values *v);
/* Keeps what both know. True if `v` changed. */
bool xsp_values_merge(struct xsp_values *v, const struct xsp_values *with);
/* The address of a memory operand; unknown: it is not on the stack, or not known. */
struct xsp_value xsp_values_address(const struct xsp_values *v, const ZydisDecodedOperand *o,
				    uint64_t next);
/* May others write there? */
bool xsp_is_within_reach(const struct xsp_escaped *escaped, struct xsp_value at);
/* Writes 8 bytes at [at + offset]. */
void xsp_values_write(struct xsp_values *v, struct xsp_value at, int64_t offset,
		      struct xsp_value value);
/* The 8 bytes at [register + offset]. */
struct xsp_value xsp_values_at(const struct xsp_values *v, unsigned reg, int64_t offset);

#endif
