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
#include "base/rows/tally.h"
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
	XSP_TALLY(struct module) modules; /* by object */
	size_t next;
	struct xsp_u64map classes; /* hash of the name → how many of its objects so far */
	XSP_TALLY(struct child) children; /* by both objects */
	size_t child_next;
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
	for (size_t i = 0; i < m->modules.count; i++)
		free(m->modules.rows[i].name);
	for (size_t i = 0; i < m->children.count; i++)
		free(m->children.rows[i].path);
	xsp_tally_free(&m->modules);
	xsp_u64map_free(&m->classes);
	xsp_tally_free(&m->children);
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
	if (k == NULL && m->modules.count >= MODULES_MAX)
		return 0;
	int rc = number(m, p, new.object, &new.name);
	if (rc == 0 && new.name != NULL && k == NULL) {
		k = xsp_tally_row(&m->modules, key_of(new.object), &(struct module){0});
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
	struct module *k = xsp_tally_find(&m->modules, key_of(object));

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
	struct child *c = xsp_tally_find(&m->children, child_key(from, to));

	*path = NULL;
	if (c == NULL && m->children.count >= MODULES_MAX)
		return 0;
	if (c == NULL) {
		struct child new = {.from = from, .to = to};
		int rc = check_child(m, p, &new);
		if (rc < 0)
			return rc;
		/* it was read while the program ran: two equal reads are true */
		if (new.path != NULL && check_child(m, p, &new) > 0)
			m->unnamed = true;
		c = xsp_tally_row(&m->children, child_key(from, to), &new);
		if (c == NULL) {
			free(new.path);
			return -ENOMEM;
		}
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
	struct child *c = &m->children.rows[index], *last = &m->children.rows[--m->children.count];

	xsp_tally_forget(&m->children, child_key(c->from, c->to));
	free(c->path);
	if (c == last)
		return;
	*c = *last;
	xsp_tally_alias(&m->children, child_key(c->from, c->to), c);
}

/* A changed name is worth sending all stacks again; a module that is gone is not. */
static bool check_children(struct xsp_torch_modules *m, struct xsp_python *p)
{
	const uint64_t now = xsp_now_ns();
	bool any = false;

	for (size_t n = 0; n < CHILD_CHECKS_A_TURN && n < m->children.count; n++) {
		const uint32_t at = (uint32_t)(m->child_next++ % m->children.count);
		struct child *c = &m->children.rows[at];
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

	for (size_t n = 0; n < CHECKS_A_TURN && n < m->modules.count; n++) {
		struct module *k = &m->modules.rows[m->next++ % m->modules.count];
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
