/* SPDX-License-Identifier: BSD-2-Clause */
/* match.c - which functions of a module the patterns name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/search.h"
#include "target/patterns/glob.h"

/* The names of a symbol. The demangled ones are made when they are first needed, once for all
 * patterns. */
struct names {
	const char *mangled;
	char *bare, *full; /* without and with parameters */
	bool tried_bare, tried_full;
	/* whose versions are asked for; NULL: any version will do */
	struct xsp_module *module;
	const struct xsp_symbol *symbol;
};

static void clear_names(struct names *n)
{
	free(n->bare);
	free(n->full);
}

static const char *bare(struct names *n)
{
	if (!n->tried_bare) {
		n->tried_bare = true;
		n->bare = xsp_demangle(n->mangled, false);
	}
	return n->bare;
}

static const char *full(struct names *n)
{
	if (!n->tried_full) {
		n->tried_full = true;
		n->full = xsp_demangle(n->mangled, true);
	}
	return n->full;
}

/* The cold part of a function is reached by a jump from the middle of it. */
static bool is_cold_part(const char *name)
{
	const char *cold = strstr(name, ".cold");

	return cold != NULL && (cold[5] == '\0' || cold[5] == '.');
}

static bool has_version(const struct xsp_pattern *p, const struct names *n)
{
	if (p->version == NULL || n->module == NULL)
		return true;
	const char *version = xsp_module_version(n->module, n->symbol);
	return version != NULL && xsp_glob_match(p->version, version);
}

static bool matches_name(const struct xsp_pattern *p, struct names *n)
{
	const char *glob = xsp_pattern_name(p);

	if (glob == NULL)
		return false;
	if (is_cold_part(n->mangled) && strstr(glob, ".cold") == NULL)
		return false;
	if (xsp_glob_match(glob, n->mangled))
		return true;
	if (n->mangled[0] != '_' || (n->mangled[1] != 'Z' && n->mangled[1] != 'R'))
		return false;
	for (size_t i = 0; i < p->piece_count; i++) {
		if (strstr(n->mangled, p->pieces[i]) == NULL)
			return false;
	}
	return (bare(n) != NULL && xsp_glob_match(glob, bare(n))) ||
	       (full(n) != NULL && xsp_glob_match(glob, full(n)));
}

static bool matches(const struct xsp_pattern *p, struct names *n)
{
	return matches_name(p, n) && has_version(p, n);
}

bool xsp_pattern_matches_name(const struct xsp_pattern *p, const char *symbol)
{
	struct names n = {.mangled = symbol};
	bool hit = matches(p, &n);

	clear_names(&n);
	return hit;
}

struct search {
	const struct xsp_pattern *patterns;
	size_t *active; /* indices of the patterns that name this module */
	size_t active_count;
	size_t includes;
	struct xsp_module *module;
	int (*found)(void *ctx, const struct xsp_pattern_hit *hit);
	void *ctx;
	struct xsp_pattern_counts counts;
};

static int start(struct search *s, const struct xsp_pattern *patterns, size_t count)
{
	s->patterns = patterns;
	s->active = reallocarray(NULL, count + 1, sizeof(*s->active));
	if (s->active == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (!xsp_pattern_names_library(&patterns[i], xsp_module_display_path(s->module)))
			continue;
		s->active[s->active_count++] = i;
		s->includes += !patterns[i].exclude;
	}
	return 0;
}

static struct names names_of(const struct search *s, const struct xsp_symbol *symbol)
{
	return (struct names){.mangled = symbol->name, .module = s->module, .symbol = symbol};
}

/* Is there a pattern of this kind for exactly that address? */
static bool has_address(const struct search *s, uint64_t addr, bool exclude)
{
	for (size_t i = 0; i < s->active_count; i++) {
		const struct xsp_pattern *p = &s->patterns[s->active[i]];
		if (p->glob == NULL && p->exclude == exclude && p->address == addr)
			return true;
	}
	return false;
}

static int report(struct search *s, const struct xsp_symbol *symbol, struct names *n,
		  size_t pattern)
{
	*(symbol->ifunc ? &s->counts.ifuncs : &s->counts.found) += 1;
	return s->found(s->ctx, &(struct xsp_pattern_hit){
					.symbol = symbol,
					.demangled = symbol->name[0] != '\0' ? bare(n) : NULL,
					.pattern = pattern,
				});
}

/* The symbol at an address that the user gave, or one without a name. */
static struct xsp_symbol symbol_at(struct search *s, uint64_t addr,
				   const struct xsp_symbol *symbols, size_t count)
{
	struct xsp_symbol out = {.addr = addr, .name = ""};
	struct xsp_code_range range;
	size_t low = 0;

	XSP_LOWER_BOUND(low, count, i, symbols[i].addr < addr);
	if (low < count && symbols[low].addr == addr)
		return symbols[low];
	xsp_module_addr_to_offset(s->module, addr, &out.offset);
	if (xsp_module_code_range(s->module, addr, &range) == 0)
		out.size = range.size - (addr - range.addr);
	return out;
}

