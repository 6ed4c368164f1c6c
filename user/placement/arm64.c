/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arm64.c - the instruction graph and the entry site of an AArch64 function.
 *
 * Instructions have four bytes, so there are no boundaries to find. The kernel's rules are those of
 * arch/arm64/kernel/probes/decode-insn.c. It simulates branches, ret, adr(p), literal loads and
 * (since 6.13) nop. It refuses authenticated branches (retaa, braa), exclusive loads and stores,
 * and most system instructions. It single-steps the rest. A ret is simulated, so it is its own exit
 * site.
 */
#include <errno.h>
#include <string.h>

#include "placement/placement_private.h"

#define SP 31

/* The first matching row decides; everything else is plain and single-stepped. */
static const struct pattern {
	uint32_t mask, value;
	uint8_t kind; /* enum xsp_insn_kind */
	uint8_t cls;
	bool probe;
} patterns[] = {
	/* branches, immediate */
	{0xfc000000, 0x14000000, XSP_INSN_JUMP, XSP_SITE_EMULATED, true}, /* b */
	{0xfc000000, 0x94000000, XSP_INSN_CALL, XSP_SITE_EMULATED, true}, /* bl */
	{0xff000000, 0x54000000, XSP_INSN_FORK, XSP_SITE_EMULATED, true}, /* b.cond, bc */
	{0x7e000000, 0x34000000, XSP_INSN_FORK, XSP_SITE_EMULATED, true}, /* cbz, cbnz */
	{0x7e000000, 0x36000000, XSP_INSN_FORK, XSP_SITE_EMULATED, true}, /* tbz, tbnz */
	/* branches, register; those with pointer authentication are refused */
	{0xfffffc1f, 0xd65f0000, XSP_INSN_RETURN, XSP_SITE_EMULATED, true}, /* ret */
	{0xfffffbff, 0xd65f0bff, XSP_INSN_RETURN, XSP_SITE_SINGLESTEP, false}, /* retaa, retab */
	{0xfffffc1f, 0xd61f0000, XSP_INSN_INDIRECT, XSP_SITE_EMULATED, true}, /* br */
	{0xfefff800, 0xd61f0800, XSP_INSN_INDIRECT, XSP_SITE_SINGLESTEP, false}, /* braa */
	{0xfffffc1f, 0xd63f0000, XSP_INSN_CALL, XSP_SITE_EMULATED, true}, /* blr */
	{0xfefff800, 0xd63f0800, XSP_INSN_CALL, XSP_SITE_SINGLESTEP, false}, /* blraa */
	{0xfe000000, 0xd6000000, XSP_INSN_BAD, XSP_SITE_SINGLESTEP, false}, /* eret, drps */
	/* exceptions */
	{0xffe0001f, 0xd4000001, XSP_INSN_SYSCALL, XSP_SITE_SINGLESTEP, false}, /* svc */
	{0xff000000, 0xd4000000, XSP_INSN_TRAP, XSP_SITE_SINGLESTEP, false}, /* brk, hlt */
	{0xffff0000, 0x00000000, XSP_INSN_TRAP, XSP_SITE_SINGLESTEP, false}, /* udf */
	/* hints: nop, bti, paciasp and similar; the others are not in every kernel's list */
	{0xffffffff, 0xd503201f, XSP_INSN_NOP, XSP_SITE_EMULATED, true},
	{0xffffff3f, 0xd503241f, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, true}, /* bti */
	{0xfffffd1f, 0xd503211f, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, true}, /* pac, aut */
	{0xfffff01f, 0xd503201f, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, false},
	/* system: only reading a register can be stepped */
	{0xfff00000, 0xd5300000, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, true}, /* mrs */
	{0xffc00000, 0xd5000000, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, false},
	/* pc-relative */
	{0x1f000000, 0x10000000, XSP_INSN_PLAIN, XSP_SITE_EMULATED, true}, /* adr, adrp */
	{0xff000000, 0x18000000, XSP_INSN_PLAIN, XSP_SITE_EMULATED, true}, /* ldr w, literal */
	{0xff000000, 0x58000000, XSP_INSN_PLAIN, XSP_SITE_EMULATED, true}, /* ldr x, literal */
	{0xff000000, 0x98000000, XSP_INSN_PLAIN, XSP_SITE_EMULATED, true}, /* ldrsw, literal */
	{0x3b000000, 0x18000000, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, false}, /* other literals */
	/* exclusive loads and stores: a trap in between would clear the monitor */
	{0x3f000000, 0x08000000, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, false},
	/* memory copy and set: long, and refused by newer kernels */
	{0x3b200c00, 0x19000400, XSP_INSN_WORK, XSP_SITE_SINGLESTEP, false},
};

