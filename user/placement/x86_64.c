/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86_64.c - the instruction graph of an x86-64 function.
 *
 * Each part is decoded from end to end (on x86-64, compilers keep data out of code). Jumps are
 * followed into cold parts, and what nothing reaches becomes a root.
 */
#include <errno.h>
#include <string.h>

#include "placement/placement_private.h"

#define EPILOGUE_LOOK_BACK 16 /* instructions */
#define LONGEST 15 /* bytes an instruction */

static bool jumps(const struct xsp_insn *i)
{
	return i->kind == XSP_INSN_JUMP || i->kind == XSP_INSN_BRANCH || i->kind == XSP_INSN_FORK;
}

/* A PLT stub: [endbr64] [bnd] jmp *mem, or the older form with push and jmp after it. */
static bool is_plt_stub(struct xsp_module *m, uint64_t addr)
{
	uint8_t bytes[32];
	long got = xsp_module_read(m, addr, bytes, sizeof(bytes));
	struct xsp_insn i;
	size_t at = 0;

	if (got < 16)
		return false;
	if (!memcmp(bytes, "\xf3\x0f\x1e\xfa", 4))
		at = 4;
	return xsp_x86_decode(bytes + at, (size_t)got - at, addr + at, &i) == 0 &&
	       i.kind == XSP_INSN_INDIRECT && (i.flags & XSP_INSN_MEMORY);
}

/* Decodes `range` from end to end in search of a way back into the function. */
static bool comes_back(struct xsp_graph *g, const struct xsp_code_range *range)
{
	uint64_t done = 0;
	bool found = false;

	while (!found && done < range->size) {
		uint8_t bytes[1024];
		size_t want = sizeof(bytes), at = 0;
		struct xsp_insn i;
		long got;

		if (want > range->size - done)
			want = range->size - done;
		got = xsp_module_read(g->m, range->addr + done, bytes, want);
		/* the last instruction of a full buffer may be incomplete: the next one starts with
		 * it */
		while (!found && got > 0 && at < (size_t)got &&
		       ((size_t)got < sizeof(bytes) || at + LONGEST <= (size_t)got)) {
			if (xsp_x86_decode(bytes + at, (size_t)got - at, range->addr + done + at,
					   &i) != 0)
				return false;
			found = jumps(&i) && xsp_graph_is_body(g, i.target);
			at += i.length;
		}
		if (!at)
			break;
		done += at;
	}
	return found;
}

static const struct xsp_leave_ops leave_ops = {.stub = is_plt_stub, .comes_back = comes_back};

/* Decodes from `offset` of a part up to an instruction that is known already. */
static int sweep(struct xsp_graph *g, unsigned part, uint64_t offset, uint64_t end)
{
	while (offset < end && !g->parts[part].at[offset]) {
		const struct xsp_part *p = &g->parts[part];
		struct xsp_insn i;
		int error =
			xsp_x86_decode(p->bytes + offset, p->size - offset, p->addr + offset, &i);

		if (error == -EINVAL)
			return error;
		if (part)
			i.flags |= XSP_INSN_COLD;
		if (xsp_graph_add_insn(g, &i) == UINT32_MAX)
			return -ENOMEM;
		if (error) /* what follows unreadable bytes is found by jumps, or not at all */
			return 0;
		offset += i.length;
	}
	return 0;
}

/*
 * A jump with a frame to code that begins without one. The compiler knew that control never gets
 * here (after a call that never returns, for an impossible value), and left a label at the end of a
 * part. If no part ends there, it may be a tail call whose frame .eh_frame does not follow.
 */
static bool never_comes(struct xsp_graph *g, uint32_t at)
{
	uint64_t target = g->insns[at].target;
	bool at_end = g->insns[at].kind == XSP_INSN_BRANCH; /* of an empty part */

	for (unsigned k = 0; k < g->part_count; k++)
		at_end |= target == g->parts[k].addr + g->parts[k].size;
	return at_end && xsp_graph_at_entry_sp(g, g->insns[at].addr) == 0 &&
	       xsp_graph_at_entry_sp(g, target) == 1;
}

