/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.c - --memory: the functions of catalog/allocators.c. Each call of PyTorch's is an event
 * with its arguments. Of the heap's (--memory=malloc), a sample has events (bpf/heap.bpf.c).
 *
 * Return probes see the ends of the heap's calls only in libraries through which certainly no
 * exception passes. Any program may have a malloc() of its own that throws.
 */
#include "probes/probe.h"

#include "catalog/allocators.h"
#include "xsptrace/programs.h"

static struct xsp_probe probe_of(const struct xsp_provider *self,
				 const struct xsp_allocator_function *f, const struct xsp_symbol *s,
				 unsigned details)
{
	struct xsp_probe p = xsp_probe_on(self, XSP_ACTION_MEMORY, s, f->name);

	p.detail.exit = 1U << XSP_SECTION_WORDS;
	p.detail.words = (uint8_t)f->count;
	for (unsigned i = 0; i < f->count; i++) {
		p.detail.word[i] = (struct xsp_operand){.base = (uint8_t)(f->first + i)};
		p.args_read |= 1U << (f->first + i);
	}
	/* it does not matter who frees */
	if ((details & XSP_DETAIL_PYTHON) && f->call != XSP_ALLOCATOR_FREES)
		p.detail.exit |= 1U << XSP_SECTION_PYTHON;
	return p;
}

static long find_torch(const struct xsp_provider *self, struct xsp_module *m, unsigned details,
		       struct xsp_probe_list *list)
{
	long rc = 0;

	for (size_t i = 0; i < xsp_allocator_function_count && rc >= 0; i++) {
		const struct xsp_allocator_function *f = &xsp_allocator_functions[i];
		struct xsp_symbol s;
		if (!xsp_probe_function(m, f->symbol, &s))
			continue;
		const struct xsp_probe p = probe_of(self, f, &s, details);
		rc = xsp_probe_list_add(list, &p);
	}
	return rc;
}

static struct xsp_probe heap_probe(const struct xsp_provider *self,
				   const struct xsp_heap_function *f, const struct xsp_symbol *s,
				   bool never_throws)
{
	const uint8_t words[XSP_HEAP_WORDS] = {[XSP_HEAP_BYTES] = f->bytes,
					       [XSP_HEAP_FACTOR] = f->factor,
					       [XSP_HEAP_OLD] = f->old,
					       [XSP_HEAP_RESULT] = f->result};
	struct xsp_probe p = xsp_probe_on(self, XSP_ACTION_HEAP, s, f->name);

	p.no_exceptions = never_throws && !f->throws;
	p.detail.entry = 1U << XSP_SECTION_WORDS;
	p.detail.words = XSP_HEAP_WORDS;
	if (f->bytes != XSP_HEAP_NONE)
		p.detail.exit = 1U << XSP_SECTION_RESULT;
	for (unsigned i = 0; i < XSP_HEAP_WORDS; i++) {
		p.detail.word[i] = (struct xsp_operand){.base = words[i]};
		if (words[i] != XSP_HEAP_NONE)
			p.args_read |= 1U << words[i];
	}
	return p;
}

/* One function may have several of the names. */
static bool is_listed(const struct xsp_probe_list *list, const struct xsp_symbol *s)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].action == XSP_ACTION_HEAP && list->items[i].addr == s->addr)
			return true;
	return false;
}

/* In other libraries, operator new calls malloc. */
static long find_heap(const struct xsp_provider *self, struct xsp_module *m,
		      struct xsp_probe_list *list)
{
	struct xsp_symbol s;
	char soname[64];
	long rc = 0;

	xsp_module_soname(m, soname, sizeof(soname));
	const bool never_throws = xsp_heap_never_throws(soname);
	for (size_t i = 0; i < xsp_heap_function_count && rc >= 0; i++) {
		const struct xsp_heap_function *f = &xsp_heap_functions[i];
		const bool found = xsp_probe_function(m, f->symbol, &s);
		if (!found && i == 0)
			return 0;
		if (!found || is_listed(list, &s))
			continue;
		const struct xsp_probe p = heap_probe(self, f, &s, never_throws);
		rc = xsp_probe_list_add(list, &p);
	}
	return rc;
}

static int find_allocators(const struct xsp_provider *self, struct xsp_module *m,
			   const struct xsp_selection *selection, struct xsp_probe_list *list,
			   struct xsp_error *err)
{
	long rc = 0;

	(void)err;
	if (selection->details & XSP_DETAIL_MEMORY)
		rc = find_torch(self, m, selection->details, list);
	if (rc >= 0 && (selection->details & XSP_DETAIL_MALLOC))
		rc = find_heap(self, m, list);
	return rc < 0 ? (int)rc : 0;
}

const struct xsp_provider xsp_provider_memory = {
	.name = "memory",
	.help = "allocations, by --memory",
	.internal = true, /* xsp_selection.details turns it on */
	.find = find_allocators,
};
