/* SPDX-License-Identifier: BSD-2-Clause */
/* list.c - the list that providers fill. */
#include "probes/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/patterns/glob.h"

bool xsp_selection_includes(const struct xsp_selection *selection,
			    const struct xsp_provider *provider, const char *name)
{
	bool included = selection->whole;

	for (size_t i = 0; i < selection->provider_pattern_count; i++) {
		const struct xsp_pattern *p = &selection->provider_patterns[i];
		if (strcmp(p->library, provider->name) != 0 || (included && !p->exclude) ||
		    !xsp_glob_match(p->glob, name))
			continue;
		if (p->exclude)
			return false;
		included = true;
	}
	return included;
}

void xsp_probe_clear(struct xsp_probe *p)
{
	free(p->symbol);
	free(p->name);
	free(p->arguments);
}

bool xsp_probe_is_wanted(const struct xsp_probe *p)
{
	return p->action == XSP_ACTION_SPAN || p->action == XSP_ACTION_NAMED_SPAN ||
	       p->action == XSP_ACTION_GPU_BATCH || p->action == XSP_ACTION_MEMORY ||
	       p->action == XSP_ACTION_HEAP || p->action == XSP_ACTION_VALUE ||
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
		return -ENOMEM; /* the caller keeps p->arguments */
	}
	if (p->action != XSP_ACTION_RANGE_END && p->action != XSP_ACTION_RANGE_LABEL &&
	    !(p->range.flags & XSP_RANGE_SHARED))
		new->pair = (uint32_t)list->count;
	return (long)list->count++;
}

void xsp_probe_list_clear(struct xsp_probe_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		xsp_probe_clear(&list->items[i]);
	free(list->items);
	*list = (struct xsp_probe_list){0};
}
