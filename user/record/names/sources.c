/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/names/sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rows/array.h"
#include "base/rows/order.h"
#include "catalog/own_code.h"
#include "target/elf/lines.h"
#include "xsptrace/programs.h"

_Static_assert(XSP_INLINED_MOST <= XSP_INLINED_DEPTH, "readers look no deeper");

#define FINISH_MS 5000U /* all together, at the end */
#define MEANWHILE_MS 2000U /* CPU time of a question before the end */
/* Before the end, a question waits until its planner has computed for a twentieth of the time. */
#define PAUSE_NS 2000000000ULL
#define PAUSE_FACTOR 20
#define SORT_MOST 16384U /* addresses that are sorted at a time, while the rings fill */
#define FORGET_AT (1U << 17) /* on demand */
#define WAIT_MS 20U

struct wanted {
	uint32_t pid;
	enum xsp_address_name what;
	uint64_t address; /* as in the stack */
	struct xsp_module *module;
	uint64_t addr; /* in it: the instruction, or the call */
	bool own; /* the program's own file */
};

struct xsp_sources {
	struct xsp_capture_writer *writer;
	const struct xsp_resolver *resolver;
	enum xsp_sources_when when;
	XSP_ARRAY(struct wanted) wanted;
	/* of one file, in the order of addresses: what the planner was asked about; empty: nothing */
	XSP_ARRAY(struct wanted) asked;
	struct xsp_code_line *lines; /* of the different ones of these */
	size_t line_count;
	uint64_t asked_ns, next_ns; /* the last question; not before that time the next one */
	struct xsp_u64map put; /* on demand: hashes of names that may be forgotten */
	bool found; /* an inlined function */
	size_t missed;
	struct xsp_u64map useless; /* files without debug information that can be read */
	size_t large; /* of these: because there is too much */
	char large_path[512]; /* of the first */
};

int xsp_sources_new(struct xsp_capture_writer *writer, const struct xsp_resolver *resolver,
		    enum xsp_sources_when when, struct xsp_sources **out)
{
	struct xsp_sources *s = *out = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->writer = writer;
	s->resolver = resolver;
	s->when = when;
	return 0;
}

static void end_question(struct xsp_sources *s)
{
	for (size_t i = 0; i < s->line_count; i++) {
		free(s->lines[i].path);
		free(s->lines[i].inlined);
	}
	free(s->lines);
	s->lines = NULL;
	s->line_count = 0;
	s->asked.count = 0;
}

void xsp_sources_free(struct xsp_sources *s)
{
	if (s == NULL)
		return;
	end_question(s);
	XSP_FREE(&s->wanted);
	XSP_FREE(&s->asked);
	xsp_u64map_free(&s->put);
	xsp_u64map_free(&s->useless);
	free(s);
}

/* What was met first is hardly in the next snapshot. */
static void forget_half(struct xsp_sources *s)
{
	const size_t half = s->wanted.count / 2;

	s->wanted.count -= half;
	memmove(s->wanted.rows, s->wanted.rows + half, s->wanted.count * sizeof(*s->wanted.rows));
}

int xsp_sources_want(struct xsp_sources *s, enum xsp_address_name what, uint32_t pid,
		     uint64_t address, bool stood)
{
	const uint64_t plain = address & ~XSP_FRAME_INTERRUPTED;
	struct wanted w = {.pid = pid, .what = what, .address = address};

	if (xsp_resolve_learned(s->resolver, (pid_t)pid, plain, &w.module, &w.addr) < 0)
		return 0;
	if (xsp_u64map_get(&s->useless, (uintptr_t)w.module) != NULL)
		return 0;
	if (!stood)
		w.addr--; /* the call */
	const char *path = xsp_module_display_path(w.module);
	w.own = xsp_is_own_file(path, strlen(path));
	if (s->when == XSP_SOURCES_ON_DEMAND && s->wanted.count >= FORGET_AT)
		forget_half(s);
	return XSP_PUT(&s->wanted, w);
}

