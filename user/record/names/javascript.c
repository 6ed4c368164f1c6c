/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/names/javascript.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/rows/tally.h"

/* How often to look whether a process has V8: it may load it late. Others have code of no file as well. */
#define LOOK_NS 1000000000ULL
#define LOOKS_MOST 5
#define ENGINES_MOST 256 /* each has a descriptor */
/* So many bytes of a process's sources are read, to count lines. */
#define SOURCES_BYTES (256ULL << 20)
#define FUNCTIONS_MAX (1U << 16) /* of all processes */

/* A function that was met. */
struct known {
	struct xsp_v8_function is;
	uint64_t address; /* 0: it has no name */
};

struct engine {
	pid_t pid;
	bool has; /* V8, whose constants are known */
	uint64_t looked_ns;
	unsigned looks;
	struct xsp_v8 v8;
	XSP_TALLY(struct known) functions; /* by SharedFunctionInfo */
};

struct xsp_javascript {
	const struct xsp_opener *opener;
	struct xsp_resolver *resolver;
	XSP_TALLY(struct engine) engines; /* by process */
	size_t functions, open;
};

int xsp_javascript_new(const struct xsp_opener *o, struct xsp_resolver *r,
		       struct xsp_javascript **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->opener = o;
	(*out)->resolver = r;
	return 0;
}

static void clear(struct xsp_javascript *j, struct engine *e)
{
	if (e->has)
		close(e->v8.mem);
	j->open -= e->has;
	j->functions -= e->functions.count;
	xsp_tally_free(&e->functions);
	*e = (struct engine){.pid = e->pid};
}

void xsp_javascript_free(struct xsp_javascript *j)
{
	if (j == NULL)
		return;
	for (size_t i = 0; i < j->engines.count; i++)
		clear(j, &j->engines.rows[i]);
	xsp_tally_free(&j->engines);
	free(j);
}

void xsp_javascript_forget(struct xsp_javascript *j, pid_t pid)
{
	struct engine *e = j != NULL ? xsp_tally_find(&j->engines, (uint64_t)pid) : NULL;

	if (e != NULL)
		clear(j, e);
}

static void look(struct xsp_javascript *j, struct engine *e)
{
	struct xsp_module *m;
	const uint64_t now = xsp_now_ns();

	if (now - e->looked_ns < LOOK_NS || e->looks == LOOKS_MOST || j->open == ENGINES_MOST)
		return;
	e->looked_ns = now;
	e->looks++;
	m = xsp_resolve_module_that_has(j->resolver, e->pid, XSP_V8_MARK, NULL);
	if (m == NULL || xsp_v8_layout_read(m, &e->v8.layout) < 0)
		return;
	e->v8.mem = j->opener->file(j->opener, e->pid, "mem");
	e->v8.source_left = SOURCES_BYTES;
	e->has = e->v8.mem >= 0;
	j->open += e->has;
}

static struct engine *engine_of(struct xsp_javascript *j, pid_t pid)
{
	struct engine *e = xsp_tally_row(&j->engines, (uint64_t)pid, &(struct engine){.pid = pid});

	if (e != NULL && !e->has)
		look(j, e);
	return e != NULL && e->has ? e : NULL;
}

/* What node calls "[eval]" is no path. */
static const char *base_of(char *file)
{
	const char *base = xsp_base_name(file);
	const size_t length = strlen(base);

	if (base[0] != '[' || base[length - 1] != ']')
		return base;
	file[strlen(file) - 1] = '\0';
	return base + 1;
}

/* "app.js:12 handler", as a line of Python is shown. */
static uint64_t invent(struct xsp_javascript *j, struct engine *e, const struct xsp_v8_function *f)
{
	struct xsp_v8_name name;
	char text[XSP_V8_FILE + XSP_V8_NAME + 16], line[16] = "";

	xsp_v8_name_of(&e->v8, f, &name);
	if (name.file[0] == '\0') /* of V8 itself: its code has a name */
		return 0;
	if (name.line > 0)
		snprintf(line, sizeof(line), ":%u", name.line);
	snprintf(text, sizeof(text), "%s%s %s", base_of(name.file), line,
		 name.function[0] != '\0' ? name.function : "(anonymous)");
	return xsp_resolver_invent(j->resolver, e->pid, text, name.file);
}

static uint64_t address_of(struct xsp_javascript *j, struct engine *e,
			   const struct xsp_v8_function *f)
{
	struct known *k = xsp_tally_find(&e->functions, f->shared);

	if (k != NULL && memcmp(&k->is, f, sizeof(*f)) == 0)
		return k->address;
	if (k == NULL && j->functions >= FUNCTIONS_MAX)
		return 0;
	j->functions += k == NULL;
	if (k == NULL)
		k = xsp_tally_row(&e->functions, f->shared, &(struct known){.address = 0});
	if (k == NULL)
		return 0;
	*k = (struct known){.is = *f, .address = invent(j, e, f)};
	return k->address;
}

/* *file: the code is in one. */
static enum xsp_v8_code code_at(const struct xsp_javascript *j, pid_t pid, uint64_t pc, bool *file)
{
	struct xsp_module *m;
	uint64_t addr;

	*file = xsp_resolve_learned(j->resolver, pid, pc, &m, &addr) == 0;
	const struct xsp_symbol *s = *file ? xsp_module_covering(m, addr) : NULL;
	return xsp_v8_code_of(s != NULL ? s->name : NULL);
}

uint64_t xsp_javascript_frame(struct xsp_javascript *j, pid_t pid, uint64_t pc,
			      const struct xsp_v8_frame *frame, enum xsp_v8_code *code)
{
	const struct engine *known = xsp_tally_find(&j->engines, (uint64_t)pid);
	const bool is_frame = frame != NULL && xsp_v8_is_frame(frame);
	struct xsp_v8_function f;
	bool file;

	*code = XSP_V8_NONE;
	if (!is_frame && (known == NULL || !known->has))
		return 0;
	*code = code_at(j, pid, pc, &file);
	if (!is_frame || (file && *code == XSP_V8_NONE)) /* compiled JavaScript is in no file */
		return 0;
	struct engine *e = engine_of(j, pid);
	if (e == NULL)
		*code = XSP_V8_NONE;
	return e != NULL && xsp_v8_function_at(&e->v8, frame->function, &f) == 0
		       ? address_of(j, e, &f)
		       : 0;
}