/* Resolves the target of a direct jump: decodes it, adds a part, or marks the jump. */
static int resolve_jump(struct xsp_graph *g, uint32_t at)
{
	uint64_t site = g->insns[at].addr, target = g->insns[at].target;
	struct xsp_part *p = xsp_graph_part(g, target);
	enum xsp_leave how = XSP_LEAVE_UNKNOWN;
	int error;

	g->insns[at].flags &= (uint16_t) ~(XSP_INSN_LEAVES | XSP_INSN_LOST);
	if (!p && g->insns[at].kind == XSP_INSN_JUMP && xsp_x86_is_thunk(g->m, target)) {
		g->insns[at].kind = XSP_INSN_INDIRECT;
		return 0;
	}
	if (!p && never_comes(g, at)) {
		g->insns[at].kind =
			g->insns[at].kind == XSP_INSN_JUMP ? XSP_INSN_TRAP : XSP_INSN_PLAIN;
		return 0;
	}
	if (!p) {
		error = xsp_graph_leave(g, site, target, &leave_ops, &how);
		if (error)
			return error;
		p = how == XSP_LEAVE_PART ? xsp_graph_part(g, target) : NULL;
		if (p) {
			error = sweep(g, (unsigned)(p - g->parts), 0, p->size);
			if (error)
				return error;
		}
	} else if (target == g->entry && xsp_graph_at_entry_sp(g, site) == 1) {
		/* a loop back to the very start counts as a call of itself */
		how = XSP_LEAVE_TAIL;
		p = NULL;
	}
	if (!p) { /* the cookie has no room for a FORK's condition */
		bool tail = how == XSP_LEAVE_TAIL && g->insns[at].kind != XSP_INSN_FORK;

		g->insns[at].flags |= tail ? XSP_INSN_LEAVES : XSP_INSN_LOST;
		return 0;
	}
	/* no known boundary: code that overlaps other code, or follows undecoded bytes */
	if (!p->at[target - p->addr])
		return sweep(g, (unsigned)(p - g->parts), target - p->addr, p->size);
	return 0;
}

/* An instruction that has another one starting inside it must not be patched, nor may the other. */
static void guard_overlaps(struct xsp_graph *g)
{
	for (uint32_t i = 0; i < g->count; i++) {
		const struct xsp_part *p = &g->parts[g->insns[i].part];
		uint64_t offset = g->insns[i].addr - p->addr;

		for (uint64_t k = 1; k < g->insns[i].length && offset + k < p->size; k++) {
			if (!p->at[offset + k])
				continue;
			g->insns[i].flags &= (uint16_t)~XSP_INSN_PROBE;
			g->insns[p->at[offset + k] - 1].flags &= (uint16_t)~XSP_INSN_PROBE;
		}
	}
}

/* Nops at the end of a range that follow a call or the end of a block are only padding. */
static bool pads_the_end(struct xsp_graph *g, uint32_t at)
{
	const struct xsp_insn *i = &g->insns[at];

	while (at && i->kind == XSP_INSN_NOP) {
		if (g->insns[at - 1].addr + g->insns[at - 1].length != i->addr)
			return true;
		i = &g->insns[--at];
	}
	return i->kind == XSP_INSN_CALL || i->kind == XSP_INSN_JUMP || i->kind == XSP_INSN_RETURN ||
	       i->kind == XSP_INSN_INDIRECT || i->kind == XSP_INSN_TRAP;
}

/* Goes over the nops between two functions. */
static uint64_t skip_nops(struct xsp_module *m, uint64_t addr)
{
	uint8_t bytes[64];
	long got = xsp_module_read(m, addr, bytes, sizeof(bytes));
	struct xsp_insn i;

	for (size_t at = 0; got > 0 && at < (size_t)got; at += i.length) {
		if (xsp_x86_decode(bytes + at, (size_t)got - at, addr + at, &i) != 0 ||
		    i.kind != XSP_INSN_NOP)
			return addr + at;
	}
	return addr;
}

