/* SPDX-License-Identifier: BSD-2-Clause */
#include "dump/python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rows/grow.h"
#include "base/path.h"
#include "base/rows/u64map.h"

#define CODES_MAX 65536U
/* Bytes of code objects' tables, read together. A program's own take a thousandth of it. */
#define TABLES_MAX (256U << 20)

struct code {
	struct xsp_python_code code;
	const char *file, *function; /* in the arena, once it was shown */
};

struct xsp_dump_interpreter {
	struct xsp_python python;
	struct xsp_python_thread *threads;
	size_t thread_count;
	struct code *codes;
	size_t count, room;
	struct xsp_u64map by_address; /* → index in codes */
	size_t tables; /* bytes, of at most TABLES_MAX */
};

/* ---- the interpreter ---- */

/* A program contains Python, or loads it under its name. */
static bool may_have(const struct xsp_mapped_file *f, const char *exe)
{
	return strcmp(f->display_path, exe) == 0 ||
	       strstr(xsp_base_name(f->display_path), "python") != NULL;
}

static int find(struct xsp_space *space, const char *exe, struct xsp_python_runtime *runtime,
		const struct xsp_mapped_file **file)
{
	for (size_t i = 0; i < space->mapped->count; i++) {
		*file = &space->mapped->files[i];
		struct xsp_module *m = may_have(*file, exe) ? xsp_space_open(space, i) : NULL;
		if (m != NULL)
			xsp_python_look(m, runtime);
		if (runtime->version != 0)
			return 0;
	}
	return -ENOENT;
}

/* Some states may belong to threads that have ended. */
static int find_threads(struct xsp_dump_interpreter *i, size_t threads)
{
	const size_t room = 2 * threads + 64;

	i->threads = calloc(room, sizeof(*i->threads));
	if (i->threads == NULL)
		return -ENOMEM;
	long n = xsp_python_threads(&i->python, i->threads, room);
	i->thread_count = n > 0 ? (size_t)n : 0;
	return 0;
}

int xsp_dump_interpreter_open(struct xsp_space *space, const char *exe, size_t threads,
			      struct xsp_dump_interpreter **out, struct xsp_error *why)
{
	struct xsp_python_runtime runtime = {0};
	const struct xsp_mapped_file *file;

	*out = NULL;
	if (find(space, exe, &runtime, &file) < 0)
		return 0;
	struct xsp_dump_interpreter *i = calloc(1, sizeof(*i));
	if (i == NULL)
		return -ENOMEM;
	if (xsp_python_open(space->mem, &runtime, xsp_python_address(&runtime, file), &i->python,
			    why) < 0) {
		free(i);
		return 0;
	}
	int rc = find_threads(i, threads);
	if (rc < 0)
		xsp_dump_interpreter_close(i);
	else
		*out = i;
	return rc;
}

void xsp_dump_interpreter_close(struct xsp_dump_interpreter *i)
{
	if (i == NULL)
		return;
	for (size_t n = 0; n < i->count; n++)
		xsp_python_code_clear(&i->codes[n].code);
	xsp_u64map_free(&i->by_address);
	free(i->codes);
	free(i->threads);
	free(i);
}

/* ---- code objects ---- */

/* 1 + index; 0: no readable code object. */
static uint32_t code_at(struct xsp_dump_interpreter *i, uint64_t address)
{
	const uint32_t *at = xsp_u64map_get(&i->by_address, address);

	if (at != NULL && xsp_python_code_is_there(&i->python, &i->codes[*at].code) == 1)
		return *at + 1;
	if (i->count == CODES_MAX || i->tables > TABLES_MAX ||
	    xsp_grow(&i->codes, &i->room, i->count + 1) < 0)
		return 0;
	struct code *c = &i->codes[i->count];
	*c = (struct code){0};
	if (xsp_python_code_read(&i->python, address, &c->code) < 0)
		return 0;
	i->tables += c->code.lines_size;
	if (xsp_u64map_set(&i->by_address, address, (uint32_t)i->count) < 0) {
		xsp_python_code_clear(&c->code);
		return 0;
	}
	return (uint32_t)++i->count;
}

bool xsp_dump_interpreter_stack(struct xsp_dump_interpreter *i, pid_t ns_tid, uint64_t sp,
				struct xsp_python_raw *out)
{
	const struct xsp_python_thread *t;

	out->count = 0;
	out->flags = 0;
	out->unsure = xsp_python_thread_of(&i->python, i->threads, i->thread_count,
					   (uint32_t)ns_tid, sp, &t) < 0;
	if (t == NULL)
		return out->unsure;
	out->count = xsp_python_stack(&i->python, t, out->frames, XSP_DUMP_PYTHON_MAX, &out->flags);
	for (size_t n = 0; n < out->count; n++)
		out->codes[n] = code_at(i, out->frames[n].code);
	return true;
}

bool xsp_dump_interpreter_gil(const struct xsp_dump_interpreter *i, uint64_t address,
			      uint32_t *holder)
{
	struct xsp_python_gil gil;

	*holder = 0;
	if (i == NULL || xsp_python_gil(&i->python, &gil) < 0)
		return false;
	for (size_t n = 0; n < i->thread_count; n++)
		if (i->threads[n].state == gil.holder)
			*holder = i->threads[n].tid;
	return address - gil.condition < XSP_PYTHON_CONDITION;
}

/* ---- names ---- */

#define UNSURE                                                                                     \
	"not known: there are several interpreters, and which of them a thread runs is not to be read here"

/* 0: not known. */
static int32_t line_of(struct xsp_dump_interpreter *i, const struct code *c, uint64_t instruction)
{
	if (i->tables > TABLES_MAX)
		return 0;
	i->tables += c->code.lines_size;
	return xsp_python_code_line(&c->code, instruction);
}

static int name(struct xsp_arena *arena, struct code *c)
{
	if (c->file == NULL)
		c->file = xsp_arena_copy(arena, c->code.file, strlen(c->code.file));
	if (c->function == NULL)
		c->function = xsp_arena_copy(arena, c->code.function, strlen(c->code.function));
	return c->file == NULL || c->function == NULL ? -ENOMEM : 0;
}

int xsp_dump_interpreter_name(struct xsp_dump_interpreter *i, const struct xsp_python_raw *raw,
			      struct xsp_arena *arena, struct xsp_dump_thread *out)
{
	struct xsp_dump_python *lines = xsp_arena_alloc(arena, (raw->count + 1) * sizeof(*lines));

	if (lines == NULL)
		return -ENOMEM;
	out->python = lines;
	out->python_count = 0;
	out->python_end = NULL;
	if (raw->unsure)
		out->python_end = UNSURE;
	else if (raw->flags & XSP_PYTHON_TORN)
		out->python_end = "what is further out could not be read, or made no sense";
	else if (raw->flags & XSP_PYTHON_CUT)
		out->python_end = "there are more frames";
	for (size_t n = 0; n < raw->count; n++) {
		struct code *c = raw->codes[n] != 0 ? &i->codes[raw->codes[n] - 1] : NULL;
		if (c == NULL) {
			lines[out->python_count++] =
				(struct xsp_dump_python){"[Python frame not readable]", "", 0};
			continue;
		}
		if (xsp_python_code_is_shim(&c->code))
			continue;
		if (name(arena, c) < 0)
			return -ENOMEM;
		lines[out->python_count++] = (struct xsp_dump_python){
			c->function, c->file, line_of(i, c, raw->frames[n].instruction)};
	}
	if (i->tables > TABLES_MAX)
		out->python_end = "the tables of its code objects are too large to be all read";
	return 0;
}