static int64_t sign(uint64_t value, unsigned bits)
{
	uint64_t top = UINT64_C(1) << (bits - 1);

	return (int64_t)((value & (2 * top - 1)) ^ top) - (int64_t)top;
}

static uint64_t branch_target(uint32_t word, uint64_t addr)
{
	int64_t words = (word & 0x7c000000) == 0x14000000   ? sign(word, 26)
			: (word & 0x7e000000) == 0x36000000 ? sign(word >> 5, 14)
							    : sign(word >> 5, 19);

	return addr + (uint64_t)words * 4;
}

/* What compilers do with sp: add, sub, and loads and stores of one or two registers with
 * write-back. */
static int32_t sp_change(uint32_t word)
{
	unsigned rd = word & 31, rn = (word >> 5) & 31;

	if ((word & 0xbf800000) == 0x91000000 || (word & 0xff800000) == 0xd1000000) {
		int32_t imm = (int32_t)((word >> 10) & 0xfff) << (word & (1U << 22) ? 12 : 0);

		if (rd != SP)
			return 0;
		if (rn != SP)
			return XSP_SP_UNKNOWN;
		return word & (1U << 30) ? -imm : imm;
	}
	/* ldp, stp with write-back: scale by the size of the registers */
	if ((word & 0x3a000000) == 0x28000000 && (word & (1U << 23)) && rn == SP) {
		unsigned opc = word >> 30, vector = (word >> 26) & 1;
		unsigned scale = vector ? 2 + opc : 2 + (opc >> 1);

		return (int32_t)sign(word >> 15, 7) * (1 << scale);
	}
	/* ldr, str with write-back */
	if ((word & 0x3b200400) == 0x38000400 && rn == SP)
		return (int32_t)sign(word >> 12, 9);
	/* and/orr/extended add that writes sp */
	if (rd == SP && ((word & 0x7f800000) == 0x12000000 || (word & 0x5fe00000) == 0x0b200000))
		return XSP_SP_UNKNOWN;
	return 0;
}

static void decode(uint32_t word, uint64_t addr, struct xsp_insn *out)
{
	*out = (struct xsp_insn){.addr = addr,
				 .length = 4,
				 .kind = XSP_INSN_PLAIN,
				 .cls = XSP_SITE_SINGLESTEP,
				 .flags = XSP_INSN_PROBE,
				 .sp_change = sp_change(word)};
	for (size_t k = 0; k < sizeof(patterns) / sizeof(*patterns); k++) {
		if ((word & patterns[k].mask) != patterns[k].value)
			continue;
		out->kind = patterns[k].kind;
		out->cls = patterns[k].cls;
		out->flags = patterns[k].probe ? XSP_INSN_PROBE : 0;
		break;
	}
	if (out->kind == XSP_INSN_JUMP || out->kind == XSP_INSN_FORK ||
	    (out->kind == XSP_INSN_CALL && (word & 0xfc000000) == 0x94000000))
		out->target = branch_target(word, addr);
}

static uint32_t word_at(const struct xsp_graph *g, uint32_t at)
{
	const struct xsp_part *p = &g->parts[g->insns[at].part];
	uint32_t word;

	memcpy(&word, p->bytes + (g->insns[at].addr - p->addr), 4);
	return word;
}

