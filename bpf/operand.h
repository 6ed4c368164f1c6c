/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* operand.h - reads a word of the target: struct xsp_operand. */
#ifndef XSP_BPF_OPERAND_H
#define XSP_BPF_OPERAND_H

#include "common.h"

/* The texts differ so that the compiler keeps the loads apart. It would else make one load at a
 * computed offset into the context, which the verifier refuses. */
#define REGISTER_CASE(number, load)                                                                \
	case number:                                                                               \
		value = load;                                                                      \
		asm volatile("/* operand " #number " %0 */" : "+r"(value));                        \
		break;

static __always_inline __u64 operand_register(struct pt_regs *ctx, const struct xsp_operand *o)
{
	__u64 value;

	switch (o->base) {
		REGISTER_CASE(0, XSP_REG_ARG1(ctx))
		REGISTER_CASE(1, XSP_REG_ARG2(ctx))
		REGISTER_CASE(2, XSP_REG_ARG3(ctx))
		REGISTER_CASE(3, XSP_REG_ARG4(ctx))
		REGISTER_CASE(4, XSP_REG_ARG5(ctx))
		REGISTER_CASE(5, XSP_REG_ARG6(ctx))
		REGISTER_CASE(6, xsp_entry_sp(ctx, xsp_cookie(ctx)))
	default:
		return ~0ULL;
	}
	return value;
}

/* The register alone. Neither function is inlined, as each copy would need stack of the program
 * (slots.h). Neither calls the other, as a kernel allows eight frames. */
static __noinline __u64 xsp_operand_base(struct pt_regs *ctx, const struct xsp_operand *o)
{
	return operand_register(ctx, o);
}

/* 0 if the word cannot be read. */
static __noinline __u64 xsp_operand(struct pt_regs *ctx, const struct xsp_operand *o)
{
	__u64 value = operand_register(ctx, o);

	if (o->deref && bpf_probe_read_user(&value, sizeof(value), (void *)(value + o->offset)))
		return 0;
	return value;
}

#endif
