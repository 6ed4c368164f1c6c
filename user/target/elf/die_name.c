/* SPDX-License-Identifier: BSD-2-Clause */
/* die_name.c - the names of functions in debug information. */
#include "target/elf/debug_info.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64 /* scopes nested deeper are not named */
#define REFERENCES_MAX                                                                             \
	16 /* from an inlined function to its declaration; a file may lead in a circle */
#define LOOK_AT_CLOCK 256U

bool xsp_die_next(Dwarf_Die *die)
{
	const Dwarf_Off here = dwarf_dieoffset(die);

	return dwarf_siblingof(die, die) == 0 && dwarf_dieoffset(die) > here;
}

const char *xsp_die_linkage(Dwarf_Die *die)
{
	Dwarf_Attribute a;
	const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &a));

	return name != NULL
		       ? name
		       : dwarf_formstring(dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &a));
}

/* ---- scopes ---- */

/* Does a function of this language stand in scopes? */
static bool has_scopes(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Go: /* its names have them */
		return false;
	default:
		return true;
	}
}

/* `call`: the scope of an operator(). gcc gives the class of a lambda no name; its symbols count them. */
static void add_scope(Dwarf_Die *die, bool call, char *text, size_t size)
{
	const char *name = dwarf_diename(die);
	const size_t length = strlen(text);
	char lambda[48];
	int line;

	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		name = name != NULL ? name : "(anonymous namespace)";
		break;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		snprintf(lambda, sizeof(lambda), "{lambda at line %d}",
			 dwarf_decl_line(die, &line) == 0 ? line : 0);
		name = name != NULL ? name : call ? lambda : "(anonymous)";
		break;
	case DW_TAG_module:
	case DW_TAG_subprogram:
		name = name != NULL ? name : "(anonymous)";
		break;
	default:
		return;
	}
	snprintf(text + length, size - length, "%s::", name);
}

/* Moves to the last entry beside `at` that is not beyond `wanted`: offsets rise, so it alone can hold that. */
static bool go_along(Dwarf_Die *at, Dwarf_Off wanted, uint64_t end_ns)
{
	Dwarf_Die next = *at;

	for (unsigned i = 1; xsp_die_next(&next) && dwarf_dieoffset(&next) <= wanted; i++) {
		*at = next;
		if (i % LOOK_AT_CLOCK == 0 && xsp_thread_cpu_ns() >= end_ns)
			return false;
	}
	return true;
}

/* Writes "shop::detail::" for an entry there. False: there was not enough time. */
static bool scopes_of(Dwarf_Die *die, uint64_t end_ns, char *text, size_t size)
{
	const Dwarf_Off wanted = dwarf_dieoffset(die);
	const char *name = dwarf_diename(die);
	const bool call = name != NULL && strcmp(name, "operator()") == 0;
	Dwarf_Die unit, at, around;

	text[0] = '\0';
	if (end_ns == 0 || dwarf_diecu(die, &unit, NULL, NULL) == NULL || !has_scopes(&unit))
		return true;
	around = unit;
	for (int i = 0; i < DEPTH_MAX && dwarf_child(&around, &at) == 0; i++) {
		if (!go_along(&at, wanted, end_ns))
			return false;
		if (dwarf_dieoffset(&at) >= wanted)
			break;
		add_scope(&at, call, text, size);
		around = at;
	}
	return true;
}

static bool follow(Dwarf_Die *at)
{
	Dwarf_Attribute a;
	Dwarf_Die next;

	if (dwarf_formref_die(dwarf_attr(at, DW_AT_abstract_origin, &a), &next) == NULL &&
	    dwarf_formref_die(dwarf_attr(at, DW_AT_specification, &a), &next) == NULL)
		return false;
	*at = next;
	return true;
}

/* Where the function's name is written: gcc describes a member outside its class. */
static Dwarf_Die declaration_of(const Dwarf_Die *die)
{
	Dwarf_Die at = *die;

	for (int i = 0; i < REFERENCES_MAX && follow(&at); i++)
		;
	return at;
}

bool xsp_die_name(Dwarf_Die *die, uint64_t end_ns, char *text, size_t size)
{
	const char *linkage = xsp_die_linkage(die), *name = dwarf_diename(die);
	char *demangled = linkage != NULL ? xsp_code_name(linkage) : NULL;
	char scopes[1024] = "";
	bool in_time = true;

	if (linkage == NULL && name != NULL) {
		Dwarf_Die declared = declaration_of(die);
		in_time = scopes_of(&declared, end_ns, scopes, sizeof(scopes));
	}
	if (linkage != NULL)
		snprintf(text, size, "%s", demangled != NULL ? demangled : linkage);
	else
		snprintf(text, size, "%s%s", scopes, name != NULL ? name : "");
	free(demangled);
	return in_time;
}
