/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/torch/tls_variable.h"

#include <errno.h>
#include <string.h>

#include <Zydis/Zydis.h>

#define BYTES_MAX 96
#define STEPS_MAX 12

/* What the code has done so far. */
struct state {
	uint64_t argument; /* of __tls_get_addr: an address in the file; 0: not set yet */
	uint64_t loaded; /* the slot whose content a register holds; 0: none */
	ZydisRegister in; /* that register */
	bool called; /* rax holds the address of the variable, or of its module's block */
};

enum verdict { GO_ON, FOUND, NOT_UNDERSTOOD };

static bool is_memory(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.index == ZYDIS_REGISTER_NONE;
}

static uint64_t rip_relative(const ZydisDecodedOperand *o, uint64_t next)
{
	return is_memory(o) && o->mem.base == ZYDIS_REGISTER_RIP &&
			       o->mem.segment != ZYDIS_REGISTER_FS
		       ? next + (uint64_t)o->mem.disp.value
		       : 0;
}

/* mov reg, fs:...: initial exec has a register, local exec a constant. */
static enum verdict from_thread_pointer(const struct state *s, const ZydisDecodedOperand *o,
					struct xsp_tls_place *place)
{
	if (o->mem.base == ZYDIS_REGISTER_NONE)
		*place = (struct xsp_tls_place){.kind = XSP_TLS_CONSTANT,
						.displacement = o->mem.disp.value};
	else if (s->loaded != 0 && o->mem.base == s->in)
		*place = (struct xsp_tls_place){.kind = XSP_TLS_INITIAL,
						.slot = s->loaded,
						.displacement = o->mem.disp.value};
	else
		return NOT_UNDERSTOOD;
	return FOUND;
}

static enum verdict follow_load(struct state *s, const ZydisDecodedInstruction *d,
				const ZydisDecodedOperand *ops, uint64_t next,
				struct xsp_tls_place *place)
{
	if (d->mnemonic != ZYDIS_MNEMONIC_MOV || ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    !is_memory(&ops[1]) || ops[0].size != 64)
		return GO_ON;
	if (ops[1].mem.segment == ZYDIS_REGISTER_FS) {
		/* variables are below the thread pointer; above it is the stack protector's word */
		if (ops[1].mem.base == ZYDIS_REGISTER_NONE && ops[1].mem.disp.value >= 0)
			return GO_ON;
		return from_thread_pointer(s, &ops[1], place);
	}
	if (s->called && ops[1].mem.base == ZYDIS_REGISTER_RAX) {
		*place = (struct xsp_tls_place){.kind = XSP_TLS_DYNAMIC,
						.slot = s->argument,
						.displacement = ops[1].mem.disp.value};
		return FOUND;
	}
	s->loaded = rip_relative(&ops[1], next);
	s->in = ops[0].reg.value;
	return GO_ON;
}

static bool writes_rax(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *ops)
{
	for (unsigned i = 0; i < d->operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						     ops[i].reg.value) == ZYDIS_REGISTER_RAX)
			return true;
	return false;
}

static enum verdict step(struct state *s, const ZydisDecodedInstruction *d,
			 const ZydisDecodedOperand *ops, uint64_t next, struct xsp_tls_place *place)
{
	switch (d->meta.category) {
	case ZYDIS_CATEGORY_CALL:
		/* only __tls_get_addr takes a module and an offset */
		if (s->argument == 0 || s->called)
			return NOT_UNDERSTOOD;
		s->called = true;
		return GO_ON;
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_INTERRUPT:
		return NOT_UNDERSTOOD;
	default:
		break;
	}
	if (d->mnemonic == ZYDIS_MNEMONIC_LEA && ops[0].reg.value == ZYDIS_REGISTER_RDI)
		s->argument = rip_relative(&ops[1], next);
	if (follow_load(s, d, ops, next, place) == FOUND)
		return FOUND;
	return s->called && writes_rax(d, ops) ? NOT_UNDERSTOOD : GO_ON;
}

int xsp_tls_variable_find(struct xsp_module *m, const char *function, struct xsp_tls_place *place)
{
	uint8_t code[BYTES_MAX];
	struct xsp_symbol symbol;
	struct state s = {0};
	ZydisDecoder decoder;

	if (xsp_module_arch(m) != XSP_ARCH_X86_64 || xsp_module_find(m, function, &symbol) < 0 ||
	    symbol.ifunc || !xsp_module_is_code(m, symbol.addr))
		return -ENOENT;
	long size = xsp_module_read(m, symbol.addr, code, sizeof(code));
	if (size <= 0 || ZYAN_FAILED(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
						      ZYDIS_STACK_WIDTH_64)))
		return -ENOENT;
	if (symbol.size > 0 && (uint64_t)size > symbol.size)
		size = (long)symbol.size;
	long at = 0;
	for (int i = 0; i < STEPS_MAX; i++) {
		ZydisDecodedInstruction d;
		ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
		if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code + at, (size_t)(size - at), &d,
						       ops)))
			return -ENOENT;
		at += d.length;
		enum verdict v = step(&s, &d, ops, symbol.addr + (uint64_t)at, place);
		if (v != GO_ON)
			return v == FOUND ? 0 : -ENOENT;
	}
	return -ENOENT;
}
