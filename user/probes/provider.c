/* SPDX-License-Identifier: BSD-2-Clause */
/* provider.c - the table of providers and the list that they fill. */
#include "probes/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	&xsp_provider_unwind,
	NULL,
};
/* clang-format on */

int xsp_provider_index(const char *name)
{
	for (int i = 0; xsp_providers[i] != NULL; i++)
		if (!xsp_providers[i]->internal && strcmp(xsp_providers[i]->name, name) == 0)
			return i;
	return -1;
}

static bool is_for(const struct xsp_pattern *pattern, const struct xsp_provider *provider)
{
	return strcmp(pattern->library, provider->name) == 0;
}

bool xsp_selection_takes(const struct xsp_selection *selection, const struct xsp_provider *provider,
			 const char *name)
{
	int row = xsp_provider_index(provider->name);
	bool taken = row >= 0 && (selection->providers & 1ULL << row) != 0;

	for (size_t i = 0; i < selection->provider_pattern_count; i++) {
		const struct xsp_pattern *p = &selection->provider_patterns[i];
		if (!is_for(p, provider) || (taken && !p->exclude) ||
		    !xsp_glob_match(p->glob, name))
			continue;
		if (p->exclude)
			return false;
		taken = true;
	}
	return taken;
}

/* As a whole, or some of its names? */
static bool is_asked(const struct xsp_selection *selection, int row)
{
	if (selection->providers & 1ULL << row)
		return true;
	for (size_t i = 0; i < selection->provider_pattern_count; i++)
		if (!selection->provider_patterns[i].exclude &&
		    is_for(&selection->provider_patterns[i], xsp_providers[row]))
			return true;
	return false;
}

const char *xsp_scope_name(enum xsp_scope scope)
{
	static const char *const names[XSP_SCOPES] = {[XSP_SCOPE_FUNCTION] = "function",
						      [XSP_SCOPE_BACKWARD] = "backward",
						      [XSP_SCOPE_USER] = "user"};

	return (unsigned)scope < XSP_SCOPES ? names[scope] : NULL;
}

/* at::RecordScope: 1 is BACKWARD_FUNCTION, 7 USER_SCOPE, the others are kinds of functions. */
#define RECORD_BACKWARD (1U << 1)
#define RECORD_USER (1U << 7)
#define RECORD_ALL 0x3ffU

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

/* Where the scope is known at the call only, the kernel decides. */
static void decide_at_call(struct xsp_probe *p, unsigned scopes)
{
	if (p->action != XSP_ACTION_RANGE_BEGIN || (p->range.flags & XSP_RANGE_CONDITION))
		return;
	p->range.flags |= XSP_RANGE_CONDITION | XSP_RANGE_MASK;
	p->range.condition = p->detail.word[0];
	p->range.condition_value = record_scopes(scopes);
	if (p->detail.word[0].base < XSP_OPERAND_SP)
		p->args_read |= 1U << p->detail.word[0].base;
}

static void clear_probe(struct xsp_probe *p)
{
	free(p->symbol);
	free(p->name);
	free(p->arguments);
}

/* --scopes: takes out what is of another scope. All parts of a range are of one. */
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
			clear_probe(p);
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
		int rc = p->find(p, m, selection, list, err);
		if (rc < 0)
			return rc;
	}
	if (selection->scopes != 0 && keep_scopes(list, selection->scopes) < 0)
		return xsp_error_set(err, -ENOMEM, XSP_STATUS_FAILED, "out of memory");
	return 0;
}

bool xsp_probe_is_wanted(const struct xsp_probe *p)
{
	return p->action == XSP_ACTION_SPAN || p->action == XSP_ACTION_NAMED_SPAN ||
	       p->action == XSP_ACTION_GPU_BATCH ||
	       (p->action == XSP_ACTION_RANGE_BEGIN && !(p->range.flags & XSP_RANGE_REMEMBER));
}

static int grow(struct xsp_probe_list *list)
{
	size_t room = list->room ? 2 * list->room : 64;
	struct xsp_probe *items = reallocarray(list->items, room, sizeof(*items));

	if (items == NULL)
		return -ENOMEM;
	list->items = items;
	list->room = room;
	return 0;
}

long xsp_probe_list_add(struct xsp_probe_list *list, const struct xsp_probe *p)
{
	if (list->count == list->room && grow(list) < 0)
		return -ENOMEM;
	struct xsp_probe *new = &list->items[list->count];
	*new = *p;
	new->symbol = strdup(p->symbol ? p->symbol : "");
	new->name = strdup(p->name ? p->name : "");
	if (new->symbol == NULL || new->name == NULL) {
		free(new->symbol);
		free(new->name);
		return -ENOMEM; /* p->arguments stays the caller's */
	}
	if (p->action != XSP_ACTION_RANGE_END && p->action != XSP_ACTION_RANGE_LABEL &&
	    !(p->range.flags & XSP_RANGE_SHARED))
		new->pair = (uint32_t)list->count;
	return (long)list->count++;
}

void xsp_probe_list_clear(struct xsp_probe_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		clear_probe(&list->items[i]);
	free(list->items);
	*list = (struct xsp_probe_list){0};
}
