/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuda.c - calls of CUDA's driver and runtime API, by the table in cuda_table.c.
 *
 * The exports of libcuda.so.1 are stubs. They check that the driver is alive, and jump through a
 * table to the function that does the work and returns to the caller. So return probes see their
 * exits. They do no harm here: no exception passes CUDA's C entry points. Exit sites remain for
 * calls that may run the user's own code, and for functions of these names outside NVIDIA's
 * libraries: a wrapper may throw.
 */
#include "base/text.h"
#include "catalog/gpu/cuda_table.h"
#include "base/path.h"
#include "probes/probe.h"

#include <stdio.h>
#include <string.h>

static const char *const forms[] = {"", "_ptsz", "_ptds"};

/* The words of the arguments: first in registers, then on the stack. */
#if defined(__x86_64__)
#define REGISTERS 6
#define STACK_AT 8 /* after the return address */
#else
#define REGISTERS 8
#define STACK_AT 0
#endif

static struct xsp_operand operand(const struct xsp_cuda_arg *arg)
{
	if (arg->slot < REGISTERS && arg->slot < XSP_OPERAND_SP)
		return (struct xsp_operand){
			.base = arg->slot, .deref = arg->deref, .offset = arg->offset};
	if (arg->slot < REGISTERS || arg->deref)
		return (struct xsp_operand){.base = XSP_OPERAND_NONE};
	return (struct xsp_operand){.base = XSP_OPERAND_SP,
				    .deref = 1,
				    .offset = (uint16_t)(STACK_AT + 8 * (arg->slot - REGISTERS))};
}

/* The sections of a call's events. `read`: registers that must be intact at its entry site. */
static struct xsp_detail_spec detail(const struct xsp_cuda_entry *e, unsigned *read)
{
	struct xsp_detail_spec d = {.exit = 1U << XSP_SECTION_RESULT};
	unsigned args = xsp_cuda_args(e);

	*read = 0;
	for (unsigned i = 0; i < args; i++) {
		struct xsp_operand o = operand(&e->args[i]);
		if (o.base == XSP_OPERAND_NONE)
			break; /* the following words are unknown, too */
		if (e->args[i].field == XSP_CUDA_OUT) {
			d.written = (uint8_t)(i + 1);
			d.exit |= 1U << XSP_SECTION_WRITTEN;
		}
		if (o.base < XSP_OPERAND_SP)
			*read |= 1U << o.base;
		d.word[d.words++] = o;
	}
	if (d.words > 0)
		d.entry = 1U << XSP_SECTION_WORDS;
	return d;
}

/* For calls that name a kernel by a string: it is sent like the name of a range. */
static void capture_name(const struct xsp_cuda_entry *e, struct xsp_probe *p)
{
	unsigned args = xsp_cuda_args(e);

	for (unsigned i = 0; i < args; i++) {
		if (e->args[i].field != XSP_CUDA_NAME || e->args[i].slot >= XSP_OPERAND_SP)
			continue;
		p->action = XSP_ACTION_NAMED_SPAN;
		p->range = (struct xsp_range_spec){.name = XSP_RANGE_NAME_TEXT,
						   .text = {.base = e->args[i].slot},
						   .length = {.base = XSP_OPERAND_NONE}};
	}
}

/* Is it NVIDIA's library, and not a program or a preloaded wrapper with the same functions? */
static bool is_nvidias(struct xsp_module *m)
{
	static const char *const files[] = {"libcuda.so", "libcudart.so"};

	return XSP_BEGINS_WITH_ANY(xsp_base_name(xsp_module_display_path(m)), files);
}

static int add_entry(const struct xsp_provider *self, struct xsp_module *m,
		     const struct xsp_cuda_entry *e, const char *name,
		     const struct xsp_selection *selection, struct xsp_probe_list *list)
{
	struct xsp_symbol s;

	if (!xsp_probe_function(m, name, &s) || !xsp_selection_includes(selection, self, name))
		return 0;
	struct xsp_probe p = xsp_probe_on(self, XSP_ACTION_SPAN, &s, NULL);
	p.no_exceptions = !e->calls_back && is_nvidias(m);
	if (selection->details & XSP_DETAIL_CUDA) {
		p.detail = detail(e, &p.args_read);
		capture_name(e, &p);
	}
	long rc = xsp_probe_list_add(list, &p);
	return rc < 0 ? (int)rc : 0;
}

static bool is_asked(const struct xsp_selection *selection, const struct xsp_cuda_entry *e)
{
	return selection->cuda_apis == 0 || (selection->cuda_apis & 1U << e->api) != 0;
}

static int find_cuda(const struct xsp_provider *self, struct xsp_module *m,
		     const struct xsp_selection *selection, struct xsp_probe_list *list,
		     struct xsp_error *err)
{
	int rc = 0;

	(void)err;
	for (size_t i = 0; i < xsp_cuda_entry_count && rc == 0; i++) {
		const struct xsp_cuda_entry *e = &xsp_cuda_entries[i];
		char name[96];
		for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]) && rc == 0; f++) {
			if (!is_asked(selection, e))
				continue;
			snprintf(name, sizeof(name), "%s%s", e->name, forms[f]);
			rc = add_entry(self, m, e, name, selection, list);
		}
	}
	return rc;
}

const struct xsp_provider xsp_provider_cuda = {
	.name = "cuda",
	.help = "CUDA: driver and runtime API calls; GPU activity with the agent",
	.by_default = true,
	.names_known = true,
	.find = find_cuda,
};
