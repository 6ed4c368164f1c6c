/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "base/rows/grow.h"
#include "export/chrome/json.h"
#include "export/chrome/parts.h"
#include "timeline/python.h"

struct open_line {
	struct xsp_capture_python_frame frame;
	uint64_t start_ns, end_ns;
	/* what was before it on its level has ended then: it cannot start sooner */
	uint64_t least_ns;
};

/* The open lines of a thread, outermost first. */
struct open_lines {
	/* after the `count` open lines: the last lines of deeper levels, which have ended */
	struct open_line *list;
	size_t count, deepest, capacity;
};

struct xsp_python_rows {
	struct open_lines *of; /* by index of the row */
	size_t count;
};

void xsp_python_rows_free(struct xsp_python_rows *p)
{
	for (size_t i = 0; p != NULL && i < p->count; i++)
		free(p->of[i].list);
	if (p != NULL)
		free(p->of);
	free(p);
}

static void put_line(struct xsp_export *x, const struct xsp_thread_row *row,
		     const struct open_line *l)
{
	xsp_out_text(x->out, "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"");
	xsp_chrome_python_line(x, &l->frame);
	char *p = XSP_PUT(xsp_out_reserve(x->out, 256), "\"");
	p = xsp_chrome_put_place(x, p, row->pid, row->tid, l->start_ns, l->end_ns - l->start_ns);
	xsp_out_commit(x->out, XSP_PUT(p, "\"seen at spans\":true}},\n"));
}

/* Writes the lines beyond `left`, outer ones first: of two with the same times, readers take the
 * first as the outer one. */
static void end_lines(struct xsp_export *x, const struct xsp_thread_row *row, struct open_lines *o,
		      size_t left)
{
	for (size_t i = left; i < o->count; i++)
		put_line(x, row, &o->list[i]);
	o->count = left;
}

static void extend(struct open_line *l, uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns < l->start_ns)
		l->start_ns = start_ns > l->least_ns ? start_ns : l->least_ns;
	if (end_ns > l->end_ns)
		l->end_ns = end_ns;
}

/* When the last line on the next level ended. */
static uint64_t ended_ns(const struct open_lines *o)
{
	return o->count < o->deepest ? o->list[o->count].end_ns : 0;
}

static int begin_line(struct open_lines *o, const struct xsp_capture_python_frame *frame,
		      const struct xsp_span *span)
{
	struct open_line l = {.frame = *frame, .end_ns = span->end_ns, .least_ns = ended_ns(o)};

	if (o->count > 0 && o->list[o->count - 1].least_ns > l.least_ns)
		l.least_ns = o->list[o->count - 1].least_ns;
	l.start_ns = span->start_ns > l.least_ns ? span->start_ns : l.least_ns;
	const int rc = XSP_APPEND(o->list, o->capacity, o->count, l);
	o->deepest = o->count > o->deepest ? o->count : o->deepest;
	return rc;
}

/* A span comes when it ends. So a span around others comes after them, and has the outer ones of
 * their lines. */
static int add(struct xsp_export *x, const struct xsp_thread_row *row, struct open_lines *o,
	       const struct xsp_capture_python *stack, const struct xsp_span *span)
{
	const uint32_t count = stack->count < XSP_PYTHON_MAX ? stack->count : XSP_PYTHON_MAX;
	const struct xsp_capture_python_frame *innermost = stack->frames;
	uint32_t same = 0;

	while (same < count && same < o->count &&
	       o->list[same].frame.name == innermost[stack->count - 1 - same].name)
		extend(&o->list[same++], span->start_ns, span->end_ns);
	end_lines(x, row, o, same);
	int rc = 0;
	for (uint32_t i = same; i < count && rc == 0; i++) {
		if (ended_ns(o) >= span->end_ns)
			break;
		rc = begin_line(o, &innermost[stack->count - 1 - i], span);
	}
	return rc;
}

int xsp_python_rows_span(struct xsp_export *x, struct xsp_python_rows **p,
			 const struct xsp_span *span)
{
	const struct xsp_section *section =
		xsp_details_find(span->details, XSP_SECTION_PYTHON, NULL);
	const struct xsp_capture_python *stack =
		section != NULL && xsp_span_has_duration(span)
			? xsp_timeline_python(x->view.timeline, section)
			: NULL;

	if (stack == NULL || stack->count == 0)
		return 0;
	const struct xsp_thread_row *row = xsp_chrome_row(x, span->pid, span->tid, XSP_PYTHON_ROW);
	if (*p == NULL)
		*p = calloc(1, sizeof(**p));
	if (row == NULL || *p == NULL ||
	    xsp_grow_zeroed(&(*p)->of, &(*p)->count, (size_t)row->index + 1) < 0)
		return -ENOMEM;
	return add(x, row, &(*p)->of[row->index], stack, span);
}

void xsp_python_rows_end(struct xsp_export *x, struct xsp_python_rows *p)
{
	for (size_t i = 0; p != NULL && i < p->count; i++)
		if (p->of[i].count > 0)
			end_lines(x, xsp_thread_rows_at(xsp_chrome_of(x)->rows, i), &p->of[i], 0);
}