/* ---- a question ---- */

/* The program's own files come last, as the last are asked about first. */
static XSP_ORDER(by_place, struct wanted,
		 XSP_RISING(own) ?: XSP_COMPARE((uintptr_t)x->module, (uintptr_t)y->module)
			 ?: XSP_RISING(addr));

/* Moves addresses of one file from those that are wanted to those that are asked about. */
static int choose(struct xsp_sources *s, size_t most)
{
	const size_t all = s->wanted.count, sorted = all < most ? all : most;
	struct wanted *rows = s->wanted.rows, *last = &rows[all - 1];
	size_t first = all, different = 0;

	XSP_SORT(rows + (all - sorted), sorted, by_place);
	for (; first > all - sorted && rows[first - 1].module == last->module; first--) {
		const bool another = first == all || rows[first].addr != rows[first - 1].addr;
		if (another && different == XSP_PLANNER_LINES)
			break;
		different += another;
	}
	const size_t count = all - first;
	s->lines = calloc(different, sizeof(*s->lines));
	if (s->lines == NULL || xsp_grow(&s->asked.rows, &s->asked.capacity, count) < 0)
		return -ENOMEM;
	memcpy(s->asked.rows, rows + first, count * sizeof(*rows));
	s->asked.count = count;
	s->wanted.count = first;
	for (size_t i = 0; i < count; i++)
		if (i == 0 || s->asked.rows[i].addr != s->asked.rows[i - 1].addr)
			s->lines[s->line_count++].addr = s->asked.rows[i].addr;
	return 0;
}

static int ask(struct xsp_sources *s, struct xsp_planner *planner, size_t most, unsigned limit_ms)
{
	int rc = choose(s, most);

	if (rc < 0)
		return rc;
	const struct wanted *w = &s->asked.rows[0];
	int fd = xsp_module_descriptor(w->module);
	s->asked_ns = xsp_now_ns();
	if (fd >= 0 &&
	    xsp_planner_ask_lines(planner, (pid_t)w->pid, fd, xsp_module_display_path(w->module),
				  s->lines, s->line_count, limit_ms) == 0)
		return 0;
	s->missed += s->asked.count;
	end_question(s);
	return 0;
}

/* ---- the answer ---- */

static int put(struct xsp_sources *s, uint64_t hash, const char *text)
{
	if (s->when == XSP_SOURCES_ON_DEMAND && xsp_u64map_set(&s->put, hash, 1) < 0)
		return -ENOMEM;
	return xsp_capture_put_name(s->writer, hash, text);
}

static int put_line(struct xsp_sources *s, const struct wanted *w, const struct xsp_code_line *l)
{
	char text[1100];

	if (l->path == NULL || strlen(l->path) > 1000)
		return 0;
	snprintf(text, sizeof(text), "%s\n%d", l->path, l->line);
	return put(s,
		   xsp_address_name_hash(xsp_capture_writer_key(s->writer), w->what, w->pid,
					 w->address),
		   text);
}

static int put_at(struct xsp_sources *s, const struct wanted *w, unsigned depth, const char *text)
{
	return put(s,
		   xsp_inlined_name_hash(xsp_capture_writer_key(s->writer), w->what, w->pid,
					 w->address, depth),
		   text);
}

static int put_inlined(struct xsp_sources *s, const struct wanted *w, const struct xsp_code_line *l)
{
	char name[XSP_INLINED_NAME + 1];
	const char *at = l->inlined, *end;
	int rc = 0;

	if (at != NULL && !s->found) {
		s->found = true;
		rc = xsp_capture_put_number(s->writer, XSP_INFO_INLINED, 0);
	}
	for (unsigned depth = 0;
	     rc == 0 && at != NULL && (end = strchr(at, '\n')) != NULL && depth < XSP_INLINED_MOST;
	     depth++, at = end + 1) {
		snprintf(name, sizeof(name), "%.*s", (int)(end - at), at);
		rc = put_at(s, w, depth, name);
	}
	snprintf(name, sizeof(name), "%u", l->helpers);
	return rc == 0 && l->helpers > 0 ? put_at(s, w, XSP_INLINED_HELPERS, name) : rc;
}

