/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lines.c - goes once through the entries of each unit that has some of the addresses. An entry of
 * code takes those addresses in its ranges that the entry around it has taken, so each address ends
 * up in the innermost one, whatever ranges a file claims.
 */
#include "target/elf/lines.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/array.h"
#include "base/rows/search.h"
#include "base/rows/tally.h"
#include "catalog/compilers.h"
#include "target/elf/debug_info.h"

#define RANGES_MAX 65536 /* of an entry; a file may claim endlessly many */
#define DEPTH_MAX 128 /* entries nested deeper are not searched */
#define LOOK_AT_CLOCK 1024U

struct function {
	Dwarf_Die die;
	char *name; /* NULL: it has none, or is from a header of the system */
	bool named; /* looked for */
	uintptr_t user; /* a function that it was put into; 0: none was seen */
	bool shared; /* and it was put into another one, too */
};

/* A function at one place, inlined there unless it is the outermost. Their numbers begin at 1. */
struct instance {
	uint32_t around; /* the one around it; 0: none */
	uint32_t function; /* NO_FUNCTION: it is not inlined */
	const char *path; /* where it was called; NULL: not known */
	int line;
};
#define NO_FUNCTION UINT32_MAX
#define DONE UINT32_MAX

struct search {
	struct xsp_code_line *lines;
	size_t count;
	/* by line: the innermost instance so far; 0: none; DONE: the line is filled in */
	uint32_t *inside;
	uint64_t end_ns;
	size_t seen;
	bool late;
	Dwarf_Die *unit;
	XSP_TALLY(struct function) functions; /* by the place of their entries in memory */
	XSP_ARRAY(struct instance) instances;
};

static bool is_late(struct search *s)
{
	if (++s->seen % LOOK_AT_CLOCK == 0 && xsp_thread_cpu_ns() >= s->end_ns)
		s->late = true;
	return s->late;
}

/* Calls `fn` for each line in the ranges of an entry. */
static void each_line(struct search *s, Dwarf_Die *die,
		      void (*fn)(struct search *s, size_t i, void *ctx), void *ctx)
{
	Dwarf_Addr base, begin, end;
	ptrdiff_t at = 0;

	for (int i = 0;
	     i < RANGES_MAX && !is_late(s) && (at = dwarf_ranges(die, at, &base, &begin, &end)) > 0;
	     i++) {
		size_t low = 0;
		if (begin == 0) /* of a function that the linker has dropped */
			continue;
		XSP_LOWER_BOUND(low, s->count, k, s->lines[k].addr < begin);
		for (; low < s->count && s->lines[low].addr < end; low++)
			fn(s, low, ctx);
	}
}

/* ---- what is around each line ---- */

/* The entry that describes the function, of which others may be copies. */
static Dwarf_Die origin_of(Dwarf_Die *die)
{
	Dwarf_Attribute a;
	Dwarf_Die origin;

	return dwarf_formref_die(dwarf_attr(die, DW_AT_abstract_origin, &a), &origin) != NULL
		       ? origin
		       : *die;
}

static uint32_t function_of(struct search *s, Dwarf_Die *inlined)
{
	const Dwarf_Die origin = origin_of(inlined);
	const struct function *f = xsp_tally_row(&s->functions, (uintptr_t)origin.addr,
						 &(struct function){.die = origin});
	return f != NULL ? xsp_tally_index(&s->functions, f) : NO_FUNCTION;
}

struct claim {
	Dwarf_Die *die;
	uint32_t around, instance; /* instance 0: it has no line so far */
};

static uint32_t new_instance(struct search *s, struct claim *c)
{
	struct instance new = {.around = c->around, .function = NO_FUNCTION};

	if (c->around != 0) {
		new.function = function_of(s, c->die);
		if (!xsp_line_of_call(s->unit, c->die, &new.path, &new.line))
			new.path = NULL;
	}
	return XSP_PUT(&s->instances, new) == 0 ? (uint32_t)s->instances.count : 0;
}

static void claim_line(struct search *s, size_t i, void *ctx)
{
	struct claim *c = ctx;

	if (s->inside[i] != c->around)
		return;
	if (c->instance == 0)
		c->instance = new_instance(s, c);
	if (c->instance != 0)
		s->inside[i] = c->instance;
}

