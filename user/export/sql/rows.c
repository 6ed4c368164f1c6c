/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/sql/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rows/grow.h"
#include "base/text.h"
#include "base/rows/tally.h"
#include "export/text.h"
#include "timeline/python.h"

#define OTHER_NAMES (1ULL << 32) /* numbers for names that are not the timeline's */
#define RUN_BITS 47 /* bits of the capture's id: its first six bytes, never negative */

struct xsp_sql {
	struct xsp_export *x;
	const struct xsp_sql_engine *engine;
	void *store; /* the engine's */
	int error; /* the first */
	struct xsp_thread_rows *thread_rows;
	struct xsp_stacks *stacks;
	bool *used; /* which names of the timeline are used, by id */
	size_t used_count;
	XSP_TALLY(const char *) others; /* by hash */
	struct xsp_arena texts;
	struct xsp_u64map lines; /* by the hash of the frame's name */
};

int xsp_sql_new(struct xsp_export *x, const struct xsp_sql_engine *engine, struct xsp_sql **out)
{
	struct xsp_sql *q = calloc(1, sizeof(*q));

	*out = q;
	if (q == NULL)
		return -ENOMEM;
	q->x = x;
	q->engine = engine;
	int rc = xsp_thread_rows_new(&x->view, &q->thread_rows);
	if (rc == 0)
		rc = xsp_stacks_new(&x->view, &q->stacks);
	if (rc < 0)
		return rc;
	xsp_stacks_join_threads(q->stacks);
	return engine->open(x, (int64_t)(xsp_capture_id(x->view.reader) >> (64 - RUN_BITS)),
			    &q->store);
}

void xsp_sql_free(struct xsp_sql *q)
{
	if (q == NULL)
		return;
	if (q->store != NULL)
		q->engine->free(q->store);
	xsp_thread_rows_free(q->thread_rows);
	xsp_stacks_free(q->stacks);
	xsp_tally_free(&q->others);
	xsp_u64map_free(&q->lines);
	xsp_arena_free(&q->texts);
	free(q->used);
	free(q);
}

int xsp_sql_error(const struct xsp_sql *q)
{
	return q->error;
}

void xsp_sql_note(struct xsp_sql *q, int rc)
{
	if (rc < 0 && q->error == 0)
		q->error = rc;
}

void xsp_sql_put(struct xsp_sql *q, enum xsp_sql_table table, const struct xsp_sql_value *values)
{
	if (q->error == 0)
		q->error = q->engine->put(q->store, table, values);
}

/* ---- threads, names, lines, stacks ---- */

struct xsp_thread_rows *xsp_sql_thread_rows(struct xsp_sql *q)
{
	return q->thread_rows;
}

struct xsp_sql_value xsp_sql_thread(struct xsp_sql *q, uint32_t pid, uint32_t tid)
{
	const struct xsp_thread_row *row = xsp_thread_rows_of(q->thread_rows, pid, tid, 0);

	xsp_sql_note(q, row != NULL ? 0 : -ENOMEM);
	return xsp_sql_integer(row != NULL ? (uint64_t)row->index + 1 : 0);
}

struct xsp_stacks *xsp_sql_stacks(struct xsp_sql *q)
{
	return q->stacks;
}

static void use_name(struct xsp_sql *q, xsp_name_id id)
{
	if (xsp_grow_zeroed(&q->used, &q->used_count, (size_t)id + 1) < 0)
		xsp_sql_note(q, -ENOMEM);
	else
		q->used[id] = true;
}

struct xsp_sql_value xsp_sql_name(struct xsp_sql *q, xsp_name_id id)
{
	xsp_name_id first = 0;

	xsp_sql_note(q, xsp_stacks_same_name(q->stacks, id, &first));
	use_name(q, first);
	return xsp_sql_integer(first);
}

static const char **find_other(struct xsp_sql *q, const char *text)
{
	const size_t length = strlen(text);
	uint64_t hash = xsp_text_hash(text, length);
	const char **other;

	while ((other = xsp_tally_find(&q->others, hash)) != NULL && strcmp(*other, text) != 0)
		hash++;
	if (other != NULL)
		return other;
	const char *copy = xsp_arena_copy(&q->texts, text, length);
	return copy != NULL ? xsp_tally_row(&q->others, hash, &copy) : NULL;
}

struct xsp_sql_value xsp_sql_other_name(struct xsp_sql *q, const char *text)
{
	const char **other = find_other(q, text);

	xsp_sql_note(q, other != NULL ? 0 : -ENOMEM);
	return xsp_sql_integer(other != NULL ? OTHER_NAMES + xsp_tally_index(&q->others, other)
					     : 0);
}

static void put_line(struct xsp_sql *q, uint64_t number, const struct xsp_python_line *l)
{
	char path[XSP_NAME_MAX + 1];

	snprintf(path, sizeof(path), "%.*s", (int)l->path_length, l->path);
	XSP_SQL_PUT(q, XSP_SQL_LINES, xsp_sql_integer(number), xsp_sql_text(path),
		    xsp_sql_if(l->line > 0, l->line), xsp_sql_text(l->function));
}

struct xsp_sql_value xsp_sql_line(struct xsp_sql *q, const struct xsp_span *span)
{
	struct xsp_python_line line;

	if (span->python == NULL || span->python_first >= span->python->count)
		return xsp_sql_if(false, 0);
	const struct xsp_capture_python_frame *frame = &span->python->frames[span->python_first];
	const uint32_t *known = xsp_u64map_get(&q->lines, frame->name);
	if (known != NULL)
		return xsp_sql_integer(*known);
	if (!xsp_timeline_python_line(q->x->view.timeline, frame, &line))
		return xsp_sql_if(false, 0);
	const uint32_t number = (uint32_t)q->lines.count + 1;
	xsp_sql_note(q, xsp_u64map_set(&q->lines, frame->name, number));
	put_line(q, number, &line);
	return xsp_sql_integer(number);
}

/* Nodes of depth 1 stand for "all threads". */
static void put_stacks(struct xsp_sql *q)
{
	for (uint32_t i = 0; (i = xsp_stacks_next(q->stacks, i)) != 0 && q->error == 0;) {
		const struct xsp_stack_node *n = xsp_stacks_node(q->stacks, i);
		if (n->depth < 2)
			continue;
		use_name(q, n->name);
		XSP_SQL_PUT(q, XSP_SQL_STACKS, xsp_sql_integer(i),
			    xsp_sql_if(n->depth > 2, n->parent), xsp_sql_integer(n->name),
			    xsp_sql_integer(n->depth - 2));
	}
}

/* Runs at the end: a range may get its text after its first span. */
static void put_names(struct xsp_sql *q)
{
	char buffer[XSP_TEXT_SHORT];

	for (size_t i = 0; i < q->used_count && q->error == 0; i++) {
		const char *name =
			q->used[i] ? xsp_timeline_name(q->x->view.timeline, (xsp_name_id)i) : NULL;
		if (q->used[i])
			XSP_SQL_PUT(q, XSP_SQL_NAMES, xsp_sql_integer(i),
				    xsp_sql_text(xsp_text_short(name != NULL ? name : "", buffer)));
	}
	for (size_t i = 0; i < q->others.count; i++)
		XSP_SQL_PUT(q, XSP_SQL_NAMES, xsp_sql_integer(OTHER_NAMES + i),
			    xsp_sql_text(q->others.rows[i]));
}

int xsp_sql_complete(struct xsp_sql *q)
{
	put_stacks(q);
	put_names(q);
	xsp_sql_note(q, q->error == 0 ? q->engine->complete(q->store) : 0);
	return q->error;
}