static int put_answer(struct xsp_sources *s)
{
	size_t line = 0;
	int rc = 0;

	for (size_t i = 0; i < s->asked.count && rc == 0; i++) {
		const struct wanted *w = &s->asked.rows[i];
		line += s->lines[line].addr != w->addr;
		const struct xsp_code_line *l = &s->lines[line];
		s->missed += l->missed;
		rc = w->what == XSP_NAME_OF_LINE ? put_line(s, w, l) : put_inlined(s, w, l);
	}
	return rc;
}

/* Nobody is asked about the file again. */
static int note_useless(struct xsp_sources *s, bool large)
{
	const struct xsp_module *m = s->asked.rows[0].module;

	if (xsp_u64map_get(&s->useless, (uintptr_t)m) != NULL)
		return 0;
	if (large && s->large++ == 0)
		snprintf(s->large_path, sizeof(s->large_path), "%s", xsp_module_display_path(m));
	return xsp_u64map_set(&s->useless, (uintptr_t)m, 1);
}

static int take_answer(struct xsp_sources *s, struct xsp_planner *planner, unsigned wait_ms)
{
	int result = 0, rc = 0;
	const int answered =
		xsp_planner_get_lines(planner, wait_ms, s->lines, s->line_count, &result);

	if (answered == 0)
		return 0;
	const uint64_t now = xsp_now_ns(), pause = (now - s->asked_ns) * PAUSE_FACTOR;
	s->next_ns = now + (pause > PAUSE_NS ? pause : PAUSE_NS);
	if (answered < 0)
		s->missed += s->asked.count;
	else
		rc = result < 0 ? note_useless(s, result == -EFBIG) : put_answer(s);
	end_question(s);
	return rc;
}

bool xsp_sources_pending(const struct xsp_sources *s)
{
	return s->asked.count > 0 || s->wanted.count > 0;
}

int xsp_sources_turn(struct xsp_sources *s, struct xsp_planner *planner, bool now)
{
	int rc = s->asked.count > 0 ? take_answer(s, planner, 0) : 0;

	now |= s->when == XSP_SOURCES_NOW_AND_THEN && xsp_now_ns() >= s->next_ns;
	if (rc == 0 && now && s->asked.count == 0 && s->wanted.count > 0)
		rc = ask(s, planner, SORT_MOST, MEANWHILE_MS);
	return rc;
}

int xsp_sources_finish(struct xsp_sources *s, struct xsp_planner *planner)
{
	const uint64_t end = xsp_now_ns() + FINISH_MS * 1000000ULL;
	uint64_t now;
	int rc = 0;

	while (rc == 0 && xsp_sources_pending(s) && (now = xsp_now_ns()) < end)
		rc = s->asked.count > 0
			     ? take_answer(s, planner, WAIT_MS)
			     : ask(s, planner, SIZE_MAX, (unsigned)((end - now) / 1000000));
	s->missed += s->asked.count + s->wanted.count;
	s->wanted.count = 0;
	end_question(s);
	return rc == 0 && s->found && s->missed > 0
		       ? xsp_capture_put_number(s->writer, XSP_INFO_INLINED, s->missed)
		       : rc;
}

bool xsp_sources_forget(struct xsp_sources *s, uint64_t hash)
{
	return xsp_u64map_remove(&s->put, hash);
}

size_t xsp_sources_missed(const struct xsp_sources *s)
{
	return s->missed;
}

const char *xsp_sources_too_large(const struct xsp_sources *s, size_t *others)
{
	*others = s->large > 0 ? s->large - 1 : 0;
	return s->large > 0 ? s->large_path : NULL;
}
