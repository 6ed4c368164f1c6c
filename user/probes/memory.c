/* SPDX-License-Identifier: BSD-2-Clause */
/* memory.c - --memory: the functions of catalog/allocators.c. An event a call, with its arguments. */
#include "probes/probe.h"

#include "catalog/allocators.h"

static struct xsp_probe probe_of(const struct xsp_provider *self,
				 const struct xsp_allocator_function *f, const struct xsp_symbol *s,
				 unsigned details)
{
	struct xsp_probe p = {
		.provider = self->name,
		.action = XSP_ACTION_MEMORY,
		.addr = s->addr,
		.size = s->size,
		.offset = s->offset,
		.detail = {.exit = 1U << XSP_SECTION_WORDS, .words = (uint8_t)f->count},
		.symbol = (char *)(uintptr_t)f->symbol,
		.name = (char *)(uintptr_t)f->name,
	};

	for (unsigned i = 0; i < f->count; i++) {
		p.detail.word[i] = (struct xsp_operand){.base = (uint8_t)(f->first + i)};
		p.args_read |= 1U << (f->first + i);
	}
	/* who frees is of no interest */
	if ((details & XSP_DETAIL_PYTHON) && f->call != XSP_ALLOCATOR_TAKES)
		p.detail.exit |= 1U << XSP_SECTION_PYTHON;
	return p;
}

static int find_allocators(const struct xsp_provider *self, struct xsp_module *m,
			   const struct xsp_selection *selection, struct xsp_probe_list *list,
			   struct xsp_error *err)
{
	long rc = 0;

	for (size_t i = 0; (selection->details & XSP_DETAIL_MEMORY) &&
			   i < xsp_allocator_function_count && rc >= 0;
	     i++) {
		const struct xsp_allocator_function *f = &xsp_allocator_functions[i];
		struct xsp_symbol s;
		if (xsp_module_find(m, f->symbol, &s) < 0 || s.ifunc ||
		    !xsp_module_is_code(m, s.addr))
			continue;
		const struct xsp_probe p = probe_of(self, f, &s, selection->details);
		rc = xsp_probe_list_add(list, &p);
	}
	return rc < 0 ? xsp_error_set(err, (int)rc, XSP_STATUS_FAILED, "out of memory") : 0;
}

const struct xsp_provider xsp_provider_memory = {
	.name = "memory",
	.help = "allocations, by --memory",
	.internal = true, /* by xsp_selection.details */
	.find = find_allocators,
};
