/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/xsigma/x86_values.h"

#include <string.h>

static const struct xsp_value unknown = {.kind = XSP_VALUE_UNKNOWN};

bool xsp_value_same(struct xsp_value a, struct xsp_value b)
{
	return a.kind == b.kind &&
	       (a.kind == XSP_VALUE_UNKNOWN ||
		(a.n == b.n && (a.kind != XSP_VALUE_REGISTER || a.base == b.base)));
}

static struct xsp_value plus(struct xsp_value v, int64_t n)
{
	if (v.kind != XSP_VALUE_UNKNOWN)
		v.n = (int64_t)((uint64_t)v.n + (uint64_t)n);
	return v;
}

static struct xsp_value constant(int64_t n)
{
	return (struct xsp_value){.kind = XSP_VALUE_CONSTANT, .n = n};
}

void xsp_values_begin(struct xsp_values *v)
{
	memset(v, 0, sizeof(*v));
	for (uint8_t i = 0; i < 16; i++)
		v->reg[i] = (struct xsp_value){.kind = XSP_VALUE_REGISTER, .base = i};
}

/* ---- memory ---- */

/* Who has the nearest escaped address at or below it? */
bool xsp_is_within_reach(const struct xsp_escaped *escaped, struct xsp_value at)
{
	bool reached = escaped == NULL || escaped->all || at.kind != XSP_VALUE_REGISTER;
	int64_t nearest = INT64_MIN;

	for (size_t i = 0; !reached && i < escaped->count; i++) {
		const struct xsp_value *t = &escaped->items[i].at;
		if (t->base == at.base && t->n <= at.n && t->n > nearest)
			nearest = t->n;
	}
	for (size_t i = 0; !reached && i < escaped->count; i++) {
		const struct xsp_value *t = &escaped->items[i].at;
		if (t->base == at.base && t->n == nearest)
			reached = escaped->items[i].other || !escaped->items[i].guard;
	}
	return reached;
}

/* Others may have written: their memory is unknown now. */
static void forget_memory(struct xsp_values *v)
{
	for (size_t i = 0; i < XSP_VALUE_SLOTS; i++)
		if (xsp_is_within_reach(v->escaped, v->slots[i].at))
			v->slots[i] = (struct xsp_value_slot){0};
}

/* `size` bytes at `at` are written: slots that they touch, or may touch, are unknown. */
static void forget_at(struct xsp_values *v, struct xsp_value at, int64_t size)
{
	for (size_t i = 0; i < XSP_VALUE_SLOTS; i++) {
		const struct xsp_value *s = &v->slots[i].at;
		if (s->kind == XSP_VALUE_UNKNOWN)
			continue;
		bool frame = at.kind == XSP_VALUE_REGISTER &&
			     (at.base == XSP_REG_RSP || at.base == XSP_REG_RBP);
		bool apart = at.kind == XSP_VALUE_REGISTER && at.base == s->base
				     ? at.n + size <= s->n || s->n + 8 <= at.n
				     : !frame && !xsp_is_within_reach(v->escaped, *s);
		if (!apart)
			v->slots[i] = (struct xsp_value_slot){0};
	}
}

static void write_word(struct xsp_values *v, struct xsp_value at, struct xsp_value value)
{
	forget_at(v, at, 8);
	if (at.kind != XSP_VALUE_REGISTER || value.kind == XSP_VALUE_UNKNOWN)
		return;
	for (size_t i = 0; i < XSP_VALUE_SLOTS; i++) {
		if (v->slots[i].at.kind != XSP_VALUE_UNKNOWN)
			continue;
		v->slots[i] = (struct xsp_value_slot){.at = at, .value = value};
		return;
	}
}

static struct xsp_value read_word(const struct xsp_values *v, struct xsp_value at)
{
	for (size_t i = 0; i < XSP_VALUE_SLOTS && at.kind == XSP_VALUE_REGISTER; i++)
		if (v->slots[i].at.kind == XSP_VALUE_REGISTER && xsp_value_same(v->slots[i].at, at))
			return v->slots[i].value;
	return unknown;
}

struct xsp_value xsp_values_at(const struct xsp_values *v, unsigned reg, int64_t offset)
{
	return read_word(v, plus(v->reg[reg & 15], offset));
}

void xsp_values_write(struct xsp_values *v, struct xsp_value at, int64_t offset,
		      struct xsp_value value)
{
	write_word(v, plus(at, offset), value);
}

/* ---- operands ---- */

/* Number of the 64-bit register that encloses `r`, or -1. */
static int general(ZydisRegister r)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);

	if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
		return -1;
	return (int)(whole - ZYDIS_REGISTER_RAX);
}

