/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * placement.c - xsp_place: picks the architecture, runs graph → entry → cut, and completes the
 * sites (file offsets, stack rules, order).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/order.h"
#include "base/rows/search.h"
#include "placement/placement_private.h"
#include "xsptrace/event.h"

static const struct xsp_arch_placer *const placers[] = {
	[XSP_ARCH_X86_64] = &xsp_placer_x86_64,
	[XSP_ARCH_AARCH64] = &xsp_placer_arm64,
};

/* The size of a function that neither .eh_frame nor its own symbol gives (_init, _fini): up to the
 * next symbol, but not into the next section, as the PLT follows .init. 0: unknown. */
static uint64_t size_by_symbols(struct xsp_module *m, uint64_t addr)
{
	const struct xsp_symbol *symbols;
	size_t count, next = 0;

	if (xsp_module_symbols(m, &symbols, &count, NULL) != 0)
		return 0;
	XSP_LOWER_BOUND(next, count, i, symbols[i].addr <= addr);
	const bool named = next > 0 && symbols[next - 1].addr == addr;
	if (named && symbols[next - 1].size > 0)
		return symbols[next - 1].size;
	const uint64_t left = xsp_module_section_left(m, addr);
	if (next < count && symbols[next].addr - addr < left)
		return symbols[next].addr - addr;
	return (named || next < count) && left < UINT64_MAX ? left : 0;
}

/* The body is the whole FDE range around the entry: all code of an FDE has the same stack rules.
 * Other symbols in it (assembly with several entries) become roots. */
static int open_body(struct xsp_graph *g, uint64_t addr, uint64_t size)
{
	struct xsp_code_range range = {0};

	if (!xsp_module_is_code(g->m, addr))
		return -ENOENT;
	g->entry = addr;
	g->symbol_size = size;
	g->described = xsp_module_code_range(g->m, addr, &range) == 0 && range.addr <= addr &&
		       addr - range.addr < range.size;
	if (g->described)
		return xsp_graph_add_part(g, range.addr, range.size);
	if (!size)
		size = size_by_symbols(g->m, addr);
	if (!size)
		return -ENOENT;
	return xsp_graph_add_part(g, addr, size);
}

static XSP_ORDER(compare_sites, struct xsp_site, XSP_RISING(addr));

/*
 * A Go function whose stack is too small calls runtime.morestack, which copies the stack to a
 * larger area, and starts over, possibly on another thread. OCaml 5 continues where it was, on a
 * copied stack. So returns cannot be matched with entries. Only calls are counted, where they can
 * no longer start over.
 */
static void count_only(struct xsp_placement *out)
{
	out->count = 1;
	out->sites[0].role = XSP_ROLE_BOTH;
	out->stack_moves = true;
}

/* Why its calls are only counted; NULL: they are not. */
static const char *why_only_counted(const struct xsp_graph *g)
{
	if (g->runtime != XSP_RUNTIME_NONE)
		return "functions of Go and OCaml are counted, without a duration: their stacks move";
	return g->late ? "functions that begin with a repeated string instruction, where a probe would count each repetition, or with cpuid, are counted after it, without a duration"
		       : NULL;
}

#define ONCE_MAX 128 /* bytes */

/* How many of the function's first bytes run once a call, one after another, and none of them for long. */
static uint32_t bytes_once(struct xsp_graph *g)
{
	uint32_t index = xsp_graph_find(g, g->entry), bytes = 0;

	while (index != UINT32_MAX && bytes < ONCE_MAX) {
		const struct xsp_insn *i = &g->insns[index];
		const bool plain = i->kind == XSP_INSN_PLAIN || i->kind == XSP_INSN_NOP;
		if (i->flags & (XSP_INSN_JUMPED | XSP_INSN_ROOT) || i->kind == XSP_INSN_WORK ||
		    i->kind == XSP_INSN_BAD)
			break;
		bytes += i->length;
		index = plain ? xsp_graph_find(g, g->entry + bytes) : UINT32_MAX;
	}
	return bytes;
}

static int finish(struct xsp_graph *g, struct xsp_placement *out)
{
	if (out->count > 1)
		XSP_SORT(out->sites + 1, out->count - 1, compare_sites);
	for (size_t i = 0; i < out->count; i++) {
		struct xsp_site *s = &out->sites[i];
		int error = xsp_module_addr_to_offset(g->m, s->addr, &s->offset);

		if (error)
			return error;
	}
	out->once = bytes_once(g);
	out->complete = out->stack_moves || !g->incomplete;
	out->note = out->stack_moves ? why_only_counted(g) : g->note;
	return 0;
}

