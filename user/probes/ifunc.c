/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/ifunc.h"

#include <string.h>

#include <Zydis/Zydis.h>

#define BYTES_MAX 4096U /* of a resolver */
#define DEPTH_MAX 2 /* functions that call each other */
#define STEPS_MAX 2000 /* instructions */

struct search {
	struct xsp_module *module;
	ZydisDecoder decoder;
	const struct xsp_symbol *resolver;
	unsigned steps;
	struct xsp_choices *out;
};

/* The function that begins at `addr`. False: none does. */
static bool function_at(struct xsp_module *m, uint64_t addr, struct xsp_symbol *out)
{
	const struct xsp_symbol *s = xsp_module_covering(m, addr);
	struct xsp_code_range range;

	*out = (struct xsp_symbol){.addr = addr, .name = ""};
	if (!xsp_module_is_code(m, addr) || xsp_module_addr_to_offset(m, addr, &out->offset) < 0)
		return false;
	if (s != NULL && s->addr == addr) {
		*out = *s;
		return !s->ifunc;
	}
	if (xsp_module_code_range(m, addr, &range) < 0 || range.addr != addr)
		return false;
	out->size = range.size;
	return true;
}

static void add(struct search *s, uint64_t addr)
{
	struct xsp_choices *c = s->out;
	struct xsp_symbol f;
	size_t at = 0;

	if (addr == s->resolver->addr || !function_at(s->module, addr, &f))
		return;
	while (at < c->count && c->list[at].addr < addr)
		at++;
	if (c->count == XSP_CHOICES || (at < c->count && c->list[at].addr == addr))
		return;
	memmove(&c->list[at + 1], &c->list[at], (c->count - at) * sizeof(c->list[0]));
	c->list[at] = f;
	c->count++;
}

/* An address that an instruction computes, loads or stores: lea, mov from the GOT, mov $address. */
static void look_at_operand(struct search *s, const ZydisDecodedInstruction *d,
			    const ZydisDecodedOperand *o, uint64_t next)
{
	uint64_t addr;

	if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && !o->imm.is_relative) {
		add(s, o->imm.value.u);
		return;
	}
	if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.base != ZYDIS_REGISTER_RIP)
		return;
	addr = next + (uint64_t)o->mem.disp.value;
	if (d->mnemonic == ZYDIS_MNEMONIC_LEA)
		add(s, addr);
	else if (xsp_module_slot(s->module, addr, &addr) == 0)
		add(s, addr);
}

static void look_at_function(struct search *s, uint64_t addr, uint64_t size, unsigned depth);

/* A call, or a jump, which may be a call at the end. */
static void look_at_call(struct search *s, bool call, const ZydisDecodedOperand *o, uint64_t from,
			 uint64_t size, uint64_t next, unsigned depth)
{
	struct xsp_symbol f;

	if (o->type != ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		s->out->elsewhere |= call && (o->type == ZYDIS_OPERAND_TYPE_REGISTER ||
					      o->mem.base != ZYDIS_REGISTER_RIP);
		return;
	}
	const uint64_t target = next + (uint64_t)o->imm.value.s;
	if (target - from >= size && depth < DEPTH_MAX && function_at(s->module, target, &f))
		look_at_function(s, target, f.size, depth + 1);
}

static void look_at_function(struct search *s, uint64_t addr, uint64_t size, unsigned depth)
{
	uint8_t code[BYTES_MAX];
	const long got =
		xsp_module_read(s->module, addr, code, size < BYTES_MAX ? size : BYTES_MAX);
	ZydisDecodedInstruction d;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];

	for (size_t at = 0; (long)at < got && s->steps < STEPS_MAX; at += d.length, s->steps++) {
		if (ZYAN_FAILED(ZydisDecoderDecodeFull(&s->decoder, code + at, (size_t)got - at, &d,
						       ops)))
			return;
		const uint64_t next = addr + at + d.length;
		const ZydisInstructionCategory kind = d.meta.category;
		if (kind == ZYDIS_CATEGORY_CALL || kind == ZYDIS_CATEGORY_UNCOND_BR ||
		    kind == ZYDIS_CATEGORY_COND_BR) {
			look_at_call(s, kind == ZYDIS_CATEGORY_CALL, &ops[0], addr, size, next,
				     depth);
			continue;
		}
		for (unsigned i = 0; i < d.operand_count_visible; i++)
			look_at_operand(s, &d, &ops[i], next);
	}
}

void xsp_ifunc_choices(struct xsp_module *m, const struct xsp_symbol *resolver,
		       struct xsp_choices *out)
{
	struct search s = {.module = m, .resolver = resolver, .out = out};

	out->count = 0;
	out->elsewhere = false;
	if (xsp_module_arch(m) == XSP_ARCH_X86_64 &&
	    ZYAN_SUCCESS(
		    ZydisDecoderInit(&s.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		look_at_function(&s, resolver->addr, resolver->size, 0);
}
