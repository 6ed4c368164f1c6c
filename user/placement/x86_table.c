/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86_table.c - jump tables: the targets of `jmp *%reg` and `jmp *table(,%reg,8)` as gcc and clang
 * write them.
 *
 * There are two forms: 4-byte offsets from the table's own address (PIC), and 8-byte addresses
 * (executables at a fixed position). Every entry up to the bound becomes an edge; without a bound,
 * every entry up to the first that is no instruction of the function. Extra edges are safe: they
 * only make the cut more careful. A missing one is not: so an invalid entry below a known bound
 * makes the jump unresolved.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "placement/placement_private.h"

#define TABLE_MAX 4096 /* entries */
#define LOOK_BACK 40 /* instructions */

struct full {
	ZydisDecodedInstruction d;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

static int decode_full(struct xsp_graph *g, uint32_t at, struct full *out)
{
	const struct xsp_insn *i = &g->insns[at];
	const struct xsp_part *p = &g->parts[i->part];
	ZydisDecoder decoder;

	if (ZYAN_FAILED(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return -EINVAL;
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, p->bytes + (i->addr - p->addr),
					       p->size - (i->addr - p->addr), &out->d, out->ops)))
		return -EILSEQ;
	return 0;
}

/* call 1f; 0: pause; lfence; jmp 0b; 1: mov %reg,(%rsp); ret: the register, 0 to 15, or -1. */
static int thunk_register(struct xsp_module *m, uint64_t addr)
{
	uint8_t code[10], set[5];
	int32_t far;

	if (xsp_module_read(m, addr, code, sizeof(code)) != sizeof(code) || code[0] != 0xe8 ||
	    memcmp(code + 5, "\xf3\x90\x0f\xae\xe8", 5) != 0)
		return -1;
	memcpy(&far, code + 1, 4);
	if (xsp_module_read(m, addr + 5 + (uint64_t)(int64_t)far, set, 5) != 5 ||
	    (set[0] & 0xfb) != 0x48 || set[1] != 0x89 || (set[2] & 0xc7) != 4 || set[3] != 0x24 ||
	    set[4] != 0xc3)
		return -1;
	return (set[2] >> 3 & 7) | (set[0] & 4) << 1;
}

bool xsp_x86_is_thunk(struct xsp_module *m, uint64_t addr)
{
	return thunk_register(m, addr) >= 0;
}

static ZydisRegister wide(ZydisRegister r)
{
	return r == ZYDIS_REGISTER_NONE
		       ? r
		       : ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
}

/* What a call preserves (System V ABI): rbx, rbp, rsp, r12 to r15. */
static bool survives_calls(ZydisRegister reg)
{
	return reg == ZYDIS_REGISTER_RBX || reg == ZYDIS_REGISTER_RBP ||
	       reg == ZYDIS_REGISTER_RSP || reg >= ZYDIS_REGISTER_R12;
}

static bool writes(const struct full *f, ZydisRegister reg)
{
	if (f->d.meta.category == ZYDIS_CATEGORY_CALL)
		return !survives_calls(reg);
	for (unsigned k = 0; k < f->d.operand_count; k++) {
		const ZydisDecodedOperand *o = &f->ops[k];

		if (o->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) && wide(o->reg.value) == reg)
			return true;
	}
	return false;
}

