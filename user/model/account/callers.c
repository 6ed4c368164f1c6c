/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * callers.c - who calls a place. A helper that all of a program goes through says little; its callers are where something can be
 * changed. Shares are of what was seen: samples stand for their periods, and waits for themselves.
 */
#include "model/account/account_private.h"

#include <errno.h>
#include <string.h>

#include "base/rows/search.h"
#include "base/text.h"
#include "timeline/python.h"

#define ALONE 0.9 /* so much of a place's time comes from one caller: its own callers say more */
#define CALLER_LEAST 0.1

size_t xsp_account_name_length(const char *name)
{
	const char *inner = strstr(name, ".<locals>.<");

	return inner != NULL ? (size_t)(inner - name) : strlen(name);
}

uint64_t account_function(const struct xsp_account *a, uint32_t name)
{
	const char *text = xsp_timeline_name(a->timeline, name), *function;
	size_t file;

	if (!xsp_python_line_split(text, &file, &function))
		return xsp_text_hash(text, strlen(text));
	return xsp_u64_mix(xsp_text_hash(text, file)) ^
	       xsp_text_hash(function, xsp_account_name_length(function));
}

/* "std::_Function_handler<..., run()::{lambda(int)#1}>::_M_invoke" around "run::{lambda at line 4}::operator()" is the library's. */
static bool is_around_lambda(const struct xsp_account *a, uint32_t name, uint32_t inner)
{
	static const char *const libraries[] = {"std::", "void std::", "bool std::"};

	return XSP_BEGINS_WITH_ANY(xsp_timeline_name(a->timeline, name), libraries) &&
	       strstr(xsp_timeline_name(a->timeline, inner), "{lambda") != NULL;
}

int account_count_callers(struct xsp_account *a, const struct account_thread *th, uint32_t place,
			  const struct xsp_own_callers *callers, uint64_t ns)
{
	struct account_chain c = {.thread = xsp_tally_index(&a->threads, th), .names = {place}};
	uint64_t key = xsp_u64_pair(c.thread, place);
	size_t n = 0;

	if (place == 0)
		return 0;
	c.functions[0] = account_function(a, place - 1);
	for (uint32_t i = 0; i < callers->count && n < ACCOUNT_LEVELS; i++) {
		const uint64_t function = account_function(a, callers->names[i]);
		if (function == c.functions[n] ||
		    is_around_lambda(a, callers->names[i], c.names[n] - 1))
			continue;
		c.names[++n] = callers->names[i] + 1;
		c.functions[n] = function;
		key = xsp_u64_mix(key) ^ c.names[n];
	}
	struct account_chain *known = xsp_tally_row(&a->chains, xsp_u64_mix(key), &c);
	if (known != NULL)
		known->ns += ns;
	return known != NULL ? 0 : a->chains.tally.error;
}

/* ---- of a family's places ---- */

static XSP_ORDER(by_place, struct account_chain,
		 XSP_RISING(functions[0]) ?: XSP_RISING(functions[1]) ?: XSP_RISING(functions[2])
			 ?: XSP_RISING(functions[3]) ?: XSP_RISING(names[1])
			 ?: XSP_RISING(names[2]) ?: XSP_RISING(names[3]));

/* The chains that have the same function at a level, all of which follow each other. */
struct group {
	const struct account_chain *first;
	size_t count;
	uint32_t name; /* of its line with most time */
	uint64_t ns;
};

static struct group group_at(const struct account_chain *c, size_t count, size_t level)
{
	struct group g = {.first = c};
	uint64_t most = 0, line = 0;

	for (; g.count < count && c[g.count].functions[level] == c->functions[level]; g.count++) {
		const struct account_chain *one = &c[g.count];
		line = g.count > 0 && one->names[level] == one[-1].names[level] ? line + one->ns
										: one->ns;
		if (line >= most) {
			most = line;
			g.name = one->names[level];
		}
		g.ns += one->ns;
	}
	return g;
}

static XSP_ORDER(groups_by_ns, struct group, XSP_FALLING(ns) ?: XSP_RISING(name));

/* The largest groups of these chains at that level: how many there are of them in `out`; *all_ns: of all. */
static size_t largest_groups(const struct account_chain *c, size_t count, size_t level,
			     struct group out[XSP_ACCOUNT_CALLERS], uint64_t *all_ns)
{
	size_t n = 0;

	*all_ns = 0;
	for (size_t i = 0; i < count;) {
		const struct group g = group_at(c + i, count - i, level);
		*all_ns += g.ns;
		i += g.count;
		XSP_RANK(out, &n, XSP_ACCOUNT_CALLERS, &g, groups_by_ns);
	}
	return n;
}

static void add_caller(struct xsp_account_place *p, size_t level, const struct group *g,
		       uint64_t all_ns)
{
	if (p->caller_count < XSP_ACCOUNT_CALLERS && g->name != 0)
		p->callers[p->caller_count++] =
			(struct xsp_account_caller){.name = g->name,
						    .level = (uint32_t)level,
						    .share = (double)g->ns / (double)all_ns};
}

/* Follows the calls outwards for as long as there is one caller, and ends with the several that share it. */
static void put_callers(const struct account_chain *c, size_t count, struct xsp_account_place *p)
{
	struct group g[XSP_ACCOUNT_CALLERS];
	uint64_t all_ns;

	for (size_t level = 1; level <= ACCOUNT_LEVELS; level++) {
		const size_t n = largest_groups(c, count, level, g, &all_ns);
		const bool alone = n > 0 && (double)g[0].ns >= ALONE * (double)all_ns;
		for (size_t i = 0; i < (alone ? 1 : n); i++)
			if ((double)g[i].ns >= CALLER_LEAST * (double)all_ns && all_ns > 0)
				add_caller(p, level, &g[i], all_ns);
		if (!alone || g[0].name == 0)
			return;
		c = g[0].first;
		count = g[0].count;
	}
}

int account_find_callers(const struct xsp_account *a, struct account_family *f, uint32_t index)
{
	XSP_ARRAY(struct account_chain) all = {0};
	int rc = 0;

	for (size_t i = 0; i < a->chains.count && rc == 0; i++) {
		const struct account_chain *c = &a->chains.rows[i];
		const struct account_thread *th = &a->threads.rows[c->thread];
		if (th->family == index && !th->idle)
			rc = XSP_PUT(&all, *c);
	}
	XSP_SORT(all.rows, all.count, by_place);
	for (size_t i = 0; i < f->places.count && rc == 0; i++) {
		struct xsp_account_place *p = &f->places.rows[i];
		const uint64_t function = p->name != 0 ? account_function(a, p->name - 1) : 0;
		size_t first = 0;
		XSP_LOWER_BOUND(first, all.count, k, all.rows[k].functions[0] < function);
		const struct group g = group_at(all.rows + first, all.count - first, 0);
		if (p->name != 0 && g.count > 0 && g.first->functions[0] == function)
			put_callers(g.first, g.count, p);
	}
	XSP_FREE(&all);
	return rc;
}
