/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * graph.c - the instruction graph of one function: storage, reachability, and whether a jump out of
 * it is a tail call or goes to its own cold part.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/search.h"
#include "placement/placement_private.h"

void xsp_graph_free(struct xsp_graph *g)
{
	for (unsigned i = 0; i < g->part_count; i++) {
		free(g->parts[i].bytes);
		free(g->parts[i].at);
	}
	free(g->insns);
	free(g->edges);
	memset(g, 0, sizeof(*g));
}

int xsp_graph_add_part(struct xsp_graph *g, uint64_t addr, uint64_t size)
{
	struct xsp_part *p = &g->parts[g->part_count];
	long got;

	if (g->part_count == XSP_MAX_PARTS || size > XSP_MAX_PART_SIZE)
		return -E2BIG;
	if (size == 0 || addr + size < addr)
		return -ENOENT;
	p->bytes = malloc(size);
	p->at = calloc(size, sizeof(*p->at));
	if (!p->bytes || !p->at)
		goto fail;
	got = xsp_module_read(g->m, addr, p->bytes, size);
	if (got <= 0) {
		free(p->bytes);
		free(p->at);
		return -ENOENT;
	}
	p->addr = addr;
	p->size = (uint64_t)got;
	g->part_count++;
	return 0;
fail:
	free(p->bytes);
	free(p->at);
	return -ENOMEM;
}

struct xsp_part *xsp_graph_part(struct xsp_graph *g, uint64_t addr)
{
	for (unsigned i = 0; i < g->part_count; i++) {
		if (addr - g->parts[i].addr < g->parts[i].size)
			return &g->parts[i];
	}
	return NULL;
}

uint32_t xsp_graph_find(struct xsp_graph *g, uint64_t addr)
{
	struct xsp_part *p = xsp_graph_part(g, addr);

	return p ? p->at[addr - p->addr] - 1 : UINT32_MAX;
}

uint32_t xsp_graph_add_insn(struct xsp_graph *g, const struct xsp_insn *insn)
{
	struct xsp_part *p = xsp_graph_part(g, insn->addr);

	if (!p || xsp_grow(&g->insns, &g->capacity, (size_t)g->count + 1) < 0)
		return UINT32_MAX;
	g->insns[g->count] = *insn;
	g->insns[g->count].part = (uint8_t)(p - g->parts);
	p->at[insn->addr - p->addr] = g->count + 1;
	return g->count++;
}

int xsp_graph_add_edge(struct xsp_graph *g, uint32_t from, uint32_t to, enum xsp_edge_kind kind)
{
	struct xsp_edge *e;

	if (xsp_grow(&g->edges, &g->edge_capacity, (size_t)g->edge_count + 1) < 0)
		return -ENOMEM;
	e = &g->edges[g->edge_count++];
	*e = (struct xsp_edge){.from = from,
			       .to = to,
			       .next_succ = g->insns[from].succ,
			       .next_pred = g->insns[to].pred,
			       .kind = (uint8_t)kind};
	g->insns[from].succ = g->edge_count;
	g->insns[to].pred = g->edge_count;
	if (kind != XSP_EDGE_NEXT)
		g->insns[to].flags |= XSP_INSN_JUMPED;
	return 0;
}

void xsp_graph_hidden(struct xsp_graph *g, const char *note)
{
	g->hidden = true;
	if (!g->note)
		g->note = note;
}

void xsp_graph_incomplete(struct xsp_graph *g, const char *note)
{
	g->incomplete = true;
	if (!g->note)
		g->note = note;
}

void xsp_graph_unknown(struct xsp_graph *g, const char *note)
{
	xsp_graph_hidden(g, note);
	xsp_graph_incomplete(g, note);
}

int xsp_graph_resolve(struct xsp_graph *g, int (*resolve)(struct xsp_graph *g, uint32_t at))
{
	unsigned parts;
	int error = 0;

	do {
		parts = g->part_count;
		for (uint32_t i = 0; !error && i < g->count; i++)
			error = resolve(g, i);
	} while (!error && g->part_count != parts);
	return error;
}