static int sweep(struct xsp_graph *g, unsigned part)
{
	const struct xsp_part *p = &g->parts[part];

	for (uint64_t offset = 0; offset + 4 <= p->size; offset += 4) {
		struct xsp_insn i;
		uint32_t word;

		memcpy(&word, p->bytes + offset, 4);
		decode(word, p->addr + offset, &i);
		if (part)
			i.flags |= XSP_INSN_COLD;
		if (xsp_graph_add_insn(g, &i) == UINT32_MAX)
			return -ENOMEM;
	}
	return 0;
}

/* PLT: [bti c] adrp x16; ldr x17, [x16, …] */
static bool is_plt_stub(struct xsp_module *m, uint64_t addr)
{
	uint32_t words[3];
	unsigned at;

	if (xsp_module_read(m, addr, words, sizeof(words)) != (long)sizeof(words))
		return false;
	at = words[0] == 0xd503245f;
	return (words[at] & 0x9f00001f) == 0x90000010 && (words[at + 1] & 0xffc003ff) == 0xf9400211;
}

/* Does `range` contain a jump back into the function? */
static bool comes_back(struct xsp_graph *g, const struct xsp_code_range *range)
{
	for (uint64_t at = 0; at + 4 <= range->size; at += 4) {
		struct xsp_insn i;
		uint32_t word;

		if (xsp_module_read(g->m, range->addr + at, &word, 4) != 4)
			return false;
		decode(word, range->addr + at, &i);
		if ((i.kind == XSP_INSN_JUMP || i.kind == XSP_INSN_FORK) &&
		    xsp_graph_is_body(g, i.target))
			return true;
	}
	return false;
}

static const struct xsp_leave_ops leave_ops = {.stub = is_plt_stub, .comes_back = comes_back};

static int resolve_jump(struct xsp_graph *g, uint32_t at)
{
	uint64_t site = g->insns[at].addr, target = g->insns[at].target;
	bool is_jump = g->insns[at].kind == XSP_INSN_JUMP;
	enum xsp_leave how = XSP_LEAVE_UNKNOWN;
	int error;

	if (!is_jump && g->insns[at].kind != XSP_INSN_FORK)
		return 0;
	g->insns[at].flags &= (uint16_t) ~(XSP_INSN_LEAVES | XSP_INSN_LOST);
	if (xsp_graph_part(g, target) &&
	    !(target == g->entry && xsp_graph_at_entry_sp(g, site) == 1 && is_jump))
		return 0;
	if (target == g->entry && xsp_graph_part(g, target)) {
		how = XSP_LEAVE_TAIL;
	} else {
		error = xsp_graph_leave(g, site, target, &leave_ops, &how);
		if (!error && how == XSP_LEAVE_PART)
			error = sweep(g, g->part_count - 1);
		if (error || how == XSP_LEAVE_PART)
			return error;
	}
	/* only an unconditional branch can be a tail call: the cookie has no room for a
	 * condition */
	g->insns[at].flags |= how == XSP_LEAVE_TAIL && is_jump ? XSP_INSN_LEAVES : XSP_INSN_LOST;
	return 0;
}

/* Was the register of a br loaded from memory or copied? Then it is no table, which adds. */
static bool is_pointer_jump(struct xsp_graph *g, uint32_t at)
{
	unsigned reg = (word_at(g, at) >> 5) & 31;

	for (unsigned n = 0; n < 16 && at > 0; n++) {
		const struct xsp_insn *i = &g->insns[--at];
		uint32_t word;

		if (i->part != g->insns[at + 1].part || i->kind != XSP_INSN_PLAIN)
			return false;
		word = word_at(g, at);
		if ((word & 31) != reg)
			continue;
		return (word & 0xffc00000) == 0xf9400000 || /* ldr x, [x, #imm] */
		       (word & 0xffe0ffe0) == 0xaa0003e0; /* mov x, x */
	}
	return false;
}