/* Does code begin there as functions do: push, endbr64, sub $n,%rsp? */
static bool pushes_first(struct xsp_graph *g, uint64_t addr)
{
	uint8_t b[4];

	if (xsp_module_read(g->m, addr, b, sizeof(b)) != sizeof(b))
		return false;
	return (b[0] & 0xf8) == 0x50 || (b[0] == 0x41 && (b[1] & 0xf8) == 0x50) ||
	       memcmp(b, "\xf3\x0f\x1e\xfa", 4) == 0 ||
	       (b[0] == 0x48 && (b[1] & 0xfd) == 0x81 && b[2] == 0xec);
}

/* The function runs on into the next one (assembly). One that others call is left alone: running
 * into it is a call of it, in effect. Otherwise its body is a part of this function. */
static int run_on(struct xsp_graph *g, uint32_t at)
{
	uint64_t end = g->insns[at].addr + g->insns[at].length, next;
	struct xsp_code_range range;
	int error;

	if (pads_the_end(g, at) || xsp_graph_part(g, end) || !xsp_module_is_code(g->m, end))
		return 0;
	next = skip_nops(g->m, end);
	if (xsp_module_code_range(g->m, next, &range) != 0 || range.addr != next)
		return 0;
	/* control does not run on into code with another frame, and hardly into code that is about
	 * to make one: unreachable code is followed by whatever the linker put there */
	if (g->insns[at].sp_change == 0 && !jumps(&g->insns[at]) &&
	    !xsp_graph_is_function(g, next)) {
		const int here = xsp_graph_at_entry_sp(g, g->insns[at].addr);
		const int there = xsp_graph_at_entry_sp(g, next);
		if (here >= 0 && there >= 0 && here != there)
			g->insns[at].kind = XSP_INSN_TRAP;
		if (g->insns[at].kind == XSP_INSN_TRAP || (here == 1 && pushes_first(g, next)))
			return 0;
	}
	if (next != end) { /* the path includes the nops */
		error = xsp_graph_add_part(g, end, next - end);
		if (error)
			return error == -ENOMEM ? error : 0;
		error = sweep(g, g->part_count - 1, 0, next - end);
		if (error)
			return error;
		at = g->count - 1;
	}
	if (xsp_graph_part(g, next))
		return 0;
	/* a jump that may stay inside is not a way out by itself */
	if (xsp_graph_is_function(g, next) &&
	    (!jumps(&g->insns[at]) || (g->insns[at].flags & XSP_INSN_LEAVES))) {
		g->insns[at].flags |= XSP_INSN_FALLS;
		return 0;
	}
	error = xsp_graph_add_part(g, range.addr, range.size);
	if (error)
		return error == -ENOMEM ? error : 0;
	return sweep(g, g->part_count - 1, 0, g->parts[g->part_count - 1].size);
}

static bool goes_on(const struct xsp_insn *i)
{
	return i->kind != XSP_INSN_TRAP && i->kind != XSP_INSN_RETURN && i->kind != XSP_INSN_BAD &&
	       i->kind != XSP_INSN_INDIRECT && i->kind != XSP_INSN_JUMP;
}

/* The next instruction in line; false: control leaves the known code there. */
static bool falls_to(struct xsp_graph *g, uint32_t at, uint32_t *next)
{
	*next = xsp_graph_find(g, g->insns[at].addr + g->insns[at].length);
	return *next != UINT32_MAX;
}

