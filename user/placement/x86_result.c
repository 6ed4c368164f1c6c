/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86_result.c - where a function's result is before it reaches rax. Compilers end a function with
 * `mov %r14, %rax` and the pops, after the check of the stack protector. The jump of that check is
 * a cheap site, and there r14 is as good as rax.
 */
#include <Zydis/Zydis.h>

#include "placement/placement_private.h"

/* By enum xsp_result_register. */
static const ZydisRegister registers[] = {
	ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_RBX, ZYDIS_REGISTER_RBP, ZYDIS_REGISTER_R12,
	ZYDIS_REGISTER_R13, ZYDIS_REGISTER_R14, ZYDIS_REGISTER_R15,
};
#define REGISTERS (sizeof(registers) / sizeof(registers[0]))

static uint8_t number_of(ZydisRegister r)
{
	for (size_t n = 0; n < REGISTERS; n++)
		if (registers[n] == r)
			return (uint8_t)n;
	return XSP_RESULT_NONE;
}

/* By what it writes: nothing that matters, the register, or memory. */
static uint8_t before(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *ops,
		      uint8_t after)
{
	bool written = false;

	for (unsigned k = 0; k < d->operand_count; k++) {
		if (!(ops[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (ops[k].type == ZYDIS_OPERAND_TYPE_MEMORY)
			return XSP_RESULT_NONE;
		if (ops[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						     ops[k].reg.value) == registers[after])
			written = true;
	}
	if (!written)
		return after;
	/* all 64 bits, or it is not the result */
	if (d->mnemonic != ZYDIS_MNEMONIC_MOV || ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    ops[0].reg.value != registers[after] || ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return XSP_RESULT_NONE;
	return number_of(ops[1].reg.value);
}

uint8_t xsp_x86_result(struct xsp_graph *g, uint32_t at, uint8_t after)
{
	const struct xsp_insn *i = &g->insns[at];
	const struct xsp_part *p = &g->parts[i->part];
	ZydisDecodedInstruction d;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecoder decoder;

	if (i->kind == XSP_INSN_NOP || i->kind == XSP_INSN_JUMP || i->kind == XSP_INSN_BRANCH)
		return after;
	if (after >= REGISTERS || i->kind != XSP_INSN_PLAIN)
		return XSP_RESULT_NONE;
	if (ZYAN_FAILED(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
	    ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, p->bytes + (i->addr - p->addr),
					       p->size - (i->addr - p->addr), &d, ops)))
		return XSP_RESULT_NONE;
	return before(&d, ops, after);
}