/* Sets XSP_INSN_SEEN from `start` on; *stack is scratch of at least g->count entries. */
static void walk(struct xsp_graph *g, uint32_t start, uint32_t *stack)
{
	uint32_t depth = 0;

	if (g->insns[start].flags & XSP_INSN_SEEN)
		return;
	g->insns[start].flags |= XSP_INSN_SEEN;
	stack[depth++] = start;
	while (depth) {
		uint32_t at = stack[--depth];

		for (uint32_t e = g->insns[at].succ; e; e = g->edges[e - 1].next_succ) {
			struct xsp_insn *to = &g->insns[g->edges[e - 1].to];

			if (to->flags & XSP_INSN_SEEN)
				continue;
			to->flags |= XSP_INSN_SEEN;
			stack[depth++] = g->edges[e - 1].to;
		}
	}
}

/* Padding between blocks, and traps where control should not arrive. */
static bool is_filler(const struct xsp_insn *i)
{
	return i->kind == XSP_INSN_NOP || i->kind == XSP_INSN_TRAP;
}

/* Other function symbols inside the parts: callers may enter there. */
static void mark_symbols(struct xsp_graph *g)
{
	const struct xsp_symbol *symbols;
	size_t count, low;

	if (xsp_module_symbols(g->m, &symbols, &count, NULL) != 0)
		return;
	for (unsigned k = 0; k < g->part_count; k++) {
		const struct xsp_part *p = &g->parts[k];

		low = 0;
		XSP_LOWER_BOUND(low, count, i, symbols[i].addr < p->addr);
		for (; low < count && symbols[low].addr - p->addr < p->size; low++) {
			uint32_t at = p->at[symbols[low].addr - p->addr];

			/* the start of a cold part is no second entry */
			if (at && symbols[low].addr != g->entry &&
			    (k == 0 || symbols[low].addr != p->addr))
				g->insns[at - 1].flags |= XSP_INSN_ROOT;
		}
	}
}

/* Where an exception continues; other paths may lead there, too. */
static void mark_landing_pad(void *ctx, uint64_t addr)
{
	struct xsp_graph *g = ctx;
	const uint32_t at = xsp_graph_find(g, addr);

	if (at != UINT32_MAX)
		g->insns[at].flags |= XSP_INSN_ROOT;
}

int xsp_graph_find_roots(struct xsp_graph *g)
{
	uint32_t *stack = malloc(((size_t)g->count + 1) * sizeof(*stack));
	uint32_t entry = xsp_graph_find(g, g->entry);
	int error = 0;

	if (!stack)
		return -ENOMEM;
	if (entry == UINT32_MAX) {
		free(stack);
		return -EILSEQ;
	}
	mark_symbols(g);
	for (unsigned k = 0; error == 0 && k < g->part_count; k++)
		error = xsp_module_landing_pads(g->m, g->parts[k].addr, mark_landing_pad, g);
	if (error) {
		free(stack);
		return error;
	}
	walk(g, entry, stack);
	for (uint32_t i = 0; i < g->count; i++) {
		if (g->insns[i].flags & XSP_INSN_ROOT)
			walk(g, i, stack);
	}
	for (uint32_t i = 0; i < g->count; i++) {
		if ((g->insns[i].flags & XSP_INSN_SEEN) || is_filler(&g->insns[i]))
			continue;
		g->insns[i].flags |= XSP_INSN_ROOT;
		walk(g, i, stack);
	}
	free(stack);
	return 0;
}

int xsp_graph_at_entry_sp(struct xsp_graph *g, uint64_t pc)
{
	bool frame_pointer;
	int64_t delta;
	int error = xsp_module_entry_sp_rule(g->m, pc, &frame_pointer, &delta);

	if (error)
		return error;
	return !frame_pointer && delta == 0;
}

/* The function symbol that holds addr, or NULL. */
static const struct xsp_symbol *symbol_at(struct xsp_graph *g, uint64_t addr)
{
	const struct xsp_symbol *symbols;
	size_t count, low = 0;

	if (xsp_module_symbols(g->m, &symbols, &count, NULL) != 0)
		return NULL;
	XSP_LOWER_BOUND(low, count, i, symbols[i].addr <= addr);
	if (!low)
		return NULL;
	if (symbols[low - 1].addr != addr && addr - symbols[low - 1].addr >= symbols[low - 1].size)
		return NULL;
	return &symbols[low - 1];
}

