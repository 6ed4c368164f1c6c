/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/names/torch_modules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rows/grow.h"
#include "base/rows/u64map.h"
#include "base/text.h"
#include "record/names/codes.h"

#define MODULES_MAX (1U << 16)
#define CHECKS_A_TURN 64
#define CHILD_CHECKED_NS 1000000000ULL /* a module checked so recently still exists */
#define CHILD_CHECKS_A_TURN 2
#define UNNAMED_NS 5000000000ULL /* after which it tries those without a name again */
#define CHILDREN_A_SECOND 5000 /* modules whose names it looks up */
#define OUTWARD_MAX 16 /* modules around one that may have it as a child */
#define CHILD_PATH_MAX 128
#define NAME_MAX_BYTES 144 /* a class, a number */

struct module {
	struct xsp_python_object object;
	char *name; /* "Linear_0" */
	uint64_t seen_ns; /* it lived */
	uint64_t gone_ns; /* it was not at its address any more; 0: as far as is known it is */
};

/* A module and one that is called inside it. */
struct child {
	struct xsp_python_object from, to;
	char *path; /* "layers.0"; NULL: no path */
	uint64_t checked_ns;
};

struct xsp_torch_modules {
	struct module *list;
	size_t count, room, next;
	struct xsp_u64map by_object; /* → index in list */
	struct xsp_u64map classes; /* hash of the name → how many of its objects so far */
	struct child *children;
	size_t child_count, child_room, child_next;
	struct xsp_u64map child_of; /* both objects → index in children */
	struct xsp_allowance reads;
	bool unnamed; /* too many modules: some names were not looked up */
};

int xsp_torch_modules_new(struct xsp_torch_modules **out)
{
	*out = calloc(1, sizeof(**out));
	return *out != NULL ? 0 : -ENOMEM;
}

void xsp_torch_modules_free(struct xsp_torch_modules *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i < m->count; i++)
		free(m->list[i].name);
	for (size_t i = 0; i < m->child_count; i++)
		free(m->children[i].path);
	xsp_u64map_free(&m->by_object);
	xsp_u64map_free(&m->classes);
	xsp_u64map_free(&m->child_of);
	free(m->list);
	free(m->children);
	free(m);
}

static uint64_t key_of(struct xsp_python_object o)
{
	return xsp_u64_mix(xsp_u64_mix(o.address) + o.type);
}

/* ---- numbers ---- */

/* "Linear_0": the class, and the number of the object among those of its class, in the order of their first calls. */
static int number(struct xsp_torch_modules *m, const struct xsp_python *p,
		  struct xsp_python_object object, char **out)
{
	char class[128], text[NAME_MAX_BYTES];

	*out = NULL;
	if (xsp_python_class(p, object.type, "Module", class, sizeof(class)) < 0)
		return 0;
	const uint64_t hash = xsp_u64_mix(xsp_text_hash(class, strlen(class)));
	const uint32_t *so_far = xsp_u64map_get(&m->classes, hash);
	const uint32_t n = so_far != NULL ? *so_far : 0;
	snprintf(text, sizeof(text), "%s_%" PRIu32, class, n);
	*out = strdup(text);
	return *out == NULL || xsp_u64map_set(&m->classes, hash, n + 1) < 0 ? -ENOMEM : 0;
}

/* One that was not known, or has the address and the class of one that is gone. *out: the latter, then the new one;
 * NULL: its class is gone, or too many. */
static int add(struct xsp_torch_modules *m, const struct xsp_python *p, struct module new,
	       struct module **out)
{
	struct module *k = *out;

	*out = NULL;
	if (k == NULL && m->count >= MODULES_MAX)
		return 0;
	int rc = number(m, p, new.object, &new.name);
	if (rc == 0 && new.name != NULL && k == NULL) {
		k = xsp_u64map_element(&m->by_object, key_of(new.object), &m->list, &m->room,
				       &m->count, &(struct module){0});
		rc = k == NULL ? -ENOMEM : 0;
	}
	if (rc < 0 || new.name == NULL) {
		free(new.name);
		return rc;
	}
	free(k->name);
	*k = new;
	*out = k;
	return 0;
}

/* *out: NULL if it is no module, or its class was gone before it was read. That a frame had it shows that it lived
 * then. 0 or -ENOMEM */
static int find(struct xsp_torch_modules *m, const struct xsp_python *p,
		struct xsp_python_object object, uint64_t time_ns, struct module **out)
{
	const uint32_t *at = xsp_u64map_get(&m->by_object, key_of(object));
	struct module *k = at != NULL ? &m->list[*at] : NULL;

	*out = k;
	if (k != NULL && time_ns <= k->seen_ns)
		return 0;
	const uint64_t now = xsp_now_ns();
	const bool lives = xsp_python_type(p, object.address) == object.type;
	const struct module seen = {
		.object = object, .seen_ns = lives ? now : time_ns, .gone_ns = lives ? 0 : now};
	if (k == NULL || (k->gone_ns != 0 && time_ns > k->gone_ns))
		return add(m, p, seen, out);
	if (k->gone_ns == 0)
		k->gone_ns = seen.gone_ns;
	if (k->gone_ns != 0 && !xsp_codes_lived(k->seen_ns, time_ns))
		*out = NULL; /* it, or another one that came after it and is gone as well */
	else
		k->seen_ns = k->gone_ns == 0 ? now : time_ns;
	return 0;
}

/* ---- paths ---- */

