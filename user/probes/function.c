/* SPDX-License-Identifier: BSD-2-Clause */
/* function.c - the user's own patterns: -e 'LIBRARY:GLOB', -e GLOB, -e LIBRARY:0xADDRESS. */
#include "probes/probe.h"
#include "base/path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct search {
	const struct xsp_provider *self;
	struct xsp_module *module;
	struct xsp_probe_list *list;
};

static int add_hit(void *ctx, const struct xsp_pattern_hit *hit)
{
	struct search *s = ctx;
	char unnamed[300];
	const char *name = hit->demangled ? hit->demangled : hit->symbol->name;

	if (name[0] == '\0') {
		snprintf(unnamed, sizeof(unnamed), "%.255s+0x%" PRIx64,
			 xsp_base_name(xsp_module_display_path(s->module)), hit->symbol->addr);
		name = unnamed;
	}
	const struct xsp_probe p = xsp_probe_on(s->self, XSP_ACTION_SPAN, hit->symbol, name);
	long rc = xsp_probe_list_add(s->list, &p);
	return rc < 0 ? (int)rc : 0;
}

static bool names_library(const struct xsp_selection *selection, const char *path)
{
	for (size_t i = 0; i < selection->pattern_count; i++)
		if (!selection->patterns[i].exclude &&
		    xsp_pattern_names_library(&selection->patterns[i], path))
			return true;
	return false;
}

static int find_functions(const struct xsp_provider *self, struct xsp_module *m,
			  const struct xsp_selection *selection, struct xsp_probe_list *list,
			  struct xsp_error *err)
{
	struct search s = {.self = self, .module = m, .list = list};

	if (!names_library(selection, xsp_module_display_path(m)))
		return 0;
	return xsp_pattern_match_symbols(selection->patterns, selection->pattern_count, m, add_hit,
					 &s, NULL, err);
}

const struct xsp_provider xsp_provider_function = {
	.name = "function",
	.help = "functions that match -e 'LIBRARY:GLOB'",
	.internal = true, /* on if there are patterns */
	.find = find_functions,
};
