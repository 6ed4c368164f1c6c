/* SPDX-License-Identifier: BSD-2-Clause */
/* provider.c - the table of providers, and which of them a selection asks for. */
#include "probes/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/providers.h"
#include "probes/ranges.h"

/* clang-format off */
const struct xsp_provider *const xsp_providers[] = {
	&xsp_provider_function,
	&xsp_provider_record_function,
	&xsp_provider_torch,
	&xsp_provider_xsigma,
	&xsp_provider_nvtx,
	&xsp_provider_itt,
	&xsp_provider_cuda,
	&xsp_provider_gpu,
	&xsp_provider_memory,
	&xsp_provider_c10d,
	&xsp_provider_nccl,
	&xsp_provider_unwind,
	NULL,
};
/* clang-format on */

int xsp_provider_row(const char *name)
{
	for (int i = 0; xsp_providers[i] != NULL; i++)
		if (strcmp(xsp_providers[i]->name, name) == 0)
			return i;
	return -1;
}

const struct xsp_provider *xsp_provider_at(int row)
{
	for (int i = 0; xsp_providers[i] != NULL; i++)
		if (i == row)
			return xsp_providers[i];
	return NULL;
}

int xsp_provider_index(const char *name)
{
	const int row = xsp_provider_row(name);

	return row >= 0 && !xsp_providers[row]->internal ? row : -1;
}

/* As a whole, or for some of its names? */
static bool is_asked(const struct xsp_selection *selection, int row)
{
	if (selection->providers & 1ULL << row)
		return true;
	for (size_t i = 0; i < selection->provider_pattern_count; i++)
		if (!selection->provider_patterns[i].exclude &&
		    strcmp(selection->provider_patterns[i].library, xsp_providers[row]->name) == 0)
			return true;
	return false;
}

bool xsp_selection_asks(const struct xsp_selection *selection, unsigned trait)
{
	for (int i = 0; xsp_providers[i] != NULL; i++)
		if ((xsp_provider_traits(xsp_providers[i]->name) & trait) != 0 &&
		    is_asked(selection, i))
			return true;
	return false;
}

bool xsp_selection_has_ranges(const struct xsp_selection *selection)
{
	for (int i = 0; xsp_providers[i] != NULL; i++)
		if (!xsp_providers[i]->internal && is_asked(selection, i))
			return true;
	return selection->gpu != 0;
}

/* As bits; the other scopes are kinds of functions. */
#define RECORD_BACKWARD (1U << XSP_RECORD_SCOPE_BACKWARD)
#define RECORD_USER (1U << XSP_RECORD_SCOPE_USER)
#define RECORD_ALL ((1U << XSP_RECORD_SCOPES) - 1)

static uint32_t record_scopes(unsigned scopes)
{
	uint32_t mask = 0;

	if (scopes & 1U << XSP_SCOPE_FUNCTION)
		mask |= RECORD_ALL & ~(RECORD_BACKWARD | RECORD_USER);
	if (scopes & 1U << XSP_SCOPE_BACKWARD)
		mask |= RECORD_BACKWARD;
	if (scopes & 1U << XSP_SCOPE_USER)
		mask |= RECORD_USER;
	return mask;
}

/* If only the call knows its scope, the kernel decides. */
static void decide_at_call(struct xsp_probe *p, unsigned scopes)
{
	if (p->action != XSP_ACTION_RANGE_BEGIN || (p->range.flags & XSP_RANGE_CONDITION))
		return;
	p->range.flags |= XSP_RANGE_CONDITION | XSP_RANGE_MASK | XSP_RANGE_BYTE;
	p->range.condition = p->detail.word[0];
	p->range.condition_value = record_scopes(scopes);
	if (p->detail.word[0].base < XSP_OPERAND_SP)
		p->args_read |= 1U << p->detail.word[0].base;
}

/* --scopes: removes probes of other scopes. All parts of a range have the same. */
static int keep_scopes(struct xsp_probe_list *list, unsigned scopes)
{
	size_t kept = 0;
	uint32_t *moved = calloc(list->count + 1, sizeof(*moved));

	if (moved == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < list->count; i++) {
		struct xsp_probe *p = &list->items[i];
		bool chosen = p->scope == XSP_SCOPE_NONE || p->scope == XSP_SCOPE_OWN;
		if (p->scope == XSP_SCOPE_OWN)
			decide_at_call(p, scopes);
		if (!chosen && !(scopes & 1U << p->scope)) {
			xsp_probe_clear(p);
			continue;
		}
		moved[i] = (uint32_t)kept;
		list->items[kept++] = *p;
	}
	list->count = kept;
	for (size_t i = 0; i < kept; i++)
		list->items[i].pair = moved[list->items[i].pair];
	free(moved);
	return 0;
}

int xsp_find_probes(struct xsp_module *m, const struct xsp_selection *selection,
		    struct xsp_probe_list *list, struct xsp_error *err)
{
	for (int i = 0; xsp_providers[i] != NULL; i++) {
		const struct xsp_provider *p = xsp_providers[i];
		if (!p->internal && !is_asked(selection, i))
			continue;
		struct xsp_selection its = *selection;
		its.whole = (selection->providers & 1ULL << i) != 0;
		int rc = p->find != NULL ? p->find(p, m, &its, list, err)
					 : xsp_ranges_add(p, m, p->ranges, p->range_count, list);
		if (rc < 0) {
			xsp_out_of_memory(err);
			return rc;
		}
	}
	return selection->scopes != 0 && keep_scopes(list, selection->scopes) < 0
		       ? xsp_out_of_memory(err)
		       : 0;
}
