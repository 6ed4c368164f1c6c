/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/elf/inlined.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/path.h"
#include "base/rows/order.h"
#include "target/elf/debug_info.h"
#include "target/module_private.h"

#define DEPTH_MAX 64 /* entries nested deeper are not searched */
#define LOOK_AT_CLOCK 1024U

struct search {
	const struct xsp_pattern *pattern;
	struct xsp_inlined *out;
	uint64_t end_ns;
	size_t seen;
	Dwarf_Off *named; /* the entries of functions that the pattern names; ascending */
	size_t count, room;
	char scope[1024]; /* the scope of the current entry, as "shop::detail::" */
};

static bool out_of_time(struct search *s)
{
	if (++s->seen % LOOK_AT_CLOCK == 0 && xsp_thread_cpu_ns() > s->end_ns)
		s->out->partial = true;
	return s->out->partial;
}

/* ---- names ---- */

static XSP_ORDER(by_offset, Dwarf_Off, XSP_COMPARE(*x, *y));

/* Does this attribute refer to an entry that the pattern names? */
static bool leads_to_named(const struct search *s, Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute a;
	Dwarf_Die other;

	if (dwarf_formref_die(dwarf_attr(die, attribute, &a), &other) == NULL)
		return false;
	Dwarf_Off at = dwarf_dieoffset(&other);
	return s->count > 0 && bsearch(&at, s->named, s->count, sizeof(at), by_offset) != NULL;
}

/* gcc describes an inlined function outside its scope, with a reference to its declaration
 * inside. */
static bool is_named(const struct search *s, Dwarf_Die *die)
{
	const char *linkage = xsp_die_linkage(die), *name = dwarf_diename(die);
	char full[sizeof(s->scope) + 512];

	if (linkage != NULL)
		return xsp_pattern_matches_name(s->pattern, linkage);
	if (dwarf_hasattr(die, DW_AT_specification))
		return leads_to_named(s, die, DW_AT_specification);
	if (dwarf_hasattr(die, DW_AT_abstract_origin))
		return leads_to_named(s, die, DW_AT_abstract_origin);
	if (name == NULL)
		return false;
	snprintf(full, sizeof(full), "%s%.500s", s->scope, name);
	return xsp_glob_match(s->pattern->glob, full);
}

/* ---- the tree ---- */

enum level_kind { LEVEL_SKIPPED, LEVEL_SCOPE, LEVEL_CODE };

static enum level_kind kind_of(int tag)
{
	switch (tag) {
	case DW_TAG_compile_unit:
	case DW_TAG_partial_unit:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return LEVEL_SCOPE;
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return LEVEL_CODE;
	default:
		return LEVEL_SKIPPED;
	}
}

struct level {
	Dwarf_Die die;
	size_t scope; /* the length of search.scope outside this level */
};

static void enter_scope(struct search *s, struct level *l)
{
	int tag = dwarf_tag(&l->die);
	const char *name = dwarf_diename(&l->die);

	if (tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit)
		return;
	snprintf(s->scope + l->scope, sizeof(s->scope) - l->scope,
		 "%s::", name != NULL ? name : "(anonymous namespace)");
}

typedef void visit_fn(struct search *s, struct level *levels, size_t depth);

/* Calls visit for every entry of a unit that may have children, down to code or into it. */
static void walk(struct search *s, Dwarf_Die *unit, bool into_code, visit_fn *visit)
{
	struct level levels[DEPTH_MAX];
	size_t depth = 0;

	levels[0] = (struct level){.die = *unit};
	while (!out_of_time(s)) {
		struct level *l = &levels[depth];
		enum level_kind kind = kind_of(dwarf_tag(&l->die));
		s->scope[l->scope] = '\0';
		if (kind == LEVEL_CODE)
			visit(s, levels, depth);
		if ((kind == LEVEL_SCOPE || (kind == LEVEL_CODE && into_code)) &&
		    depth + 1 < DEPTH_MAX && dwarf_child(&l->die, &l[1].die) == 0) {
			if (kind == LEVEL_SCOPE)
				enter_scope(s, l);
			l[1].scope = strlen(s->scope);
			depth++;
			continue;
		}
		while (depth > 0 && !xsp_die_next(&levels[depth].die))
			depth--;
		if (depth == 0)
			return;
	}
}

