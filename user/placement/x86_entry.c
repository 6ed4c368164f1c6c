/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86_entry.c - the entry site: the cheapest instruction of the entry block that runs once a call.
 * It comes before any argument that the probe reads is overwritten, at a known distance from the
 * entry stack pointer.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "placement/placement_private.h"

#define LOOK_AHEAD 24 /* instructions: the time of the entry must stay that of the call */

/* The walk down the entry block. */
struct walk {
	ZydisDecoder decoder;
	bool decoder_ready;
	unsigned live; /* argument registers that the probe reads */
	int64_t delta; /* entry sp - rsp before the current instruction */
	bool wrote_memory;
	bool late; /* after an instruction that takes long */
};

static const ZydisRegister arguments[] = {
	ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX,
	ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_R8,	ZYDIS_REGISTER_R9,
};

/* A new rsp as a change of delta; false: delta is unknown now. */
static bool track_rsp(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *ops,
		      int64_t *delta)
{
	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		*delta += 8;
		return d->operand_width == 64;
	case ZYDIS_MNEMONIC_POP:
		*delta -= 8;
		return d->operand_width == 64 && (ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
						  ops[0].reg.value != ZYDIS_REGISTER_RSP);
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_ADD:
		if (ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    ops[0].reg.value != ZYDIS_REGISTER_RSP ||
		    ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return false;
		*delta += d->mnemonic == ZYDIS_MNEMONIC_SUB ? ops[1].imm.value.s
							    : -ops[1].imm.value.s;
		return true;
	case ZYDIS_MNEMONIC_LEA:
		if (ops[1].mem.base != ZYDIS_REGISTER_RSP ||
		    ops[1].mem.index != ZYDIS_REGISTER_NONE)
			return false;
		*delta -= ops[1].mem.disp.value;
		return true;
	default:
		return false;
	}
}

/* rep movs and the like, cpuid: they take long, and are no sites. */
static bool is_slow(const struct xsp_insn *i)
{
	return i->kind == XSP_INSN_WORK && !(i->flags & XSP_INSN_PROBE);
}

/* Passes one instruction; false: nothing after it may be the entry. */
static bool step_over(struct walk *w, const struct xsp_graph *g, const struct xsp_insn *i)
{
	const struct xsp_part *p = &g->parts[i->part];
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	const ZydisDecodedOperand *o;
	ZydisDecodedInstruction d;
	bool moves_rsp = false;
	ZydisRegister reg;

	w->late |= is_slow(i);
	if (i->kind != XSP_INSN_PLAIN && i->kind != XSP_INSN_NOP && !is_slow(i))
		return false;
	if (!w->decoder_ready &&
	    ZYAN_FAILED(ZydisDecoderInit(&w->decoder, ZYDIS_MACHINE_MODE_LONG_64,
					 ZYDIS_STACK_WIDTH_64)))
		return false;
	w->decoder_ready = true;
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&w->decoder, p->bytes + (i->addr - p->addr),
					       p->size - (i->addr - p->addr), &d, ops)))
		return false;
	for (o = ops; o < ops + d.operand_count; o++) {
		if (!(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			w->wrote_memory |= d.mnemonic != ZYDIS_MNEMONIC_PUSH;
			continue;
		}
		if (o->type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		reg = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, o->reg.value);
		moves_rsp |= reg == ZYDIS_REGISTER_RSP;
		for (unsigned k = 0; k < 6; k++) {
			if ((w->live & (1U << k)) && reg == arguments[k])
				return false;
		}
	}
	return !moves_rsp || track_rsp(&d, ops, &w->delta);
}

/*
 * May a site of class nop5 be here? Linux >= 6.18 replaces it by a call, which pushes onto the
 * stack: what the function keeps in its red zone would be lost. Before its first write to memory,
 * the red zone is empty.
 */
static bool may_stop(const struct walk *w, const struct xsp_graph *g, const struct xsp_insn *i)
{
	if (!(i->flags & XSP_INSN_PROBE))
		return false;
	if (i->kind == XSP_INSN_BRANCH && (i->flags & XSP_INSN_LEAVES))
		return false; /* an address cannot be both an entry and a conditional exit */
	/* An emulated or stepped call does not push onto a shadow stack. Elsewhere a function that
	 * begins with one has no other site. */
	if (i->kind == XSP_INSN_CALL)
		return i->addr == g->entry && !xsp_module_shadow_stacks(g->m);
	if (i->kind == XSP_INSN_FORK)
		return false;
	return i->cls != XSP_SITE_NOP5 || !w->wrote_memory;
}

/* Does decoding its function, with at most one prefix, show it to be an instruction? If that is
 * unknown, it counts as one. */
static bool is_instruction(struct xsp_graph *g, const struct xsp_inbound *in)
{
	uint64_t far = in->source - in->start;
	uint8_t prefix = 0;

	if (far > XSP_MAX_PART_SIZE - g->searched)
		return true;
	g->searched += far;
	if (xsp_instruction_begins(g->m, in->start, in->source) != 0)
		return true;
	return far && xsp_module_read(g->m, in->source - 1, &prefix, 1) == 1 &&
	       (prefix == 0xf2 || prefix == 0x2e || prefix == 0x3e || (prefix & 0xf8) == 0x48) &&
	       xsp_instruction_begins(g->m, in->start, in->source - 1) != 0 &&
	       in->source - 1 + xsp_instruction_length(g->m, in->source - 1) == in->end;
}

