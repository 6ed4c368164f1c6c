/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/sql/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/text.h"
#include "base/u64map.h"
#include "export/text.h"
#include "timeline/python.h"

#define OTHER_NAMES (1ULL << 32) /* numbers of names that are not the timeline's */
#define RUN_BITS 47 /* of the capture's id: six bytes in a row, and never negative */

struct xsp_sql {
	struct xsp_export *x;
	const struct xsp_sql_engine *engine;
	void *store; /* the engine's own */
	struct xsp_stacks *stacks;
	bool *used; /* names of the timeline's, by their ids */
	size_t used_count;
	struct xsp_u64map other_index; /* by hash */
	const char **others;
	size_t other_count, other_capacity;
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
	int rc = xsp_stacks_new(&x->view, &q->stacks);
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
	xsp_stacks_free(q->stacks);
	xsp_u64map_free(&q->other_index);
	xsp_u64map_free(&q->lines);
	xsp_arena_free(&q->texts);
	free(q->others);
	free(q->used);
	free(q);
}

int xsp_sql_put(struct xsp_sql *q, enum xsp_sql_table table, const struct xsp_sql_value *values)
{
	return q->engine->put(q->store, table, values);
}

/* ---- names, lines, stacks ---- */

struct xsp_stacks *xsp_sql_stacks(struct xsp_sql *q)
{
	return q->stacks;
}

static int use_name(struct xsp_sql *q, xsp_name_id id)
{
	size_t wanted = q->used_count ? q->used_count : 256;

	if (id >= q->used_count) {
		while (wanted <= id)
			wanted *= 2;
		bool *used = realloc(q->used, wanted);
		if (used == NULL)
			return -ENOMEM;
		memset(used + q->used_count, 0, wanted - q->used_count);
		q->used = used;
		q->used_count = wanted;
	}
	q->used[id] = true;
	return 0;
}

int xsp_sql_name(struct xsp_sql *q, xsp_name_id id, uint64_t *number)
{
	xsp_name_id first;
	int rc = xsp_stacks_same_name(q->stacks, id, &first);

	*number = first;
	return rc == 0 ? use_name(q, first) : rc;
}

int xsp_sql_other_name(struct xsp_sql *q, const char *text, uint64_t *number)
{
	size_t length = strlen(text);
	uint64_t hash = xsp_text_hash(text, length);
	const uint32_t *at;

	while ((at = xsp_u64map_get(&q->other_index, hash)) != NULL &&
	       strcmp(q->others[*at], text) != 0)
		hash++;
	if (at == NULL) {
		const char *copy = xsp_arena_copy(&q->texts, text, length);
		if (copy == NULL ||
		    xsp_grow(&q->others, &q->other_capacity, q->other_count + 1) < 0 ||
		    xsp_u64map_set(&q->other_index, hash, (uint32_t)q->other_count) < 0)
			return -ENOMEM;
		q->others[q->other_count++] = copy;
		*number = OTHER_NAMES + q->other_count - 1;
		return 0;
	}
	*number = OTHER_NAMES + *at;
	return 0;
}

static int put_line(struct xsp_sql *q, uint64_t number, const struct xsp_python_line *l)
{
	char path[XSP_NAME_MAX + 1];

	snprintf(path, sizeof(path), "%.*s", (int)l->path_length, l->path);
	return XSP_SQL_PUT(q, XSP_SQL_LINES, xsp_sql_integer(number), xsp_sql_text(path),
			   xsp_sql_if(l->line > 0, l->line), xsp_sql_text(l->function));
}

int xsp_sql_line(struct xsp_sql *q, const struct xsp_span *span, uint64_t *number)
{
	const struct xsp_section *section =
		xsp_details_find(span->details, XSP_SECTION_PYTHON, NULL);
	const struct xsp_capture_python *stack =
		section != NULL ? xsp_timeline_python(q->x->view.timeline, section) : NULL;
	struct xsp_python_line line;

	*number = 0;
	if (stack == NULL || stack->count == 0)
		return 0;
	const uint32_t *known = xsp_u64map_get(&q->lines, stack->frames[0].name);
	if (known != NULL) {
		*number = *known;
		return 0;
	}
	if (!xsp_timeline_python_line(q->x->view.timeline, &stack->frames[0], &line))
		return 0;
	*number = q->lines.count + 1;
	int rc = xsp_u64map_set(&q->lines, stack->frames[0].name, (uint32_t)*number);
	return rc == 0 ? put_line(q, *number, &line) : rc;
}

/* Nodes of depth 1 stand for "all threads". */
static int put_stacks(struct xsp_sql *q)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && (i = xsp_stacks_next(q->stacks, i)) != 0;) {
		const struct xsp_stack_node *n = xsp_stacks_node(q->stacks, i);
		if (n->depth < 2)
			continue;
		rc = use_name(q, n->name);
		if (rc == 0)
			rc = XSP_SQL_PUT(q, XSP_SQL_STACKS, xsp_sql_integer(i),
					 xsp_sql_if(n->depth > 2, n->parent),
					 xsp_sql_integer(n->name), xsp_sql_integer(n->depth - 2));
	}
	return rc;
}

/* At the end, as a range may get its text after its first span. */
static int put_names(struct xsp_sql *q)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < q->used_count; i++) {
		char buffer[XSP_TEXT_SHORT];
		const char *name =
			q->used[i] ? xsp_timeline_name(q->x->view.timeline, (xsp_name_id)i) : NULL;
		if (q->used[i])
			rc = XSP_SQL_PUT(
				q, XSP_SQL_NAMES, xsp_sql_integer(i),
				xsp_sql_text(xsp_text_short(name != NULL ? name : "", buffer)));
	}
	for (size_t i = 0; rc == 0 && i < q->other_count; i++)
		rc = XSP_SQL_PUT(q, XSP_SQL_NAMES, xsp_sql_integer(OTHER_NAMES + i),
				 xsp_sql_text(q->others[i]));
	return rc;
}

int xsp_sql_complete(struct xsp_sql *q)
{
	int rc = put_stacks(q);

	if (rc == 0)
		rc = put_names(q);
	return rc == 0 ? q->engine->complete(q->store) : rc;
}