static int search_addresses(struct search *s, const struct xsp_symbol *symbols, size_t count)
{
	int ret = 0;

	for (size_t i = 0; i < s->active_count && ret == 0; i++) {
		const struct xsp_pattern *p = &s->patterns[s->active[i]];
		uint64_t offset;
		bool twice = false;
		if (p->glob != NULL || p->exclude || !xsp_module_is_code(s->module, p->address) ||
		    xsp_module_addr_to_offset(s->module, p->address, &offset) < 0)
			continue;
		for (size_t j = 0; j < i; j++) {
			const struct xsp_pattern *q = &s->patterns[s->active[j]];
			twice = twice ||
				(q->glob == NULL && !q->exclude && q->address == p->address);
		}
		if (twice)
			continue;
		struct xsp_symbol symbol = symbol_at(s, p->address, symbols, count);
		symbol.ifunc = false; /* it is meant itself */
		struct names n = {.mangled = symbol.name};
		if (has_address(s, p->address, true))
			s->counts.excluded++;
		else
			ret = report(s, &symbol, &n, s->active[i]);
		clear_names(&n);
	}
	return ret;
}

/* The first pattern of that kind that matches; SIZE_MAX if none. */
static size_t first_match(const struct search *s, struct names *n, bool exclude)
{
	for (size_t i = 0; i < s->active_count; i++) {
		const struct xsp_pattern *p = &s->patterns[s->active[i]];
		if (p->exclude == exclude && matches(p, n))
			return s->active[i];
	}
	return SIZE_MAX;
}

static bool is_excluded(const struct search *s, const struct xsp_symbol *aliases, size_t count)
{
	if (s->includes == s->active_count)
		return false;
	bool hit = has_address(s, aliases[0].addr, true);
	for (size_t i = 0; i < count && !hit; i++) {
		struct names n = names_of(s, &aliases[i]);
		hit = first_match(s, &n, true) != SIZE_MAX;
		clear_names(&n);
	}
	return hit;
}

/* All the names of one address; that of a function rather than that of an IFUNC. */
static int search_group(struct search *s, const struct xsp_symbol *aliases, size_t count)
{
	size_t pattern = SIZE_MAX, other, at = 0;
	int ret = 0;

	for (size_t i = 0; i < count && (pattern == SIZE_MAX || aliases[at].ifunc); i++) {
		struct names n = names_of(s, &aliases[i]);
		if ((other = first_match(s, &n, false)) != SIZE_MAX &&
		    (pattern == SIZE_MAX || !aliases[i].ifunc)) {
			pattern = other;
			at = i;
		}
		clear_names(&n);
	}
	if (pattern == SIZE_MAX || has_address(s, aliases[at].addr, false))
		return 0; /* or it is already reported as an address */
	if (is_excluded(s, aliases, count)) {
		s->counts.excluded++;
		return 0;
	}
	struct names n = names_of(s, &aliases[at]);
	ret = report(s, &aliases[at], &n, pattern);
	clear_names(&n);
	return ret;
}

static int search_names(struct search *s, const struct xsp_symbol *symbols, size_t count)
{
	int ret = 0;

	for (size_t i = 0, j; i < count && ret == 0; i = j) {
		for (j = i + 1; j < count && symbols[j].addr == symbols[i].addr; j++)
			;
		ret = search_group(s, symbols + i, j - i);
	}
	return ret;
}

/* Labels without a type are in no list: most are inside of functions. */
static int search_labels(struct search *s)
{
	struct xsp_symbol label;
	int ret = 0;

	for (size_t i = 0; i < s->active_count && ret == 0; i++) {
		const struct xsp_pattern *p = &s->patterns[s->active[i]];
		if (p->exclude || p->glob == NULL || strpbrk(p->glob, "*?[\\") != NULL ||
		    xsp_module_label(s->module, xsp_pattern_name(p), &label) < 0 ||
		    has_address(s, label.addr, false))
			continue;
		struct names n = names_of(s, &label);
		if (is_excluded(s, &label, 1))
			s->counts.excluded++;
		else
			ret = report(s, &label, &n, s->active[i]);
		clear_names(&n);
	}
	return ret;
}

int xsp_pattern_match_symbols(const struct xsp_pattern *patterns, size_t count,
			      struct xsp_module *m,
			      int (*found)(void *ctx, const struct xsp_pattern_hit *hit), void *ctx,
			      struct xsp_pattern_counts *counts, struct xsp_error *err)
{
	struct search s = {.module = m, .found = found, .ctx = ctx};
	const struct xsp_symbol *symbols = NULL;
	size_t symbol_count = 0;

	int ret = start(&s, patterns, count);
	if (ret < 0)
		xsp_error_set(err, ret, XSP_STATUS_FAILED, "out of memory");
	/* no pattern names most libraries of a process: then their symbols are not even read */
	if (ret == 0 && s.includes > 0) {
		ret = xsp_module_all_symbols(m, &symbols, &symbol_count, err);
		if (ret == 0)
			ret = search_addresses(&s, symbols, symbol_count);
		if (ret == 0)
			ret = search_names(&s, symbols, symbol_count);
		if (ret == 0)
			ret = search_labels(&s);
	}
	free(s.active);
	if (counts != NULL)
		*counts = s.counts;
	return ret;
}
