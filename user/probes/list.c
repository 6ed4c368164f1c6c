/* SPDX-License-Identifier: BSD-2-Clause */
/* list.c - the list that providers fill. */
#include "probes/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
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

bool xsp_probe_function(struct xsp_module *m, const char *symbol, struct xsp_symbol *out)
{
	return xsp_module_find(m, symbol, out) == 0 && !out->ifunc &&
	       xsp_module_is_code(m, out->addr);
}

struct xsp_probe xsp_probe_on(const struct xsp_provider *self, enum xsp_probe_action action,
			      const struct xsp_symbol *function, const char *name)
{
	return (struct xsp_probe){
		.provider = self->name,
		.action = action,
		.addr = function->addr,
		.size = function->size,
		.offset = function->offset,
		.symbol = (char *)(uintptr_t)function->name,
		.name = (char *)(uintptr_t)(name != NULL ? name : function->name),
	};
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

long xsp_probe_list_add(struct xsp_probe_list *list, const struct xsp_probe *p)
{
	if (xsp_grow(&list->items, &list->room, list->count + 1) < 0)
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