int xsp_place(struct xsp_module *m, uint64_t addr, uint64_t size, unsigned args_read,
	      const struct xsp_site_costs *costs, struct xsp_placement *out)
{
	struct xsp_site_costs usual = xsp_site_costs_default();
	enum xsp_arch arch = xsp_module_arch(m);
	const struct xsp_arch_placer *placer;
	struct xsp_graph g = {.m = m,
			      .at_return = (args_read & XSP_READS_RESULT) != 0,
			      .follows_tails = (args_read & XSP_FOLLOWS_TAILS) != 0};
	uint32_t entry = 0;
	int error;

	memset(out, 0, sizeof(*out));
	placer = (size_t)arch < sizeof(placers) / sizeof(*placers) ? placers[arch] : NULL;
	if (!placer)
		return -EOPNOTSUPP;
	if (!costs)
		costs = &usual;
	out->sites = calloc(XSP_MAX_SITES, sizeof(*out->sites));
	if (!out->sites)
		return -ENOMEM;
	g.result = placer->result;
	g.runtime = xsp_module_runtime(m, addr);
	error = open_body(&g, addr, size);
	if (!error)
		error = placer->graph(&g);
	if (!error)
		error = placer->entry(&g, args_read, costs, &out->sites[0], &entry);
	if (!error) {
		out->count = 1;
		if (why_only_counted(&g) != NULL)
			count_only(out);
		else
			error = xsp_cut(&g, entry, costs, out);
	}
	if (!error)
		error = finish(&g, out);
	const char *refusal = g.refusal;
	xsp_graph_free(&g);
	if (error) {
		xsp_placement_clear(out);
		out->note = refusal;
		return error;
	}
	void *fitted = realloc(out->sites, out->count * sizeof(*out->sites));
	if (fitted)
		out->sites = fitted;
	return 0;
}

/* How many symbols before an address are checked for reaching past it; honest ones hardly
 * overlap. */
#define COVERING_MAX 16

bool xsp_inside_instruction(struct xsp_module *m, uint64_t addr)
{
	const struct xsp_symbol *symbols;
	size_t count, low = 0;

	if (xsp_module_symbols(m, &symbols, &count, NULL) < 0)
		return false;
	XSP_LOWER_BOUND(low, count, i, symbols[i].addr < addr);
	for (size_t i = 0; i < COVERING_MAX && i < low; i++) {
		const struct xsp_symbol *s = &symbols[low - 1 - i];

		if (s->size > addr - s->addr && xsp_instruction_begins(m, s->addr, addr) != 1)
			return true;
	}
	return false;
}

void xsp_placement_clear(struct xsp_placement *p)
{
	free(p->sites);
	memset(p, 0, sizeof(*p));
}

static const uint8_t role_kinds[] = {
	[XSP_ROLE_ENTRY] = XSP_EVENT_ENTRY,
	[XSP_ROLE_EXIT] = XSP_EVENT_EXIT,
	[XSP_ROLE_BOTH] = XSP_EVENT_POINT,
};

uint64_t xsp_site_cookie(const struct xsp_site *site, uint32_t probe)
{
	const int64_t limit = INT64_C(1) << (XSP_COOKIE_DELTA_BITS - 1);
	int64_t words = site->delta / 8;
	bool exact = site->exact && site->delta % 8 == 0 && words >= -limit && words < limit;
	uint64_t cookie = probe & (XSP_MAX_PROBES - 1);

	cookie |= (uint64_t)role_kinds[site->role] << XSP_COOKIE_KIND_SHIFT;
	cookie |= (uint64_t)(site->cond & 0x1f) << XSP_COOKIE_COND_SHIFT;
	if (site->taken)
		cookie |= XSP_COOKIE_TAKEN;
	if (site->tail)
		cookie |= XSP_COOKIE_TAIL;
	cookie |= (uint64_t)(site->result & 7) << XSP_COOKIE_RESULT_SHIFT;
	if (exact) {
		cookie |= XSP_COOKIE_SP_EXACT;
		cookie |= ((uint64_t)words & ((1ULL << XSP_COOKIE_DELTA_BITS) - 1))
			  << XSP_COOKIE_DELTA_SHIFT;
		if (site->frame_pointer)
			cookie |= XSP_COOKIE_BASE_FP;
	}
	return cookie;
}