static void walk_all(struct search *s, Dwarf *dwarf, bool into_code, visit_fn *visit)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Half version;
	Dwarf_Die die;
	uint8_t type;

	/* without a location, libdw does not search for the split part of a unit */
	while (!s->out->partial &&
	       dwarf_get_units(dwarf, unit, &unit, &version, &type, &die, NULL) == 0)
		if ((type == DW_UT_compile || type == DW_UT_partial) &&
		    !dwarf_hasattr(&die, DW_AT_GNU_dwo_name))
			walk(s, &die, into_code, visit);
}

/* ---- what is searched for ---- */

static void collect_named(struct search *s, struct level *levels, size_t depth)
{
	Dwarf_Die *die = &levels[depth].die;

	if (dwarf_tag(die) == DW_TAG_subprogram && is_named(s, die) &&
	    xsp_grow(&s->named, &s->room, s->count + 1) == 0)
		s->named[s->count++] = dwarf_dieoffset(die);
}

static void add_caller(struct search *s, const struct level *levels, Dwarf_Die *call,
		       Dwarf_Die *function)
{
	struct xsp_inlined *o = s->out;
	Dwarf_Die unit = levels[0].die;
	const char *path;
	char name[sizeof(o->callers[0].name)];

	xsp_die_name(function, 0, name, sizeof(name));
	for (size_t i = 0; name[0] != '\0' && i < XSP_INLINED_CALLERS; i++) {
		if (strcmp(o->callers[i].name, name) == 0)
			return;
		if (o->callers[i].name[0] != '\0')
			continue;
		memcpy(o->callers[i].name, name, sizeof(name));
		if (xsp_line_of_call(&unit, call, &path, &o->callers[i].line))
			snprintf(o->callers[i].file, sizeof(o->callers[i].file), "%s",
				 xsp_base_name(path));
		return;
	}
}

static void count_place(struct search *s, struct level *levels, size_t depth)
{
	Dwarf_Die *die = &levels[depth].die, *function = NULL;
	struct xsp_inlined *o = s->out;
	char name[sizeof(o->name)];

	if (dwarf_tag(die) != DW_TAG_inlined_subroutine ||
	    !leads_to_named(s, die, DW_AT_abstract_origin))
		return;
	for (size_t i = depth; i > 0 && function == NULL; i--)
		if (dwarf_tag(&levels[i - 1].die) == DW_TAG_subprogram)
			function = &levels[i - 1].die;
	/* in the description of an inlined function: it is seen again at the place where that
	 * went */
	if (function == NULL ||
	    (!dwarf_hasattr(function, DW_AT_low_pc) && !dwarf_hasattr(function, DW_AT_ranges)))
		return;
	xsp_die_name(die, 0, name, sizeof(name));
	if (o->places++ == 0)
		memcpy(o->name, name, sizeof(name));
	else if (strcmp(o->name, name) != 0)
		o->others = true;
	add_caller(s, levels, die, function);
}

static void look_at(void *ctx, Dwarf *dwarf)
{
	struct search *s = ctx;

	walk_all(s, dwarf, false, collect_named);
	if (s->count > 0)
		walk_all(s, dwarf, true, count_place);
}

void xsp_module_inlined(struct xsp_module *m, const struct xsp_pattern *p, unsigned limit_ms,
			struct xsp_inlined *out)
{
	struct search s = {
		.pattern = p, .out = out, .end_ns = xsp_thread_cpu_ns() + limit_ms * 1000000ULL};

	memset(out, 0, sizeof(*out));
	if (p->glob == NULL || !xsp_pattern_names_library(p, m->display_path))
		return;
	xsp_module_debug_info(m, look_at, &s);
	free(s.named);
}