/* The instance that a function becomes there; 0: it has none of the lines. */
static uint32_t claim(struct search *s, Dwarf_Die *die, uint32_t around)
{
	struct claim c = {.die = die, .around = around};

	each_line(s, die, claim_line, &c);
	return c.instance;
}

struct level {
	Dwarf_Die die;
	/* what its entry is in, and what those in it are in: an instance, or a function's entry in memory; 0: none */
	uintptr_t around, inside;
};
/* Looks at an entry. May there be something in it? */
typedef bool enter_fn(struct search *s, struct level *l);

static bool is_scope(Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_namespace || dwarf_tag(die) == DW_TAG_module;
}

static bool is_block(Dwarf_Die *die)
{
	const int tag = dwarf_tag(die);

	return tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

static bool enter_claimed(struct search *s, struct level *l)
{
	const int tag = dwarf_tag(&l->die);

	l->inside = 0;
	if (tag == DW_TAG_subprogram)
		l->inside = claim(s, &l->die, 0);
	else if (tag == DW_TAG_inlined_subroutine && l->around != 0)
		l->inside = claim(s, &l->die, (uint32_t)l->around);
	else if (is_block(&l->die))
		l->inside = l->around;
	return l->inside != 0 || is_scope(&l->die);
}

/* Of the functions that lines are in: is each put into more than one other? */
static bool enter_used(struct search *s, struct level *l)
{
	const int tag = dwarf_tag(&l->die);
	struct function *f;

	l->inside = 0;
	if (tag == DW_TAG_subprogram &&
	    (dwarf_hasattr(&l->die, DW_AT_low_pc) || dwarf_hasattr(&l->die, DW_AT_ranges))) {
		l->inside = (uintptr_t)origin_of(&l->die).addr;
	} else if (tag == DW_TAG_inlined_subroutine && l->around != 0) {
		l->inside = (uintptr_t)origin_of(&l->die).addr;
		if ((f = xsp_tally_find(&s->functions, l->inside)) != NULL) {
			f->shared |= f->user != 0 && f->user != l->around;
			f->user = l->around;
		}
	} else if (is_block(&l->die)) {
		l->inside = l->around;
	}
	return l->inside != 0 || is_scope(&l->die);
}

static void walk(struct search *s, enter_fn *enter)
{
	struct level levels[DEPTH_MAX];
	size_t depth = 0;

	levels[0] = (struct level){.die = *s->unit};
	while (!is_late(s)) {
		struct level *l = &levels[depth];
		if (depth + 1 < DEPTH_MAX && (depth == 0 || enter(s, l)) &&
		    dwarf_child(&l->die, &l[1].die) == 0) {
			l[1].around = l->inside;
			depth++;
			continue;
		}
		while (depth > 0 && !xsp_die_next(&levels[depth].die))
			depth--;
		if (depth == 0)
			return;
	}
}

/* For half of the time that is left: what is around each line counts more. */
static void count_users(struct search *s)
{
	const uint64_t end_ns = s->end_ns, now_ns = xsp_thread_cpu_ns();

	if (s->late || now_ns >= end_ns)
		return;
	s->end_ns = now_ns + (end_ns - now_ns) / 2;
	walk(s, enter_used);
	s->end_ns = end_ns;
	s->late = false;
}

/* ---- what is said of each line ---- */

/* A path without a root is below the folder in which its unit was compiled. */
static bool is_of_system(Dwarf_Die *unit, const char *path)
{
	Dwarf_Attribute a;
	const char *folder =
		path[0] != '/' ? dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &a)) : NULL;

	return xsp_is_system_header(path) || (folder != NULL && xsp_is_system_header(folder));
}

/* Leaves inlined functions, as long as they come from headers of the system. */
static void find_line(const struct search *s, struct xsp_code_line *l, uint32_t inside)
{
	Dwarf_Line *at = dwarf_getsrc_die(s->unit, l->addr);
	const char *path = at != NULL ? dwarf_linesrc(at, NULL, NULL) : NULL;

	if (path == NULL || dwarf_lineno(at, &l->line) != 0 || l->line <= 0)
		return;
	while (inside != 0 && is_of_system(s->unit, path)) {
		const struct instance *n = &s->instances.rows[inside - 1];
		if (n->path == NULL)
			break;
		path = n->path;
		l->line = n->line;
		inside = n->around;
	}
	l->path = is_of_system(s->unit, path) ? NULL : strdup(path);
}

