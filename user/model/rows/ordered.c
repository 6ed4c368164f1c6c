/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ordered.c - spans in order of their ends, read backwards, are begins and ends in falling order of time: a span's end,
 * then what is inside it, the last first, then its begin. So each row is read backwards into a second file, and that
 * one backwards again.
 */
#include "model/rows/ordered.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file_io.h"
#include "base/rows/grow.h"
#include "base/files/new_file.h"
#include "base/rows/order.h"

#define BLOCK_SPANS 170U /* 4 KiB: each row has one in memory */
#define NO_BLOCK UINT64_MAX
#define EVENTS 4096U /* of the second file in memory */

struct block {
	uint64_t before; /* the file offset of the row's block before it */
	uint64_t count;
	struct xsp_ordered_span spans[BLOCK_SPANS];
};

struct event {
	uint64_t time_ns;
	uint32_t name;
	uint32_t begins;
};

/* Spans that came late, sorted; read backwards. */
struct run {
	uint64_t at, left; /* position and number of those still in the first file only */
	struct xsp_ordered_span *read; /* read from it, before those */
	uint64_t count; /* so many */
};

struct row {
	struct block *open; /* the last one, not written yet */
	uint64_t last_ns; /* no ordered span ended later */
	struct xsp_ordered_span *late;
	size_t late_count, late_capacity;
	struct run *runs; /* of late ones, for lack of room */
	size_t run_count, run_capacity;
};

struct xsp_ordered {
	struct xsp_new_file *spans, *events;
	uint64_t written; /* bytes of written spans */
	struct row *rows;
	size_t row_count, row_capacity;
	size_t late; /* in memory */
	struct xsp_ordered_span *around; /* around the span at hand, while reading backwards */
	size_t depth, around_capacity;
	struct event buffer[EVENTS];
	size_t buffered;
	uint64_t events_written; /* how many */
	uint64_t time_ns; /* of the last event */
};

static int write_at(const struct xsp_new_file *f, const void *data, size_t size, uint64_t at)
{
	return xsp_write_at(xsp_new_file_descriptor(f), data, size, at);
}

static int read_at(const struct xsp_new_file *f, void *data, size_t size, uint64_t at)
{
	const long n = xsp_read_at(xsp_new_file_descriptor(f), data, size, at);

	return n < 0 ? (int)n : n < (long)size ? -EIO : 0;
}

int xsp_ordered_new(const char *path, struct xsp_ordered **out)
{
	struct xsp_ordered *o = calloc(1, sizeof(*o));
	int rc = -ENOMEM;

	*out = NULL;
	if (o != NULL)
		rc = xsp_new_file_open(path, NULL, &o->spans);
	if (rc == 0)
		rc = xsp_new_file_open(path, NULL, &o->events);
	if (rc < 0) {
		xsp_ordered_free(o);
		return rc;
	}
	*out = o;
	return 0;
}

void xsp_ordered_free(struct xsp_ordered *o)
{
	if (o == NULL)
		return;
	for (size_t i = 0; i < o->row_count; i++) {
		struct row *r = &o->rows[i];
		for (size_t k = 0; k < r->run_count; k++)
			free(r->runs[k].read);
		free(r->runs);
		free(r->open);
		free(r->late);
	}
	xsp_new_file_free(o->spans);
	xsp_new_file_free(o->events);
	free(o->rows);
	free(o->around);
	free(o);
}

/* ---- in ---- */

static int row_at(struct xsp_ordered *o, uint32_t index, struct row **out)
{
	if (xsp_grow(&o->rows, &o->row_capacity, (size_t)index + 1) < 0)
		return -ENOMEM;
	for (; o->row_count <= index; o->row_count++)
		o->rows[o->row_count] = (struct row){0};
	struct row *r = &o->rows[index];
	if (r->open == NULL) {
		r->open = malloc(sizeof(*r->open));
		if (r->open == NULL)
			return -ENOMEM;
		r->open->before = NO_BLOCK;
		r->open->count = 0;
	}
	*out = r;
	return 0;
}