/* The first address after the entry to which code of other functions leads: only before it are
 * sites hit by nothing but calls. */
static uint64_t first_inbound(struct xsp_graph *g)
{
	const struct xsp_inbound *found;
	long count = xsp_module_inbound(g->m, g->entry, g->entry + XSP_INBOUND_MAX - 1, &found);

	for (long k = 0; k < count; k++)
		if (is_instruction(g, &found[k]))
			return found[k].target;
	return g->entry + (count < 0 ? 1 : XSP_INBOUND_MAX);
}

/* Does the branch lead to a larger stack: to one call, after which the function starts over? */
static bool begins_again(struct xsp_graph *g, const struct xsp_insn *branch)
{
	uint32_t index = xsp_graph_find(g, branch->target);
	unsigned calls = 0;

	for (unsigned n = 0; n < 2 * LOOK_AHEAD && index != UINT32_MAX; n++) {
		const struct xsp_insn *i = &g->insns[index];

		if (i->kind == XSP_INSN_JUMP)
			return calls == 1 && i->target == g->entry;
		if (i->kind != XSP_INSN_PLAIN && i->kind != XSP_INSN_NOP &&
		    i->kind != XSP_INSN_CALL)
			return false;
		calls += i->kind == XSP_INSN_CALL;
		index = xsp_graph_find(g, i->addr + i->length);
	}
	return false;
}

/* The first instruction that runs once a call: before it makes a frame, Go code checks whether its
 * stack is large enough. UINT32_MAX: there is none, as the function begins with a loop. */
static uint32_t first_of_call(struct xsp_graph *g)
{
	uint32_t first = xsp_graph_find(g, g->entry), index = first;

	for (unsigned n = 0; g->runtime == XSP_RUNTIME_GO && n < LOOK_AHEAD && index != UINT32_MAX;
	     n++) {
		const struct xsp_insn *i = &g->insns[index];

		index = xsp_graph_find(g, i->addr + i->length);
		if (i->kind == XSP_INSN_BRANCH && begins_again(g, i))
			first = index;
		else if ((i->kind != XSP_INSN_PLAIN && i->kind != XSP_INSN_NOP) || i->sp_change)
			break;
	}
	return first != UINT32_MAX && (g->insns[first].flags & XSP_INSN_JUMPED) ? UINT32_MAX
										: first;
}

/* Why there is no entry site: what its first instruction is. */
static const char *why_none(struct xsp_graph *g)
{
	const uint32_t first = xsp_graph_find(g, g->entry);
	const struct xsp_insn *i = &g->insns[first];

	if (first_of_call(g) == UINT32_MAX)
		return "it begins with a loop, which would count each turn";
	if (is_slow(i))
		return "it begins with a repeated string instruction, where a probe would count each repetition, or with cpuid";
	if (i->kind == XSP_INSN_CALL && (i->flags & XSP_INSN_PROBE))
		return "it begins with a call, and is built for shadow stacks (-fcf-protection), which a probe there would break";
	if (i->kind == XSP_INSN_SYSCALL)
		return "it begins with a system call";
	if (i->flags & XSP_INSN_PROBE)
		return "it begins with a jump that may leave it";
	return "the kernel refuses or misreads its first instruction (a prefix, AVX)";
}

int xsp_x86_entry(struct xsp_graph *g, unsigned args_read, const struct xsp_site_costs *costs,
		  struct xsp_site *site, uint32_t *at)
{
	struct walk w = {.live = args_read & 0x3f};
	uint32_t index = xsp_graph_find(g, g->entry);
	uint64_t end = g->entry;
	bool found = false;

	if (index == UINT32_MAX || g->insns[index].kind == XSP_INSN_BAD)
		return -EILSEQ;
	index = first_of_call(g);
	for (unsigned n = 0; n < LOOK_AHEAD && index != UINT32_MAX; n++) {
		const struct xsp_insn *i = &g->insns[index];

		/* only the first instruction may be reached in another way, too */
		if (i->addr != g->entry && end == g->entry)
			end = first_inbound(g);
		if (i->addr != g->entry &&
		    ((i->flags & (XSP_INSN_JUMPED | XSP_INSN_ROOT)) || i->addr >= end))
			break;
		if (may_stop(&w, g, i) &&
		    costs->ns[i->cls] < (found ? costs->ns[site->cls] : INFINITY)) {
			*site = (struct xsp_site){.addr = i->addr,
						  .cls = (enum xsp_site_class)i->cls,
						  .role = XSP_ROLE_ENTRY,
						  .exact = true,
						  .delta = w.delta};
			*at = index;
			found = true;
			g->late = w.late;
		}
		if (found && (site->cls == XSP_SITE_NOP5 || site->cls == XSP_SITE_EMULATED))
			break;
		if ((found && is_slow(i)) || !step_over(&w, g, i))
			break;
		index = xsp_graph_find(g, i->addr + i->length);
	}
	if (!found)
		g->refusal = why_none(g);
	return found ? 0 : -EOPNOTSUPP;
}
