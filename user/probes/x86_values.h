/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86_values.h - what is known of registers and stack slots along straight x86-64 code: constants,
 * addresses in the module, and distances from what a register held where the code began.
 * Whatever is not understood is unknown.
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

#define XSP_VALUE_SLOTS 32
struct xsp_value_slot {
	struct xsp_value at; /* XSP_VALUE_REGISTER: its address; 8 bytes. Else: free */
	struct xsp_value value;
};
struct xsp_values {
	struct xsp_value reg[16];
	struct xsp_value xmm[16][2]; /* low and high 8 bytes */
	struct xsp_value_slot slots[XSP_VALUE_SLOTS];
};

/* What a function must keep for its caller: rbx, rsp, rbp, r12..r15 (System V ABI, 3.2.1). */
#define XSP_REGS_KEPT (1U << 3 | 1U << 4 | 1U << 5 | 0xfU << 12)

enum { XSP_REG_RSP = 4, XSP_REG_RDI = 7 };

/* At the beginning: each register holds what it holds, memory is unknown. */
void xsp_values_begin(struct xsp_values *v);
/* One instruction that does not change the flow; `next`: address of the one after it. */
void xsp_values_step(struct xsp_values *v, const ZydisDecodedInstruction *d,
		     const ZydisDecodedOperand *ops, uint64_t next);
/* Number of the general register (as in xsp_value.base) that the operand is or is part of; -1. */
int xsp_values_register(const ZydisDecodedOperand *o);
/* A call that comes back: what the System V ABI lets a function change is unknown. */
void xsp_values_call(struct xsp_values *v);
/* Keeps what both know. True if `v` changed. */
bool xsp_values_merge(struct xsp_values *v, const struct xsp_values *with);
/* The 8 bytes at [register + offset]. */
struct xsp_value xsp_values_at(const struct xsp_values *v, unsigned reg, int64_t offset);

#endif
