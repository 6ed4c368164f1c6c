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
	return 0;
}

bool xsp_probe_is_wanted(const struct xsp_probe *p)
{
	return p->action == XSP_ACTION_SPAN || p->action == XSP_ACTION_NAMED_SPAN ||
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
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].symbol);
		free(list->items[i].name);
		free(list->items[i].arguments);
	}
	free(list->items);
	*list = (struct xsp_probe_list){0};
}