int xsp_values_register(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER ? general(o->reg.value) : -1;
}

static int vector(ZydisRegister r)
{
	if (r >= ZYDIS_REGISTER_XMM0 && r <= ZYDIS_REGISTER_XMM15)
		return (int)(r - ZYDIS_REGISTER_XMM0);
	if (r >= ZYDIS_REGISTER_YMM0 && r <= ZYDIS_REGISTER_YMM15)
		return (int)(r - ZYDIS_REGISTER_YMM0);
	if (r >= ZYDIS_REGISTER_ZMM0 && r <= ZYDIS_REGISTER_ZMM15)
		return (int)(r - ZYDIS_REGISTER_ZMM0);
	return -1;
}

/* Is it in a segment of the thread or another one? Then it is not on the stack. */
static bool elsewhere(const ZydisDecodedOperand *o)
{
	return o->mem.segment == ZYDIS_REGISTER_FS || o->mem.segment == ZYDIS_REGISTER_GS ||
	       o->mem.base == ZYDIS_REGISTER_RIP;
}

struct xsp_value xsp_values_address(const struct xsp_values *v, const ZydisDecodedOperand *o,
				    uint64_t next)
{
	int base = general(o->mem.base);

	if (o->mem.segment == ZYDIS_REGISTER_FS || o->mem.segment == ZYDIS_REGISTER_GS)
		return unknown;
	if (o->mem.base == ZYDIS_REGISTER_RIP)
		return (struct xsp_value){.kind = XSP_VALUE_ADDRESS,
					  .n = (int64_t)(next + (uint64_t)o->mem.disp.value)};
	if (base < 0 || o->mem.index != ZYDIS_REGISTER_NONE ||
	    ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, o->mem.base) != 64)
		return unknown;
	return plus(v->reg[base], o->mem.disp.has_displacement ? o->mem.disp.value : 0);
}

/* The 8 bytes of an operand (writing a 32-bit register clears its upper half). */
static struct xsp_value read_operand(const struct xsp_values *v, const ZydisDecodedOperand *o,
				     uint64_t next)
{
	struct xsp_value value = unknown;

	if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		value = constant(o->imm.is_signed ? o->imm.value.s : (int64_t)o->imm.value.u);
	else if (o->type == ZYDIS_OPERAND_TYPE_REGISTER && general(o->reg.value) >= 0)
		value = v->reg[general(o->reg.value)];
	else if (o->type == ZYDIS_OPERAND_TYPE_REGISTER && vector(o->reg.value) >= 0)
		value = v->xmm[vector(o->reg.value)][0];
	else if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && !elsewhere(o) && o->size == 64)
		value = read_word(v, xsp_values_address(v, o, next));
	if (o->type == ZYDIS_OPERAND_TYPE_REGISTER && o->size == 32)
		value = value.kind == XSP_VALUE_CONSTANT
				? constant((int64_t)(uint32_t)value.n)
				/* non-PIC code loads addresses into 32-bit registers as
				 * immediates */
				: unknown;
	return value;
}

/* ---- instructions ---- */

/* What an instruction that is not understood writes becomes unknown. */
static void forget_written(struct xsp_values *v, const ZydisDecodedInstruction *d,
			   const ZydisDecodedOperand *ops, uint64_t next)
{
	if (d->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPZ | ZYDIS_ATTRIB_HAS_REPNZ))
		forget_memory(v); /* how much it writes is unknown */
	for (unsigned i = 0; i < d->operand_count; i++) {
		const ZydisDecodedOperand *o = &ops[i];
		if (!(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			if (!elsewhere(o))
				forget_at(v, xsp_values_address(v, o, next), o->size / 8);
		} else if (o->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			int g = general(o->reg.value), x = vector(o->reg.value);
			if (g >= 0)
				v->reg[g] = unknown;
			if (x >= 0)
				v->xmm[x][0] = v->xmm[x][1] = unknown;
		}
	}
}

static bool is_word_register(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER && general(o->reg.value) >= 0 &&
	       (o->size == 64 || o->size == 32);
}

/* mov and lea into a register, mov into memory. False: another instruction. */
static bool step_move(struct xsp_values *v, const ZydisDecodedInstruction *d,
		      const ZydisDecodedOperand *ops, uint64_t next)
{
	struct xsp_value value = d->mnemonic == ZYDIS_MNEMONIC_LEA
					 ? xsp_values_address(v, &ops[1], next)
					 : read_operand(v, &ops[1], next);

	if (is_word_register(&ops[0])) {
		if (ops[0].size == 32 && value.kind == XSP_VALUE_CONSTANT)
			value = constant((int64_t)(uint32_t)value.n);
		else if (ops[0].size == 32)
			value = unknown;
		v->reg[general(ops[0].reg.value)] = value;
		return true;
	}
	if (ops[0].type != ZYDIS_OPERAND_TYPE_MEMORY || ops[0].size != 64 || elsewhere(&ops[0]))
		return false;
	write_word(v, xsp_values_address(v, &ops[0], next), value);
	return true;
}