/* *path: from one module to one inside it, to be freed; NULL: there is none. -EAGAIN: later. */
static int read_path(struct xsp_torch_modules *m, struct xsp_python *p, const struct child *c,
		     char **path)
{
	char text[CHILD_PATH_MAX];
	size_t reads = 0;

	*path = NULL;
	if (!xsp_allowance_left(&m->reads, CHILDREN_A_SECOND))
		return -EAGAIN;
	int rc = xsp_python_module_path(p, c->from.address, c->to.address, text, sizeof(text),
					&reads);
	xsp_allowance_take(&m->reads, reads);
	if (rc == 0)
		*path = strdup(text);
	return rc == -ENOENT || *path != NULL ? 0 : -ENOMEM;
}

static uint64_t child_key(struct xsp_python_object from, struct xsp_python_object to)
{
	return xsp_u64_mix(key_of(from)) + key_of(to);
}

/* 1: it has changed. 0, -EAGAIN, -ENOMEM */
static int check_child(struct xsp_torch_modules *m, struct xsp_python *p, struct child *c)
{
	char *path;
	int rc = read_path(m, p, c, &path);

	if (rc < 0)
		return rc;
	rc = (path == NULL) != (c->path == NULL) || (path != NULL && strcmp(path, c->path) != 0);
	free(c->path);
	c->path = path;
	c->checked_ns = xsp_now_ns();
	return rc;
}

/* The path from one module to another: *path, valid until the next call. 0, -EAGAIN, -ENOMEM */
static int path_between(struct xsp_torch_modules *m, struct xsp_python *p,
			struct xsp_python_object from, struct xsp_python_object to,
			const char **path)
{
	const uint32_t *at = xsp_u64map_get(&m->child_of, child_key(from, to));
	struct child *c;

	*path = NULL;
	if (at == NULL && m->child_count >= MODULES_MAX)
		return 0;
	if (at == NULL) {
		if (xsp_grow(&m->children, &m->child_room, m->child_count + 1) < 0)
			return -ENOMEM;
		c = &m->children[m->child_count];
		*c = (struct child){.from = from, .to = to};
		int rc = check_child(m, p, c);
		if (rc < 0)
			return rc;
		/* it was read while the program ran: two equal reads are true */
		if (c->path != NULL && check_child(m, p, c) > 0)
			m->unnamed = true;
		if (xsp_u64map_set(&m->child_of, child_key(from, to), (uint32_t)m->child_count) <
		    0) {
			free(c->path);
			return -ENOMEM;
		}
		m->child_count++;
	} else {
		c = &m->children[*at];
	}
	*path = c->path;
	return 0;
}

int xsp_torch_modules_name(struct xsp_torch_modules *m, struct xsp_python *p,
			   const struct xsp_python_object *around, uint32_t count,
			   struct xsp_python_object object, uint64_t time_ns, char *text,
			   size_t size)
{
	struct module *k;
	const char *path;
	int rc = find(m, p, object, time_ns, &k);

	if (rc < 0 || k == NULL)
		return rc;
	snprintf(text, size, "%s", k->name);
	for (uint32_t out = 0; out < count && out < OUTWARD_MAX; out++) {
		rc = path_between(m, p, around[count - 1 - out], object, &path);
		if (rc == -EAGAIN)
			m->unnamed = true; /* until all stacks come again */
		if (rc < 0)
			return rc == -EAGAIN ? 1 : rc;
		if (path == NULL)
			continue;
		snprintf(text, size, "%.*s%s", (int)out, "................", path);
		return 1;
	}
	return 1;
}

/* ---- turns ---- */

static void drop_child(struct xsp_torch_modules *m, uint32_t index)
{
	struct child *c = &m->children[index], *last = &m->children[--m->child_count];

	xsp_u64map_remove(&m->child_of, child_key(c->from, c->to));
	free(c->path);
	if (c == last)
		return;
	*c = *last;
	*xsp_u64map_get(&m->child_of, child_key(c->from, c->to)) = index;
}

/* A changed name is worth sending all stacks again; a module that is gone is not. */
static bool check_children(struct xsp_torch_modules *m, struct xsp_python *p)
{
	const uint64_t now = xsp_now_ns();
	bool any = false;

	for (size_t n = 0; n < CHILD_CHECKS_A_TURN && n < m->child_count; n++) {
		const uint32_t at = (uint32_t)(m->child_next++ % m->child_count);
		struct child *c = &m->children[at];
		if (now - c->checked_ns < CHILD_CHECKED_NS)
			continue;
		const bool changed = c->path != NULL && check_child(m, p, c) > 0;
		if (c->path == NULL)
			drop_child(m, at);
		else
			any |= changed;
	}
	return any;
}

bool xsp_torch_modules_check(struct xsp_torch_modules *m, struct xsp_python *p,
			     uint64_t published_ns)
{
	const uint64_t now = xsp_now_ns();
	bool stale = check_children(m, p);

	for (size_t n = 0; n < CHECKS_A_TURN && n < m->count; n++) {
		struct module *k = &m->list[m->next++ % m->count];
		if (k->gone_ns != 0)
			continue;
		if (xsp_python_type(p, k->object.address) == k->object.type)
			k->seen_ns = now;
		else
			k->gone_ns = now;
	}
	if (m->unnamed && now - published_ns > UNNAMED_NS) {
		m->unnamed = false;
		stale = true;
	}
	return stale;
}