bool xsp_graph_is_function(struct xsp_graph *g, uint64_t addr)
{
	const struct xsp_symbol *symbol = symbol_at(g, addr);

	return symbol && symbol->addr == addr && addr - g->entry >= g->symbol_size &&
	       !strstr(symbol->name, ".cold");
}

bool xsp_graph_is_body(struct xsp_graph *g, uint64_t addr)
{
	return addr != g->entry && xsp_graph_part(g, addr);
}

static int add_cold(struct xsp_graph *g, const struct xsp_code_range *range, enum xsp_leave *how)
{
	int error = xsp_graph_add_part(g, range->addr, range->size);

	if (error == -ENOMEM)
		return error;
	*how = error ? XSP_LEAVE_UNKNOWN : XSP_LEAVE_PART;
	return 0;
}

/*
 * There is no frame at the jump, so the stack does not decide. A function does not jump into the
 * middle of another one: certain if no symbol lies in between (assembly with symbols does). Code
 * that jumps back into the middle of this function is a part of it, whatever its name.
 */
static enum xsp_leave without_frame(struct xsp_graph *g, uint64_t target,
				    const struct xsp_symbol *symbol,
				    const struct xsp_code_range *range,
				    const struct xsp_leave_ops *ops)
{
	if (ops->stub(g->m, target))
		return XSP_LEAVE_TAIL;
	if (!symbol && target != range->addr)
		return XSP_LEAVE_PART;
	/* all searches together may cost as much as one part */
	if (range->size > XSP_MAX_PART_SIZE - g->searched)
		return XSP_LEAVE_UNKNOWN;
	g->searched += range->size;
	return ops->comes_back(g, range) ? XSP_LEAVE_PART : XSP_LEAVE_TAIL;
}

int xsp_graph_leave(struct xsp_graph *g, uint64_t site, uint64_t target,
		    const struct xsp_leave_ops *ops, enum xsp_leave *how)
{
	struct xsp_code_range range;
	const struct xsp_symbol *symbol;
	bool described;
	int at_entry;

	*how = XSP_LEAVE_UNKNOWN;
	if (!xsp_module_is_code(g->m, target))
		return 0;
	described = xsp_module_code_range(g->m, target, &range) == 0;
	at_entry = xsp_graph_at_entry_sp(g, site);
	if (at_entry == -ENOMEM)
		return at_entry;
	if (described && target - g->entry < g->symbol_size)
		return add_cold(g, &range, how);
	if (at_entry == 0) /* there is a frame: only the function's own code may run on it */
		return described ? add_cold(g, &range, how) : 0;
	symbol = symbol_at(g, target);
	if (symbol && symbol->name && strstr(symbol->name, ".cold"))
		return described ? add_cold(g, &range, how) : 0;
	if (at_entry < 0)
		return 0;
	*how = described ? without_frame(g, target, symbol, &range, ops) : XSP_LEAVE_TAIL;
	if (*how == XSP_LEAVE_PART)
		return add_cold(g, &range, how);
	if (!g->follows_tails || !described || target != range.addr || ops->stub(g->m, target))
		return 0;
	int error = add_cold(g, &range, how);
	if (*how == XSP_LEAVE_UNKNOWN)
		*how = XSP_LEAVE_TAIL;
	return error;
}

uint32_t xsp_instruction_length(struct xsp_module *m, uint64_t addr)
{
	uint8_t bytes[16];
	struct xsp_insn insn;

	if (xsp_module_arch(m) == XSP_ARCH_AARCH64)
		return 4;
	long n = xsp_module_read(m, addr, bytes, sizeof(bytes));
	if (n <= 0 || xsp_x86_decode(bytes, (size_t)n, addr, &insn) < 0)
		return 0;
	return insn.length;
}

#define COVERED_MAX (1U << 20) /* the most bytes that are decoded to find out */

int xsp_instruction_begins(struct xsp_module *m, uint64_t from, uint64_t addr)
{
	uint64_t at = from;

	if (addr - from > COVERED_MAX)
		return -ENOENT;
	while (at < addr) {
		uint32_t length = xsp_instruction_length(m, at);
		if (length == 0)
			return -ENOENT;
		at += length;
	}
	return at == addr;
}