static const char *name_of(struct search *s, struct function *f)
{
	char text[XSP_INLINED_NAME + 1];
	Dwarf_Die unit;

	if (f->named)
		return f->name;
	f->named = true;
	const char *path = dwarf_decl_file(&f->die);
	if (path != NULL && dwarf_diecu(&f->die, &unit, NULL, NULL) != NULL &&
	    is_of_system(&unit, path))
		return NULL;
	if (!xsp_die_name(&f->die, s->end_ns, text, sizeof(text)))
		s->late = true;
	for (char *p = text; (p = strchr(p, '\n')) != NULL;)
		*p = '?';
	f->name = text[0] != '\0' ? strdup(text) : NULL;
	return f->name;
}

static void find_inlined(struct search *s, struct xsp_code_line *l, uint32_t inside)
{
	const char *names[XSP_INLINED_MOST];
	size_t count = 0, size = 1, used = 0;

	for (const struct instance *n; inside != 0 && count < XSP_INLINED_MOST;
	     inside = n->around) {
		n = &s->instances.rows[inside - 1];
		struct function *f =
			n->function != NO_FUNCTION ? &s->functions.rows[n->function] : NULL;
		if (f == NULL || name_of(s, f) == NULL)
			continue;
		if (f->shared && l->helpers == count)
			l->helpers++;
		names[count++] = f->name;
		size += strlen(f->name) + 1;
	}
	l->inlined = count > 0 ? malloc(size) : NULL;
	if (l->inlined == NULL)
		l->helpers = 0;
	while (l->inlined != NULL && count > 0)
		used += (size_t)snprintf(l->inlined + used, size - used, "%s\n", names[--count]);
}

static void fill_in(struct search *s, size_t i, void *ctx)
{
	struct xsp_code_line *l = &s->lines[i];

	(void)ctx;
	s->late |= xsp_thread_cpu_ns() >= s->end_ns; /* names may take long */
	if (s->inside[i] == DONE || s->late)
		return;
	find_line(s, l, s->inside[i]);
	find_inlined(s, l, s->inside[i]);
	if (!s->late) {
		s->inside[i] = DONE;
		return;
	}
	free(l->inlined);
	l->inlined = NULL;
	l->helpers = 0;
}

static void count_line(struct search *s, size_t i, void *ctx)
{
	*(size_t *)ctx += s->inside[i] != DONE;
}

static void look_at_unit(struct search *s, Dwarf_Die *unit)
{
	const size_t known = s->functions.count;
	size_t count = 0;

	s->unit = unit;
	each_line(s, unit, count_line, &count);
	if (count == 0)
		return;
	walk(s, enter_claimed);
	if (s->functions.count > known)
		count_users(s);
	each_line(s, unit, fill_in, NULL);
}

static void look_at(void *ctx, Dwarf *dwarf)
{
	struct search *s = ctx;
	Dwarf_CU *unit = NULL;
	Dwarf_Half version;
	Dwarf_Die die;
	uint8_t type;

	/* without a location, libdw does not search for the split part of a unit */
	while (!is_late(s) && dwarf_get_units(dwarf, unit, &unit, &version, &type, &die, NULL) == 0)
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			look_at_unit(s, &die);
}

int xsp_module_lines(struct xsp_module *m, struct xsp_code_line *lines, size_t count,
		     unsigned limit_ms)
{
	struct search s = {.lines = lines,
			   .count = count,
			   .inside = calloc(count + 1, sizeof(*s.inside)),
			   .end_ns = xsp_thread_cpu_ns() + limit_ms * 1000000ULL};
	int rc = s.inside != NULL ? xsp_module_debug_info(m, look_at, &s) : -ENOMEM;

	for (size_t i = 0; i < count && rc == 0; i++)
		lines[i].missed = s.late && s.inside[i] != DONE;
	for (size_t i = 0; i < s.functions.count; i++)
		free(s.functions.rows[i].name);
	xsp_tally_free(&s.functions);
	XSP_FREE(&s.instances);
	free(s.inside);
	return rc;
}