/* Last one first: by the later end; if equal, the outer span, else the later begin. */
static XSP_ORDER(by_end, struct xsp_ordered_span,
		 XSP_RISING(end_ns) ?: XSP_FALLING(depth) ?: XSP_RISING(start_ns));

/* The late spans in memory become a run. */
static int end_run(struct row *r)
{
	if (r->late_count == 0)
		return 0;
	if (xsp_grow(&r->runs, &r->run_capacity, r->run_count + 1) < 0)
		return -ENOMEM;
	qsort(r->late, r->late_count, sizeof(*r->late), by_end);
	r->runs[r->run_count++] = (struct run){.read = r->late, .count = r->late_count};
	r->late = NULL;
	r->late_count = r->late_capacity = 0;
	return 0;
}

/* Makes room: writes all late spans in memory to the file, a run for each row. */
static int write_late(struct xsp_ordered *o)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < o->row_count; i++) {
		struct row *r = &o->rows[i];
		const size_t size = r->late_count * sizeof(*r->late);
		rc = end_run(r);
		if (rc < 0 || size == 0)
			continue;
		struct run *run = &r->runs[r->run_count - 1];
		rc = write_at(o->spans, run->read, size, o->written);
		free(run->read);
		*run = (struct run){.at = o->written, .left = run->count};
		o->written += size;
	}
	o->late = 0;
	return rc;
}

static int add_late(struct xsp_ordered *o, struct row *r, const struct xsp_ordered_span *span)
{
	int rc = o->late == XSP_ORDERED_LATE ? write_late(o) : 0;

	if (rc < 0)
		return rc;
	if (xsp_grow(&r->late, &r->late_capacity, r->late_count + 1) < 0)
		return -ENOMEM;
	r->late[r->late_count++] = *span;
	o->late++;
	return 0;
}

int xsp_ordered_add(struct xsp_ordered *o, uint32_t row, const struct xsp_ordered_span *span,
		    bool passed)
{
	struct row *r;
	int rc = row_at(o, row, &r);

	if (rc < 0)
		return rc;
	if (span->end_ns < r->last_ns || (passed && span->end_ns == r->last_ns))
		return add_late(o, r, span);
	r->last_ns = span->end_ns;
	if (r->open->count == BLOCK_SPANS) {
		rc = write_at(o->spans, r->open, sizeof(*r->open), o->written);
		if (rc < 0)
			return rc;
		r->open->before = o->written;
		r->open->count = 0;
		o->written += sizeof(*r->open);
	}
	r->open->spans[r->open->count++] = *span;
	return 0;
}

/* ---- backwards into the second file ---- */

/* Times fall: a time that would rise is damage, and becomes the last one. */
static int put_event(struct xsp_ordered *o, bool begins, uint32_t name, uint64_t time_ns)
{
	if (time_ns < o->time_ns)
		o->time_ns = time_ns;
	o->buffer[o->buffered++] =
		(struct event){.time_ns = o->time_ns, .name = name, .begins = begins};
	if (o->buffered < EVENTS)
		return 0;
	int rc = write_at(o->events, o->buffer, sizeof(o->buffer),
			  o->events_written * sizeof(struct event));
	o->events_written += o->buffered;
	o->buffered = 0;
	return rc;
}

/* Spans of its depth, or deeper, come after it. If the span around it is on another row, depth says nothing: then by
 * their times. NULL: all of them. */
static int close_to(struct xsp_ordered *o, const struct xsp_ordered_span *span)
{
	int rc = 0;

	while (rc == 0 && o->depth > 0) {
		const struct xsp_ordered_span *s = &o->around[o->depth - 1];
		if (span != NULL && s->start_ns <= span->start_ns &&
		    (s->depth < span->depth || s->start_ns < span->end_ns))
			break;
		o->depth--;
		rc = put_event(o, true, s->name, s->start_ns);
	}
	return rc;
}