static bool step_stack(struct xsp_values *v, const ZydisDecodedInstruction *d,
		       const ZydisDecodedOperand *ops, uint64_t next)
{
	struct xsp_value value;

	if (d->operand_width != 64)
		return false;
	if (d->mnemonic == ZYDIS_MNEMONIC_PUSH) {
		value = read_operand(v, &ops[0], next);
		v->reg[XSP_REG_RSP] = plus(v->reg[XSP_REG_RSP], -8);
		write_word(v, v->reg[XSP_REG_RSP], value);
		return true;
	}
	if (d->mnemonic == ZYDIS_MNEMONIC_LEAVE)
		v->reg[XSP_REG_RSP] = v->reg[XSP_REG_RBP];
	else if (!is_word_register(&ops[0]))
		return false;
	value = read_word(v, v->reg[XSP_REG_RSP]);
	v->reg[XSP_REG_RSP] = plus(v->reg[XSP_REG_RSP], 8);
	v->reg[d->mnemonic == ZYDIS_MNEMONIC_LEAVE ? XSP_REG_RBP : general(ops[0].reg.value)] =
		value;
	return true;
}

/* Stands for an aligned stack pointer: far below all addresses relative to the one before it was
 * aligned. */
#define ALIGNED_STACK (-((int64_t)1 << 40))

