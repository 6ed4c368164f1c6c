/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/elf/lines.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/search.h"
#include "catalog/compilers.h"
#include "target/elf/debug_info.h"

#define RANGES_MAX 65536 /* of a unit; a file may claim endlessly many */

struct search {
	struct xsp_code_line *lines;
	size_t count;
	uint64_t end_ns;
};

/* Leaves inlined functions, as long as they come from headers of the system. */
static void go_out(Dwarf_Die *unit, uint64_t addr, const char **path, int *line)
{
	Dwarf_Die *innermost = NULL, *around = NULL;
	/* the scopes around an inlined function are where it was written */
	const int n = dwarf_getscopes(unit, addr, &innermost) > 0
			      ? dwarf_getscopes_die(&innermost[0], &around)
			      : 0;

	for (int i = 0; i < n && xsp_is_system_header(*path); i++)
		if (dwarf_tag(&around[i]) == DW_TAG_inlined_subroutine &&
		    !xsp_line_of_call(unit, &around[i], path, line))
			break;
	free(innermost);
	free(around);
}

static void find_line(Dwarf_Die *unit, struct xsp_code_line *l)
{
	Dwarf_Line *at = dwarf_getsrc_die(unit, l->addr);
	const char *path = at != NULL ? dwarf_linesrc(at, NULL, NULL) : NULL;

	if (path == NULL || dwarf_lineno(at, &l->line) != 0 || l->line <= 0)
		return;
	go_out(unit, l->addr, &path, &l->line);
	l->path = strdup(path);
}

static void look_at_unit(struct search *s, Dwarf_Die *unit)
{
	Dwarf_Addr base, begin, end;
	ptrdiff_t at = 0;

	for (int i = 0; i < RANGES_MAX && (at = dwarf_ranges(unit, at, &base, &begin, &end)) > 0;
	     i++) {
		size_t low = 0;
		XSP_LOWER_BOUND(low, s->count, k, s->lines[k].addr < begin);
		for (; low < s->count && s->lines[low].addr < end; low++)
			if (s->lines[low].path == NULL && xsp_thread_cpu_ns() < s->end_ns)
				find_line(unit, &s->lines[low]);
	}
}

static void look_at(void *ctx, Dwarf *dwarf)
{
	struct search *s = ctx;
	Dwarf_CU *unit = NULL;
	Dwarf_Half version;
	Dwarf_Die die;
	uint8_t type;

	/* without a location, libdw does not search for the split part of a unit */
	while (xsp_thread_cpu_ns() < s->end_ns &&
	       dwarf_get_units(dwarf, unit, &unit, &version, &type, &die, NULL) == 0)
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			look_at_unit(s, &die);
}

void xsp_module_lines(struct xsp_module *m, struct xsp_code_line *lines, size_t count,
		      unsigned limit_ms)
{
	struct search s = {.lines = lines,
			   .count = count,
			   .end_ns = xsp_thread_cpu_ns() + limit_ms * 1000000ULL};

	xsp_module_debug_info(m, look_at, &s);
}