static int add_backwards(struct xsp_ordered *o, const struct xsp_ordered_span *span)
{
	int rc = close_to(o, span);

	if (rc == 0)
		rc = put_event(o, false, span->name, span->end_ns);
	if (rc == 0 && xsp_grow(&o->around, &o->around_capacity, o->depth + 1) < 0)
		rc = -ENOMEM;
	if (rc == 0)
		o->around[o->depth++] = *span;
	return rc;
}

/* The run's last span that is left; *out NULL: none is. */
static int last_of(const struct xsp_ordered *o, struct run *run,
		   const struct xsp_ordered_span **out)
{
	int rc = 0;

	if (run->count == 0 && run->left > 0) {
		run->count = run->left < BLOCK_SPANS ? run->left : BLOCK_SPANS;
		run->left -= run->count;
		if (run->read == NULL)
			run->read = calloc(BLOCK_SPANS, sizeof(*run->read));
		rc = run->read == NULL
			     ? -ENOMEM
			     : read_at(o->spans, run->read, run->count * sizeof(*run->read),
				       run->at + run->left * sizeof(*run->read));
	}
	*out = rc == 0 && run->count > 0 ? &run->read[run->count - 1] : NULL;
	return rc;
}

/* Those after `before` (NULL: all of them). */
static int merge_late(struct xsp_ordered *o, struct row *r, const struct xsp_ordered_span *before)
{
	int rc = 0;

	while (rc == 0 && r->run_count > 0) {
		const struct xsp_ordered_span *best = NULL, *last;
		struct run *from = NULL;
		for (size_t i = 0; rc == 0 && i < r->run_count; i++) {
			rc = last_of(o, &r->runs[i], &last);
			if (last == NULL || (best != NULL && by_end(last, best) <= 0))
				continue;
			best = last;
			from = &r->runs[i];
		}
		if (rc < 0 || best == NULL || (before != NULL && by_end(before, best) >= 0))
			return rc;
		from->count--; /* the span stays in place until the next call */
		rc = add_backwards(o, best);
	}
	return rc;
}

static int turn_row(struct xsp_ordered *o, struct row *r)
{
	int rc = end_run(r);

	if (rc < 0)
		return rc;
	for (;;) {
		for (uint64_t i = r->open->count; rc == 0 && i > 0; i--) {
			rc = merge_late(o, r, &r->open->spans[i - 1]);
			if (rc == 0)
				rc = add_backwards(o, &r->open->spans[i - 1]);
		}
		if (rc < 0 || r->open->before == NO_BLOCK)
			break;
		rc = read_at(o->spans, r->open, sizeof(*r->open), r->open->before);
	}
	if (rc == 0)
		rc = merge_late(o, r, NULL);
	return rc == 0 ? close_to(o, NULL) : rc;
}

/* ---- out ---- */

static int emit_buffer(struct xsp_ordered *o, xsp_ordered_fn fn, void *ctx)
{
	int rc = 0;

	while (rc == 0 && o->buffered > 0) {
		const struct event *e = &o->buffer[--o->buffered];
		rc = fn(ctx, e->begins, e->name, e->time_ns);
	}
	return rc;
}

int xsp_ordered_emit(struct xsp_ordered *o, uint32_t row, xsp_ordered_fn fn, void *ctx)
{
	if (row >= o->row_count || o->rows[row].open == NULL)
		return 0;
	o->depth = 0;
	o->buffered = 0;
	o->events_written = 0;
	o->time_ns = UINT64_MAX;
	int rc = turn_row(o, &o->rows[row]);
	if (rc == 0)
		rc = emit_buffer(o, fn, ctx);
	while (rc == 0 && o->events_written > 0) {
		o->events_written -= EVENTS;
		o->buffered = EVENTS;
		rc = read_at(o->events, o->buffer, sizeof(o->buffer),
			     o->events_written * sizeof(struct event));
		if (rc == 0)
			rc = emit_buffer(o, fn, ctx);
	}
	free(o->rows[row].open);
	o->rows[row].open = NULL;
	return rc;
}