static int connect(struct xsp_graph *g, uint32_t at)
{
	struct xsp_insn *i = &g->insns[at];
	uint32_t to;
	int error = 0;

	if (goes_on(i)) {
		if (i->flags & XSP_INSN_FALLS)
			; /* a way out */
		else if (falls_to(g, at, &to))
			error = xsp_graph_add_edge(g, at, to, XSP_EDGE_NEXT);
		else if (!pads_the_end(g, at)) /* else a call there does not return */
			g->insns[at].flags |= XSP_INSN_LOST;
	}
	if (error || !jumps(&g->insns[at]) || (g->insns[at].flags & XSP_INSN_LEAVES))
		return error;
	to = xsp_graph_find(g, g->insns[at].target);
	if (to == UINT32_MAX) {
		g->insns[at].flags |= XSP_INSN_LOST;
		return 0;
	}
	return xsp_graph_add_edge(g, at, to, XSP_EDGE_TAKEN);
}

/* Was a frame removed straight before the jump? A function does so to leave, not for a switch of
 * its own (whose table would have been resolved). */
static bool frame_just_gone(struct xsp_graph *g, uint32_t at)
{
	for (uint32_t n = 0; n < EPILOGUE_LOOK_BACK && at > 0; n++, at--) {
		const struct xsp_insn *i = &g->insns[at], *before = &g->insns[at - 1];

		if (before->part != i->part || before->addr + before->length != i->addr ||
		    !goes_on(before) || before->kind == XSP_INSN_CALL)
			return false;
		if (xsp_graph_at_entry_sp(g, before->addr) == 0)
			return true;
	}
	return false;
}

static int resolve_indirect(struct xsp_graph *g, uint32_t at)
{
	int error = xsp_x86_jump_table(g, at);
	int at_entry;

	if (!error || error == -ENOMEM)
		return error;
	at_entry = xsp_graph_at_entry_sp(g, g->insns[at].addr);
	if (at_entry == 1 && (xsp_x86_pointer_jump(g, at) || frame_just_gone(g, at))) {
		g->insns[at].flags |= XSP_INSN_LEAVES;
		return 0;
	}
	g->insns[at].flags |= XSP_INSN_LOST;
	if (at_entry == 0) /* there is a frame: it stays inside */
		xsp_graph_hidden(g,
				 "an indirect jump could not be resolved: exits at returns only");
	return 0;
}

/* Only what can run matters. */
static void judge(struct xsp_graph *g)
{
	for (uint32_t i = 0; i < g->count; i++) {
		const struct xsp_insn *x = &g->insns[i];

		if (!(x->flags & XSP_INSN_SEEN))
			continue;
		if (x->kind == XSP_INSN_BAD)
			xsp_graph_unknown(g, "bytes that could not be decoded");
		if (!(x->flags & XSP_INSN_LOST))
			continue;
		xsp_graph_hidden(g, "a jump whose target is not known");
		if (x->kind != XSP_INSN_INDIRECT || xsp_graph_at_entry_sp(g, x->addr) != 0)
			xsp_graph_incomplete(g, "a jump whose target is not known");
	}
}

static int resolve(struct xsp_graph *g, uint32_t at)
{
	const uint64_t next = g->insns[at].addr + g->insns[at].length;
	const int error = jumps(&g->insns[at]) ? resolve_jump(g, at) : 0;

	return !error && goes_on(&g->insns[at]) && xsp_graph_find(g, next) == UINT32_MAX
		       ? run_on(g, at)
		       : error;
}

static int build(struct xsp_graph *g)
{
	int error = sweep(g, 0, 0, g->parts[0].size);

	/* the entry may be after bytes that stopped the sweep */
	if (!error)
		error = sweep(g, 0, g->entry - g->parts[0].addr, g->parts[0].size);
	if (!error)
		error = xsp_graph_resolve(g, resolve);
	for (uint32_t i = 0; !error && i < g->count; i++)
		error = connect(g, i);
	guard_overlaps(g);
	for (uint32_t i = 0; !error && i < g->count; i++) {
		if (g->insns[i].kind == XSP_INSN_INDIRECT)
			error = resolve_indirect(g, i);
	}
	if (!error)
		error = xsp_graph_find_roots(g);
	if (!error)
		judge(g);
	return error;
}

const struct xsp_arch_placer xsp_placer_x86_64 = {
	.graph = build,
	.entry = xsp_x86_entry,
	.result = xsp_x86_result,
};
