/* SPDX-License-Identifier: BSD-2-Clause */
/* resolve_compiled.c - names for code that no file holds: by perf maps, or by what it is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rows/grow.h"
#include "catalog/compilers.h"
#include "target/resolve_private.h"

/* Such code may appear at any time. Each look reads /proc/PID/maps, which takes milliseconds for a
 * process with thousands of mappings. */
#define GENERATED_NS 20000000ULL
#define MAP_FIRST_NS 1000000000ULL /* the most time for its first read */
#define MAP_AGAIN_NS 2000000ULL /* the same for reads that look for an address */

int xsp_resolver_look(struct xsp_seen_maps *s, const struct xsp_opener *o, pid_t pid)
{
	s->pid = pid;
	s->time_ns = xsp_now_ns();
	return xsp_maps_read(o, pid, false, &s->maps) == -ENOMEM ? -ENOMEM : 0;
}

static struct xsp_named_code *named_code(const struct xsp_resolver *r, pid_t pid)
{
	for (size_t i = r->named_count; i > 0; i--)
		if (xsp_perf_map_pid(r->named[i - 1].map) == pid)
			return &r->named[i - 1];
	return NULL;
}

static void read_map(struct xsp_named_code *n, uint64_t for_ns)
{
	n->time_ns = xsp_now_ns();
	xsp_perf_map_read(n->map, n->time_ns + for_ns);
}

/* The map that is known longest makes room, if its process has none: most have none. */
static bool make_room(struct xsp_resolver *r)
{
	for (size_t i = 0; i < r->named_count; i++) {
		struct xsp_named_code *n = &r->named[i];
		if (n->wanted || xsp_perf_map_is_open(n->map))
			continue;
		xsp_perf_map_free(n->map);
		memmove(n, n + 1, (--r->named_count - i) * sizeof(*n));
		return true;
	}
	return false;
}

int xsp_resolver_learn_map(struct xsp_resolver *r, pid_t pid)
{
	if (named_code(r, pid) != NULL)
		return 0;
	if (r->named_count == XSP_RESOLVER_MAPS && !make_room(r)) {
		r->left_processes = true;
		return 0;
	}
	if (xsp_grow(&r->named, &r->named_room, r->named_count + 1) < 0)
		return -ENOMEM;
	struct xsp_named_code *n = &r->named[r->named_count];
	*n = (struct xsp_named_code){0};
	n->map = xsp_perf_map_new(r->opener, pid, &r->named_left);
	if (n->map == NULL)
		return -ENOMEM;
	r->named_count++;
	read_map(n, MAP_FIRST_NS);
	return 0;
}

size_t xsp_resolver_read_maps(struct xsp_resolver *r, uint64_t until_ns)
{
	size_t names = 0;

	for (size_t i = 0; i < r->named_count; i++) {
		if (r->named[i].wanted)
			xsp_perf_map_read(r->named[i].map, until_ns);
		names += xsp_perf_map_names(r->named[i].map);
	}
	return names;
}

bool xsp_resolver_name_by_map(const struct xsp_resolver *r, pid_t pid, uint64_t address,
			      bool compiled, char *text, size_t size)
{
	struct xsp_named_code *n = named_code(r, pid);
	struct xsp_perf_name found;

	if (n == NULL)
		return false;
	n->wanted |= compiled;
	bool named = xsp_perf_map_find(n->map, address, &found);
	if (!named && compiled && xsp_now_ns() - n->time_ns >= GENERATED_NS) {
		read_map(n, MAP_AGAIN_NS);
		named = xsp_perf_map_find(n->map, address, &found);
	}
	if (named)
		snprintf(text, size, "%s%s%s%s", found.name,
			 found.earlier != NULL ? " [earlier: " : "",
			 found.earlier != NULL ? found.earlier : "",
			 found.earlier != NULL ? "]" : "");
	return named;
}

/* "[vdso]", or code that a compiler made in the process. */
static const char *name_in(const struct xsp_maps *maps, uint64_t address)
{
	const struct xsp_map *m = xsp_maps_find(maps, address);

	if (m == NULL || !m->executable || m->inode != 0)
		return NULL;
	return m->name[0] == '[' ? m->name : XSP_GENERATED;
}

void xsp_resolver_name_generated(struct xsp_resolver *r, pid_t pid, uint64_t address, char *text,
				 size_t size)
{
	struct xsp_seen_maps *g = &r->generated;
	const char *name = g->pid == pid ? name_in(&g->maps, address) : NULL;

	if (address <= 4096)
		return;
	if (name == NULL && (g->pid != pid || xsp_now_ns() - g->time_ns >= GENERATED_NS)) {
		xsp_resolver_look(g, r->opener, pid);
		name = name_in(&g->maps, address);
	}
	if (name != NULL)
		snprintf(text, size, "%s", name);
}