/* The register that an indirect jump uses, itself or by a thunk; NONE: memory. */
static ZydisRegister jumps_through(struct xsp_graph *g, uint32_t at, const struct full *f)
{
	if (f->ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
		return wide(f->ops[0].reg.value);
	if (f->ops[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return ZYDIS_REGISTER_NONE;
	return (ZydisRegister)(ZYDIS_REGISTER_RAX + thunk_register(g->m, g->insns[at].target));
}

/* The instruction that runs before `at` if nothing jumps between them: its index, or UINT32_MAX.
 * The instructions of a part are in order of address. */
static uint32_t previous(struct xsp_graph *g, uint32_t at)
{
	const struct xsp_insn *i = &g->insns[at], *p;

	if (!at)
		return UINT32_MAX;
	p = &g->insns[at - 1];
	if (p->part != i->part || p->addr + p->length != i->addr || p->kind == XSP_INSN_JUMP ||
	    p->kind == XSP_INSN_RETURN || p->kind == XSP_INSN_INDIRECT ||
	    p->kind == XSP_INSN_TRAP || p->kind == XSP_INSN_BAD)
		return UINT32_MAX;
	return at - 1;
}

/* The last instruction before `at` that writes reg: decoded into *f. */
static uint32_t last_write(struct xsp_graph *g, uint32_t at, ZydisRegister reg, struct full *f)
{
	for (unsigned n = 0; n < LOOK_BACK; n++) {
		at = previous(g, at);
		if (at == UINT32_MAX || decode_full(g, at, f) != 0)
			return UINT32_MAX;
		if (writes(f, reg))
			return at;
	}
	return UINT32_MAX;
}

/* The address that `reg` holds at `at`, from a rip-relative lea (or mov of an immediate). A hoisted
 * load counts if all such loads of the register in the function have the same address, and the
 * search straight back meets no other write. */
static int constant_address(struct xsp_graph *g, uint32_t at, ZydisRegister reg, uint64_t *value)
{
	uint64_t found = 0;
	bool any = false;
	struct full f;
	uint32_t def = last_write(g, at, reg, &f);

	if (def != UINT32_MAX) {
		if (f.d.mnemonic != ZYDIS_MNEMONIC_LEA || f.ops[1].mem.base != ZYDIS_REGISTER_RIP)
			return -ENOENT;
		*value = g->insns[def].addr + f.d.length + (uint64_t)f.ops[1].mem.disp.value;
		return 0;
	}
	for (uint32_t i = 0; i < g->count; i++) {
		const struct xsp_part *p = &g->parts[g->insns[i].part];
		const uint8_t *b = p->bytes + (g->insns[i].addr - p->addr);

		/* rex.w lea r, disp32(%rip): 48/4c 8d, mod 0 rm 5 */
		if (g->insns[i].length != 7 || (b[0] & 0xfb) != 0x48 || b[1] != 0x8d ||
		    (b[2] & 0xc7) != 5 || decode_full(g, i, &f) != 0 || !writes(&f, reg))
			continue;
		uint64_t address = g->insns[i].addr + 7 + (uint64_t)f.ops[1].mem.disp.value;

		if (any && address != found)
			return -ENOENT;
		found = address;
		any = true;
	}
	*value = found;
	return any ? 0 : -ENOENT;
}

/* The largest index + 1, by `cmp $imm,reg; ja` (or `and $imm`) before `at`; 0: unknown. */
static uint64_t index_bound(struct xsp_graph *g, uint32_t at, ZydisRegister reg)
{
	bool above = false;
	struct full f;

	for (unsigned n = 0; n < LOOK_BACK; n++) {
		at = previous(g, at);
		if (at == UINT32_MAX || decode_full(g, at, &f) != 0)
			return 0;
		if (f.d.mnemonic == ZYDIS_MNEMONIC_JNBE) {
			above = true;
			continue;
		}
		if (above && f.d.mnemonic == ZYDIS_MNEMONIC_CMP)
			return f.ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
					       wide(f.ops[0].reg.value) == reg &&
					       f.ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE
				       ? f.ops[1].imm.value.u + 1
				       : 0;
		if (!writes(&f, reg))
			continue;
		if (f.d.mnemonic == ZYDIS_MNEMONIC_AND &&
		    f.ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && f.ops[1].imm.value.s >= 0)
			return f.ops[1].imm.value.u + 1;
		if ((f.d.mnemonic == ZYDIS_MNEMONIC_MOV || f.d.mnemonic == ZYDIS_MNEMONIC_MOVZX) &&
		    f.ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER)
			reg = wide(f.ops[1].reg.value);
		else
			return 0;
	}
	return 0;
}

struct table {
	uint64_t addr; /* of the first entry */
	uint64_t base; /* added to each entry */
	uint64_t bound; /* number of entries; 0: unknown */
	unsigned width; /* bytes an entry: 4 or 8 */
};

static int add_targets(struct xsp_graph *g, uint32_t at, const struct table *t)
{
	uint64_t limit = t->bound && t->bound < TABLE_MAX ? t->bound : TABLE_MAX;
	uint8_t raw[64 * 8];
	uint64_t done = 0;

	while (done < limit) {
		uint64_t want = limit - done < 64 ? limit - done : 64;
		long got = xsp_module_read(g->m, t->addr + done * t->width, raw, want * t->width);
		uint64_t have = got > 0 ? (uint64_t)got / t->width : 0;

		for (uint64_t k = 0; k < have; k++) {
			uint64_t target;
			int32_t offset;
			uint32_t to;

			if (t->width == 4) {
				memcpy(&offset, raw + k * 4, 4);
				target = t->base + (uint64_t)(int64_t)offset;
			} else {
				memcpy(&target, raw + k * 8, 8);
			}
			to = xsp_graph_find(g, target);
			if (to == UINT32_MAX)
				return t->bound || done + k == 0 ? -ENOENT : 0;
			if (xsp_graph_add_edge(g, at, to, XSP_EDGE_OTHER) != 0)
				return -ENOMEM;
		}
		done += have;
		if (have < want)
			return t->bound || done == 0 ? -ENOENT : 0;
	}
	return t->bound ? 0 : -ENOENT;
}

/* movslq disp(base,index,4),%r ; add base,%r ; jmp *%r */
static int pic_table(struct xsp_graph *g, uint32_t at, ZydisRegister reg, struct table *t)
{
	struct full add, load;
	uint32_t where = last_write(g, at, reg, &add), load_at;
	ZydisRegister base;

	if (where == UINT32_MAX || add.d.mnemonic != ZYDIS_MNEMONIC_ADD ||
	    add.ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return -ENOENT;
	base = wide(add.ops[1].reg.value);
	/* either operand may be the loaded offset */
	for (int turn = 0; turn < 2; turn++) {
		ZydisRegister offset = turn ? base : reg, table = turn ? reg : base;

		load_at = last_write(g, where, offset, &load);
		if (load_at == UINT32_MAX || load.d.mnemonic != ZYDIS_MNEMONIC_MOVSXD ||
		    load.ops[1].type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    wide(load.ops[1].mem.base) != table || load.ops[1].mem.scale != 4)
			continue;
		if (constant_address(g, load_at, table, &t->base) != 0)
			return -ENOENT;
		t->addr = t->base + (uint64_t)load.ops[1].mem.disp.value;
		t->bound = index_bound(g, load_at, wide(load.ops[1].mem.index));
		t->width = 4;
		return 0;
	}
	return -ENOENT;
}

/* jmp *table(,%index,8), or a mov of the same into the register of the jump */
static int absolute_table(struct xsp_graph *g, uint32_t at, const struct full *f, unsigned op,
			  struct table *t)
{
	const ZydisDecodedOperand *o = &f->ops[op];

	if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.base != ZYDIS_REGISTER_NONE ||
	    o->mem.index == ZYDIS_REGISTER_NONE || o->mem.scale != 8)
		return -ENOENT;
	t->addr = (uint64_t)o->mem.disp.value;
	t->base = 0;
	t->bound = index_bound(g, at, wide(o->mem.index));
	t->width = 8;
	return 0;
}

int xsp_x86_jump_table(struct xsp_graph *g, uint32_t at)
{
	uint32_t edges = g->edge_count, where;
	struct table t = {0};
	struct full f;
	int error;

	if (decode_full(g, at, &f) != 0 || f.d.mnemonic != ZYDIS_MNEMONIC_JMP)
		return -ENOENT;
	if (f.ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY) {
		error = absolute_table(g, at, &f, 0, &t);
	} else {
		ZydisRegister reg = jumps_through(g, at, &f);

		error = pic_table(g, at, reg, &t);
		if (error) {
			where = last_write(g, at, reg, &f);
			if (where != UINT32_MAX && f.d.mnemonic == ZYDIS_MNEMONIC_MOV)
				error = absolute_table(g, where, &f, 1, &t);
		}
	}
	if (!error)
		error = add_targets(g, at, &t);
	if (!error && g->edge_count == edges)
		error = -ENOENT;
	return error;
}

bool xsp_x86_pointer_jump(struct xsp_graph *g, uint32_t at)
{
	ZydisRegister reg;
	struct full f;

	if (g->insns[at].flags & XSP_INSN_MEMORY)
		return true;
	if (decode_full(g, at, &f) != 0 || f.ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
		return false;
	reg = jumps_through(g, at, &f);
	for (unsigned n = 0; n < 4; n++) {
		at = last_write(g, at, reg, &f);
		if (at == UINT32_MAX)
			return false;
		if (f.d.mnemonic == ZYDIS_MNEMONIC_ROR ||
		    (f.d.mnemonic == ZYDIS_MNEMONIC_XOR &&
		     f.ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		     f.ops[1].mem.segment == ZYDIS_REGISTER_FS))
			continue; /* libc's guarded pointers */
		return f.d.mnemonic == ZYDIS_MNEMONIC_MOV &&
		       (f.ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER ||
			(f.ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
			 f.ops[1].mem.index == ZYDIS_REGISTER_NONE));
	}
	return false;
}
