/* SPDX-License-Identifier: BSD-2-Clause */
/* function.c - the user's own patterns: -e 'LIBRARY:GLOB', -e GLOB, -e LIBRARY:0xADDRESS. */
#include "probes/ifunc.h"
#include "base/text.h"
#include "probes/probe.h"
#include "base/path.h"
#include "base/rows/grow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct search {
	const struct xsp_provider *self;
	struct xsp_module *module;
	struct xsp_probe_list *list;
	struct xsp_symbol *ifuncs; /* that the patterns name */
	size_t ifunc_count, ifunc_room;
};

static int add(struct search *s, const struct xsp_symbol *function, const char *name)
{
	const struct xsp_probe p = xsp_probe_on(s->self, XSP_ACTION_SPAN, function, name);
	long rc = xsp_probe_list_add(s->list, &p);

	return rc < 0 ? (int)rc : 0;
}

static int add_hit(void *ctx, const struct xsp_pattern_hit *hit)
{
	struct search *s = ctx;
	char unnamed[300];
	const char *name = hit->demangled ? hit->demangled : hit->symbol->name;

	if (hit->symbol->ifunc)
		return XSP_APPEND(s->ifuncs, s->ifunc_room, s->ifunc_count, *hit->symbol);
	if (name[0] == '\0') {
		snprintf(unnamed, sizeof(unnamed), "%.255s+0x%" PRIx64,
			 xsp_base_name(xsp_module_display_path(s->module)), hit->symbol->addr);
		name = unnamed;
	}
	return add(s, hit->symbol, name);
}

/* ---- IFUNCs ---- */

static bool have_one_in_common(const struct xsp_choices *a, const struct xsp_choices *b)
{
	for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
		if (a->list[i].addr == b->list[j].addr)
			return true;
		*(a->list[i].addr < b->list[j].addr ? &i : &j) += 1;
	}
	return false;
}

/* Names other IFUNCs that may choose the same functions, whose calls are then counted as well. */
static void name_sharers(struct xsp_module *m, const struct xsp_symbol *of,
			 const struct xsp_choices *choices, char *text, size_t size)
{
	const struct xsp_symbol *symbols;
	struct xsp_choices others;
	size_t count;

	text[0] = '\0';
	if (xsp_module_all_symbols(m, &symbols, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		if (!symbols[i].ifunc || symbols[i].addr == of->addr ||
		    strcmp(symbols[i].name, of->name) == 0 ||
		    strncmp(symbols[i].name, "__", 2) == 0)
			continue;
		xsp_ifunc_choices(m, &symbols[i], &others);
		if (have_one_in_common(choices, &others))
			xsp_join(text, size, ", ", "%.30s", symbols[i].name);
	}
}

static void note_ifunc(struct search *s, const struct xsp_symbol *ifunc,
		       const struct xsp_choices *choices)
{
	char sharers[70] = "", *note = s->list->note;
	const size_t size = sizeof(s->list->note);

	if (note[0] != '\0')
		return;
	if (!choices->elsewhere)
		name_sharers(s->module, ifunc, choices, sharers, sizeof(sharers));
	if ((sharers[0] == '\0' && !choices->elsewhere))
		return;
	snprintf(note, size, "%.30s is an IFUNC: %s%.60s%s", ifunc->name,
		 choices->elsewhere ? "it may be the kernel's (vDSO), where no probe can be"
				    : "the functions that it chooses from are also those of ",
		 choices->elsewhere ? "" : sharers,
		 choices->elsewhere ? "" : ", whose calls are counted as well");
}

/* Whatever a process chooses is among them, and nobody calls the others. */
static int add_choices(struct search *s)
{
	struct xsp_choices choices;
	int rc = 0;

	for (size_t i = 0; i < s->ifunc_count && rc == 0; i++) {
		const char *name = s->ifuncs[i].name;
		char *demangled = xsp_demangle(name, false);
		xsp_ifunc_choices(s->module, &s->ifuncs[i], &choices);
		for (size_t j = 0; j < choices.count && rc == 0; j++) {
			struct xsp_symbol function = choices.list[j];
			function.name = name;
			rc = add(s, &function, demangled != NULL ? demangled : name);
		}
		free(demangled);
		if (choices.count > 0)
			note_ifunc(s, &s->ifuncs[i], &choices);
	}
	return rc;
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
	int rc = xsp_pattern_match_symbols(selection->patterns, selection->pattern_count, m,
					   add_hit, &s, NULL, err);
	if (rc == 0)
		rc = add_choices(&s);
	free(s.ifuncs);
	return rc;
}

const struct xsp_provider xsp_provider_function = {
	.name = "function",
	.help = "functions that match -e 'LIBRARY:GLOB'",
	.internal = true, /* on if there are patterns */
	.find = find_functions,
};