static bool step_arithmetic(struct xsp_values *v, const ZydisDecodedInstruction *d,
			    const ZydisDecodedOperand *ops, uint64_t next)
{
	(void)next;
	if (!is_word_register(&ops[0]))
		return false;
	int to = general(ops[0].reg.value);
	if (d->mnemonic == ZYDIS_MNEMONIC_XOR) {
		if (ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    ops[1].reg.value != ops[0].reg.value)
			return false;
		v->reg[to] = constant(0);
		return true;
	}
	if (ops[0].size != 64 || ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	if (d->mnemonic == ZYDIS_MNEMONIC_AND) { /* an aligned stack: an address of its own */
		if (to == XSP_REG_RSP)
			v->reg[to] = (struct xsp_value){.kind = XSP_VALUE_REGISTER,
							.base = XSP_REG_RSP,
							.n = ALIGNED_STACK};
		return to == XSP_REG_RSP;
	}
	v->reg[to] = plus(v->reg[to], d->mnemonic == ZYDIS_MNEMONIC_ADD ? ops[1].imm.value.s
									: -ops[1].imm.value.s);
	return true;
}

/* Moves 16 bytes between a vector register and memory or another one. */
static bool step_vector(struct xsp_values *v, const ZydisDecodedInstruction *d,
			const ZydisDecodedOperand *ops, uint64_t next)
{
	struct xsp_value pair[2] = {unknown, unknown};

	(void)d;
	if (ops[0].size != 128 || ops[1].size != 128)
		return false;
	if (ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER && vector(ops[1].reg.value) >= 0) {
		memcpy(pair, v->xmm[vector(ops[1].reg.value)], sizeof(pair));
	} else if (ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY && !elsewhere(&ops[1])) {
		struct xsp_value at = xsp_values_address(v, &ops[1], next);
		pair[0] = read_word(v, at);
		pair[1] = read_word(v, plus(at, 8));
	}
	if (ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER && vector(ops[0].reg.value) >= 0) {
		memcpy(v->xmm[vector(ops[0].reg.value)], pair, sizeof(pair));
		return true;
	}
	if (ops[0].type != ZYDIS_OPERAND_TYPE_MEMORY || elsewhere(&ops[0]))
		return false;
	struct xsp_value at = xsp_values_address(v, &ops[0], next);
	write_word(v, at, pair[0]);
	write_word(v, plus(at, 8), pair[1]);
	return true;
}

/* movq: the low half; it clears the high one of a vector register. */
static bool step_half(struct xsp_values *v, const ZydisDecodedInstruction *d,
		      const ZydisDecodedOperand *ops, uint64_t next)
{
	struct xsp_value value = read_operand(v, &ops[1], next);
	int to = ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? vector(ops[0].reg.value) : -1;

	if (d->mnemonic == ZYDIS_MNEMONIC_PUNPCKLQDQ) {
		if (to < 0)
			return false;
		v->xmm[to][1] = value;
		return true;
	}
	if (to >= 0) {
		v->xmm[to][0] = value;
		v->xmm[to][1] = constant(0);
		return true;
	}
	return ops[0].size == 64 && step_move(v, d, ops, next);
}

static bool step_high_half(struct xsp_values *v, const ZydisDecodedInstruction *d,
			   const ZydisDecodedOperand *ops, uint64_t next)
{
	int to = ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? vector(ops[0].reg.value) : -1;

	(void)d;
	if (to < 0 || ops[1].type != ZYDIS_OPERAND_TYPE_MEMORY)
		return false;
	v->xmm[to][1] = read_operand(v, &ops[1], next);
	return true;
}

static const struct {
	ZydisMnemonic mnemonic;
	bool (*step)(struct xsp_values *v, const ZydisDecodedInstruction *d,
		     const ZydisDecodedOperand *ops, uint64_t next);
} understood[] = {
	{ZYDIS_MNEMONIC_MOV, step_move},	 {ZYDIS_MNEMONIC_LEA, step_move},
	{ZYDIS_MNEMONIC_PUSH, step_stack},	 {ZYDIS_MNEMONIC_POP, step_stack},
	{ZYDIS_MNEMONIC_ADD, step_arithmetic},	 {ZYDIS_MNEMONIC_SUB, step_arithmetic},
	{ZYDIS_MNEMONIC_XOR, step_arithmetic},	 {ZYDIS_MNEMONIC_AND, step_arithmetic},
	{ZYDIS_MNEMONIC_LEAVE, step_stack},	 {ZYDIS_MNEMONIC_MOVUPS, step_vector},
	{ZYDIS_MNEMONIC_MOVAPS, step_vector},	 {ZYDIS_MNEMONIC_MOVDQU, step_vector},
	{ZYDIS_MNEMONIC_MOVDQA, step_vector},	 {ZYDIS_MNEMONIC_MOVUPD, step_vector},
	{ZYDIS_MNEMONIC_MOVAPD, step_vector},	 {ZYDIS_MNEMONIC_MOVQ, step_half},
	{ZYDIS_MNEMONIC_PUNPCKLQDQ, step_half},	 {ZYDIS_MNEMONIC_MOVHPS, step_high_half},
	{ZYDIS_MNEMONIC_MOVHPD, step_high_half}, {ZYDIS_MNEMONIC_VMOVUPS, step_vector},
	{ZYDIS_MNEMONIC_VMOVAPS, step_vector},	 {ZYDIS_MNEMONIC_VMOVDQU, step_vector},
	{ZYDIS_MNEMONIC_VMOVDQA, step_vector},	 {ZYDIS_MNEMONIC_VMOVUPD, step_vector},
	{ZYDIS_MNEMONIC_VMOVAPD, step_vector},	 {ZYDIS_MNEMONIC_VMOVQ, step_half},
};

void xsp_values_step(struct xsp_values *v, const ZydisDecodedInstruction *d,
		     const ZydisDecodedOperand *ops, uint64_t next)
{
	for (size_t i = 0; i < sizeof(understood) / sizeof(understood[0]); i++) {
		if (understood[i].mnemonic != d->mnemonic)
			continue;
		if (understood[i].step(v, d, ops, next))
			return;
		break;
	}
	forget_written(v, d, ops, next);
}

void xsp_values_call(struct xsp_values *v)
{
	for (unsigned i = 0; i < 16; i++) {
		if (!(XSP_REGS_KEPT >> i & 1))
			v->reg[i] = unknown;
		v->xmm[i][0] = v->xmm[i][1] = unknown;
	}
	forget_memory(v);
}

static bool merge_value(struct xsp_value *to, struct xsp_value with)
{
	if (to->kind == XSP_VALUE_UNKNOWN || xsp_value_same(*to, with))
		return false;
	*to = unknown;
	return true;
}

bool xsp_values_merge(struct xsp_values *v, const struct xsp_values *with)
{
	bool changed = false;

	for (unsigned i = 0; i < 16; i++) {
		changed |= merge_value(&v->reg[i], with->reg[i]);
		changed |= merge_value(&v->xmm[i][0], with->xmm[i][0]);
		changed |= merge_value(&v->xmm[i][1], with->xmm[i][1]);
	}
	for (size_t i = 0; i < XSP_VALUE_SLOTS; i++) {
		struct xsp_value_slot *s = &v->slots[i];
		if (s->at.kind == XSP_VALUE_UNKNOWN ||
		    xsp_value_same(s->value, read_word(with, s->at)))
			continue;
		*s = (struct xsp_value_slot){0};
		changed = true;
	}
	return changed;
}