static int connect(struct xsp_graph *g, uint32_t at)
{
	struct xsp_insn *i = &g->insns[at];
	uint32_t to = xsp_graph_find(g, i->addr + 4);
	int at_entry, error = 0;

	if (i->kind == XSP_INSN_INDIRECT) {
		at_entry = xsp_graph_at_entry_sp(g, i->addr);
		if (at_entry == 1 && is_pointer_jump(g, at)) {
			i->flags |= XSP_INSN_LEAVES;
			return 0;
		}
		i->flags |= XSP_INSN_LOST;
		xsp_graph_hidden(g,
				 "an indirect jump could not be resolved: exits at returns only");
		if (at_entry != 0)
			xsp_graph_incomplete(g, "a jump whose target is not known");
		return 0;
	}
	if (i->kind == XSP_INSN_RETURN || i->kind == XSP_INSN_TRAP || i->kind == XSP_INSN_BAD)
		return 0;
	if (i->kind != XSP_INSN_JUMP) {
		if (to != UINT32_MAX)
			error = xsp_graph_add_edge(g, at, to, XSP_EDGE_NEXT);
		else if (i->kind != XSP_INSN_CALL && i->kind != XSP_INSN_NOP)
			i->flags |= XSP_INSN_LOST;
	}
	if (error || (i->kind != XSP_INSN_JUMP && i->kind != XSP_INSN_FORK) ||
	    (i->flags & (XSP_INSN_LEAVES | XSP_INSN_LOST)))
		return error;
	to = xsp_graph_find(g, i->target);
	if (to == UINT32_MAX) {
		i->flags |= XSP_INSN_LOST;
		return 0;
	}
	return xsp_graph_add_edge(g, at, to, XSP_EDGE_TAKEN);
}

static int build(struct xsp_graph *g)
{
	int error;

	if (g->entry & 3 || g->parts[0].addr & 3)
		return -EILSEQ;
	error = sweep(g, 0);
	if (!error)
		error = xsp_graph_resolve(g, resolve_jump);
	for (uint32_t i = 0; !error && i < g->count; i++)
		error = connect(g, i);
	if (!error)
		error = xsp_graph_find_roots(g);
	for (uint32_t i = 0; !error && i < g->count; i++) {
		const struct xsp_insn *x = &g->insns[i];

		if ((x->flags & XSP_INSN_SEEN) &&
		    ((x->flags & XSP_INSN_LOST) || x->kind == XSP_INSN_BAD) &&
		    x->kind != XSP_INSN_INDIRECT)
			xsp_graph_unknown(g, "a jump whose target is not known");
	}
	return error;
}

/* The first instruction, after a bti: sp has not moved, and no argument has changed. A probe on the
 * bti would cost a step, and landing pads are best left alone. */
static int entry(struct xsp_graph *g, unsigned args_read, const struct xsp_site_costs *costs,
		 struct xsp_site *site, uint32_t *at)
{
	uint32_t index = xsp_graph_find(g, g->entry), next;

	(void)args_read;
	(void)costs;
	if (index == UINT32_MAX)
		return -EILSEQ;
	if (g->insns[index].flags & XSP_INSN_JUMPED) /* a loop, or Go code that starts over */
		return -EOPNOTSUPP;
	next = xsp_graph_find(g, g->entry + 4);
	if ((word_at(g, index) & 0xffffff3f) == 0xd503241f && next != UINT32_MAX &&
	    !(g->insns[next].flags & (XSP_INSN_JUMPED | XSP_INSN_ROOT)) &&
	    (g->insns[next].flags & XSP_INSN_PROBE) && g->insns[next].kind != XSP_INSN_CALL)
		index = next;
	if (!(g->insns[index].flags & XSP_INSN_PROBE) || g->insns[index].kind == XSP_INSN_CALL)
		return -EOPNOTSUPP;
	*site = (struct xsp_site){.addr = g->insns[index].addr,
				  .cls = (enum xsp_site_class)g->insns[index].cls,
				  .role = XSP_ROLE_ENTRY,
				  .exact = true};
	*at = index;
	return 0;
}

const struct xsp_arch_placer xsp_placer_arm64 = {
	.graph = build,
	.entry = entry,
};
