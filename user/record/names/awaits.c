/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * awaits.c - an event loop that waits says nothing about what the program waits for: its coroutines do. Now and then, while it
 * waits, some of its tasks are read, and counted by the innermost line of the program's own in which each is suspended.
 */
#include "record/names/awaits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/rows/tally.h"
#include "base/text.h"
#include "catalog/own_code.h"

#define LOOK_NS 200000000ULL /* at least between two */
#define MOST_LINES 1024U
#define MOST_COUNTED                                                                               \
	4096U /* from there on the past counts half: what is asked for is how things are */
#define LINES_SHOWN 6U

struct await {
	char text[XSP_NAME_MAX]; /* "db.py:40 query\tLock.acquire" */
	uint64_t count;
};

struct xsp_awaits {
	struct xsp_python_tasks tasks;
	XSP_TALLY(struct await) lines;
	uint64_t counted, looked_ns;
};

int xsp_awaits_new(struct xsp_awaits **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->lines.tally.most = MOST_LINES;
	return 0;
}

void xsp_awaits_free(struct xsp_awaits *a)
{
	if (a != NULL)
		xsp_tally_free(&a->lines);
	free(a);
}

/* ---- one task ---- */

/* What one task does for another, whose own line says more. */
static bool waits_for_tasks(const struct xsp_python_code *c)
{
	static const char *const functions[] = {
		"wait", "_wait", "wait_for", "gather", "TaskGroup.__aexit__", "TaskGroup._aexit"};
	const size_t length = strlen(c->file);

	if (!xsp_ends_with(c->file, length, "/asyncio/tasks.py") &&
	    !xsp_ends_with(c->file, length, "/asyncio/taskgroups.py"))
		return false;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(c->function, functions[i]) == 0)
			return true;
	return false;
}

/* The innermost own line of these frames, and the function that it awaits. Empty: there is none, or it waits for tasks. */
static void put_line(struct xsp_python *p, struct xsp_codes *codes,
		     const struct xsp_python_frame *frames, size_t count, char text[XSP_NAME_MAX])
{
	const struct xsp_python_code *c;
	char awaited[80] = "";
	bool fresh;

	text[0] = '\0';
	for (size_t i = count; i > 0; i--) {
		if (xsp_codes_at(codes, p, frames[i - 1].code, xsp_now_ns(), &c, &fresh) != 0 ||
		    xsp_codes_count_lines(codes, c) < 0 || (i == count && waits_for_tasks(c)))
			return;
		if (xsp_is_own_source(c->file, strlen(c->file))) {
			snprintf(text, XSP_NAME_MAX, "%.80s:%" PRId32 " %.80s\t%s",
				 xsp_base_name(c->file),
				 xsp_python_code_line(c, frames[i - 1].instruction), c->function,
				 awaited);
			return;
		}
		if (c->function[0] != '_' || awaited[0] == '\0') /* not "_Mixin.__aenter__" */
			snprintf(awaited, sizeof(awaited), "%.79s", c->function);
	}
}

static int count_task(struct xsp_awaits *a, struct xsp_python *p, struct xsp_codes *codes,
		      uint64_t task)
{
	struct xsp_python_frame frames[XSP_PYTHON_AWAITS];
	struct await one = {0};
	bool for_task;
	const size_t n = xsp_python_task_stack(p, &a->tasks, task, frames, &for_task);

	if (n == 0 || for_task)
		return 0;
	put_line(p, codes, frames, n, one.text);
	if (one.text[0] == '\0')
		return 0;
	struct await *line =
		xsp_tally_row(&a->lines, xsp_text_hash(one.text, strlen(one.text)), &one);
	if (line == NULL)
		return a->lines.tally.error;
	line->count++;
	a->counted++;
	return 0;
}

/* ---- all ---- */

static void fade(struct xsp_awaits *a)
{
	if (a->counted < MOST_COUNTED)
		return;
	a->counted = 0;
	for (size_t i = 0; i < a->lines.count; i++)
		a->counted += a->lines.rows[i].count /= 2;
}

/* A loop that does something has tasks that only wait for their turn. */
static bool is_waiting(struct xsp_python *p, struct xsp_codes *codes,
		       const struct xsp_python_frame *frame)
{
	const struct xsp_python_code *c;
	bool fresh;

	return xsp_codes_at(codes, p, frame->code, xsp_now_ns(), &c, &fresh) == 0 &&
	       xsp_ends_with(c->file, strlen(c->file), "/selectors.py") &&
	       xsp_ends_with(c->function, strlen(c->function), "select");
}

int xsp_awaits_look(struct xsp_awaits *a, struct xsp_python *p, struct xsp_codes *codes,
		    const struct xsp_python_frame *frames, size_t count)
{
	uint64_t tasks[XSP_PYTHON_TASKS];
	const uint64_t now = xsp_now_ns();
	int rc = 0;

	if (count == 0 || now - a->looked_ns < LOOK_NS || !is_waiting(p, codes, &frames[0]))
		return 0;
	a->looked_ns = now;
	fade(a);
	const long n = xsp_python_tasks(p, &a->tasks, tasks);
	for (long i = 0; i < n && rc == 0; i++)
		rc = count_task(a, p, codes, tasks[i]);
	return rc;
}

static XSP_ORDER(most_first, struct await, XSP_FALLING(count) ?: strcmp(x->text, y->text));

int xsp_awaits_put(const struct xsp_awaits *a, struct xsp_capture_writer *w, uint32_t pid)
{
	struct await most[LINES_SHOWN];
	char key[40], text[(LINES_SHOWN + 1) * (XSP_NAME_MAX + 24)];
	size_t n = 0;
	int used = snprintf(text, sizeof(text), "%" PRIu64 "\n", a->counted);

	if (a->counted == 0)
		return 0;
	for (size_t i = 0; i < a->lines.count; i++)
		XSP_RANK(most, &n, LINES_SHOWN, &a->lines.rows[i], most_first);
	for (size_t i = 0; i < n; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "%" PRIu64 "\t%s\n",
				 most[i].count, most[i].text);
	snprintf(key, sizeof(key), XSP_INFO_AWAITS " %" PRIu32, pid);
	return xsp_capture_put_info(w, key, text);
}
