/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_script.c - text as `perf script` prints it: a sample per span. Its period is the span's self
 * time in ns, and its stack holds the spans open around it. Four readers accept this form; text.h
 * and docs/formats.md have the rules.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/text.h"
#include "base/rows/u64map.h"
#include "export/export_private.h"
#include "export/out.h"
#include "export/text.h"
#include "model/rendered.h"
#include "model/rows/thread_rows.h"
#include "model/stacks/off_cpu.h"

/* perf itself keeps this many (kernel.perf_event_max_stack). With deep recursion the text would
 * otherwise grow with the square of the depth. */
#define FRAMES_MAX 127

struct comm {
	char text[32];
};

struct perf {
	struct xsp_renderer *names;
	struct xsp_renderer *frames; /* native frames */
	struct xsp_thread_rows *rows;
	const struct xsp_capture_probe *probes;
	const struct xsp_capture_module *modules;
	size_t probe_count, module_count;
	struct xsp_u64map first_probe; /* by the hash of a function's name */
	char **dso; /* by module, printable */
	struct comm *comms; /* by row: the name in its text */
	size_t comms_capacity;
	struct xsp_off_reported reported;
};

static uint64_t key_of(const char *name)
{
	return xsp_text_hash(name, strlen(name));
}

static int index_probes(struct perf *f)
{
	int rc = 0;

	for (size_t i = 0; i < f->probe_count && rc == 0; i++) {
		const struct xsp_capture_probe *p = &f->probes[i];
		if (p->kind == XSP_PROBE_FUNCTION && p->name != NULL &&
		    xsp_u64map_get(&f->first_probe, key_of(p->name)) == NULL)
			rc = xsp_u64map_set(&f->first_probe, key_of(p->name), (uint32_t)i);
	}
	return rc;
}

static int name_modules(struct perf *f)
{
	f->dso = calloc(f->module_count + 1, sizeof(char *));
	for (size_t i = 0; f->dso && i < f->module_count; i++) {
		f->dso[i] = xsp_text_dso(f->modules[i].path ? f->modules[i].path : "");
		if (f->dso[i] == NULL)
			return -ENOMEM;
	}
	return f->dso ? 0 : -ENOMEM;
}

/* One frame line: "\t   ADDR symbol+0x0 (dso)\n". The offset is always there: Perfetto splits at
 * the last '+', which could be an operator's. Annotations have no address: 0. */
static char *render(const char *name, uint64_t addr, const char *dso, size_t *length)
{
	size_t n;
	char *symbol = xsp_text_symbol(name, &n);
	char *line = symbol ? malloc(n + strlen(dso) + 48) : NULL;

	if (line) {
		char *p = XSP_PUT(line, "\t   ");
		p = xsp_put_hex(p, addr);
		*p++ = ' ';
		p = (char *)memcpy(p, symbol, n) + n;
		p = XSP_PUT(p, "+0x0 (");
		p = stpcpy(p, dso);
		p = XSP_PUT(p, ")\n");
		*length = (size_t)(p - line);
	}
	free(symbol);
	return line;
}

static char *render_frame(void *ctx, const char *name, size_t *length)
{
	const struct perf *f = ctx;
	const uint32_t *probe = xsp_u64map_get(&f->first_probe, key_of(name));
	const char *dso = probe != NULL ? "[unknown]" : "[user_annotation]";
	uint64_t addr = 0;

	if (probe != NULL) {
		const struct xsp_capture_probe *p = &f->probes[*probe];
		addr = p->addr;
		if (p->module < f->module_count)
			dso = f->dso[p->module];
	}
	return render(name, addr, dso, length);
}

/* A native function: the capture has neither its address nor its file. */
static char *render_native(void *ctx, const char *name, size_t *length)
{
	(void)ctx;
	return render(name, 0, "[unknown]", length);
}

static int perf_begin(struct xsp_export *x)
{
	struct perf *f = x->state;
	int rc;

	f->probe_count = xsp_capture_probes(x->view.reader, &f->probes);
	f->module_count = xsp_capture_modules(x->view.reader, &f->modules);
	rc = index_probes(f);
	if (rc == 0)
		rc = name_modules(f);
	if (rc == 0)
		rc = xsp_renderer_new(x->view.timeline, render_frame, f, &f->names);
	if (rc == 0)
		rc = xsp_renderer_new(x->view.timeline, render_native, NULL, &f->frames);
	if (rc == 0)
		rc = xsp_thread_rows_new(&x->view, &f->rows);
	return rc;
}

static void perf_discard(struct xsp_export *x)
{
	struct perf *f = x->state;

	xsp_renderer_free(f->names);
	xsp_renderer_free(f->frames);
	xsp_thread_rows_free(f->rows);
	for (size_t i = 0; f->dso && i < f->module_count; i++)
		free(f->dso[i]);
	free(f->dso);
	xsp_u64map_free(&f->first_probe);
	free(f->comms);
	xsp_off_reported_free(&f->reported);
}

/* "comm pid/tid " */
static void write_row_text(struct xsp_thread_row *row, const char *name)
{
	char comm[48];
	char *p = row->text;

	xsp_text_comm(comm, sizeof(comm), name);
	p = (char *)memcpy(p, comm, strlen(comm)) + strlen(comm);
	*p++ = ' ';
	p = xsp_put_u64(p, row->pid);
	*p++ = '/';
	p = xsp_put_u64(p, row->tid);
	*p++ = ' ';
	row->text_length = (unsigned)(p - row->text);
}

/* Makes the row's text have its thread's current name: threads rename themselves. 0 or -ENOMEM. */
static int prepare_row(struct xsp_export *x, struct xsp_thread_row *row)
{
	struct perf *f = x->state;
	const char *now = xsp_thread_rows_comm(&x->view, row->root_pid, row->root_tid);

	if (xsp_grow(&f->comms, &f->comms_capacity, (size_t)row->index + 1) < 0)
		return -ENOMEM;
	struct comm *written = &f->comms[row->index];
	if (row->text_length > 0 && strcmp(written->text, now) == 0)
		return 0;
	snprintf(written->text, sizeof(written->text), "%s", now);
	write_row_text(row, now);
	return 0;
}

static int put_frame(struct xsp_export *x, const struct perf *f, xsp_name_id id)
{
	const struct xsp_rendered *frame =
		xsp_renderer_get(id & XSP_PATH_FRAME ? f->frames : f->names, id & ~XSP_PATH_FRAME);

	if (frame == NULL)
		return -ENOMEM;
	xsp_out_write(x->out, frame->text, frame->length);
	return 0;
}

/* Writes time and amount; the event's name says which weight it is. */
static void put_head(struct xsp_export *x, const struct xsp_thread_row *row, uint64_t ns)
{
	static const char *const events[XSP_WEIGHTS] = {"", " self-ns: \n", " self-cpu-ns: \n",
							" off-cpu-ns: \n", " cpu-clock: \n"};
	char *p = xsp_out_reserve(x->out, 256);

	p = (char *)memcpy(p, row->text, row->text_length) + row->text_length;
	p = xsp_put_u64(p, row->last_ns / 1000000000);
	*p++ = '.';
	p = xsp_put_digits(p, row->last_ns % 1000000000 / 1000, 6);
	p = XSP_PUT(p, ":     ");
	/* stackcollapse-perf.pl counts "0" as 1, and "00" as nothing */
	p = ns > 0 ? xsp_put_u64(p, ns) : XSP_PUT(p, "00");
	xsp_out_commit(x->out, p);
	xsp_out_text(x->out, events[x->view.weight]);
}

static int put_callers(struct xsp_export *x, const struct perf *f, const xsp_name_id *around,
		       uint32_t depth)
{
	int rc = 0;

	for (uint32_t kept = 1; rc == 0 && depth > 0 && kept < FRAMES_MAX; kept++)
		rc = put_frame(x, f, around[--depth]);
	if (depth > 0)
		xsp_out_text(x->out, "\t   0 [outer_frames_cut]+0x0 ([xsptrace])\n");
	xsp_out_write(x->out, "\n", 1);
	return rc;
}

static int perf_span(struct xsp_export *x, const struct xsp_span *span)
{
	struct perf *f = x->state;
	struct xsp_thread_row *row = xsp_thread_rows_get(f->rows, span);
	const xsp_name_id *around = span->path != NULL ? span->path : span->ancestors;
	uint32_t depth = span->path != NULL ? span->path_length : span->depth;

	if (row == NULL || prepare_row(x, row) < 0)
		return -ENOMEM;
	/* speedscope throws if time goes back on a thread, and spans of a dropped stack come
	 * late */
	if (span->end_ns > row->last_ns)
		row->last_ns = span->end_ns;

	put_head(x, row, xsp_view_self_ns(&x->view, span));
	int rc = put_frame(x, f, span->name);
	return rc == 0 ? put_callers(x, f, around, depth) : rc;
}

static int put_off(struct xsp_export *x, struct xsp_thread_row *row, uint64_t now_ns,
		   const struct xsp_wait *w, const struct xsp_off_part *part)
{
	size_t length;

	if (prepare_row(x, row) < 0)
		return -ENOMEM;
	if (now_ns > row->last_ns)
		row->last_ns = now_ns;
	char *symbol = xsp_text_symbol(xsp_off_frame(&x->view, part->why), &length);
	if (symbol == NULL)
		return -ENOMEM;
	put_head(x, row, part->ns);
	xsp_out_printf(x->out, "\t   0 %s+0x0 ([xsptrace])\n", symbol);
	free(symbol);
	return put_callers(x, x->state, w != NULL ? w->path : NULL, part->length);
}

static int perf_wait(struct xsp_export *x, const struct xsp_wait *w)
{
	struct perf *f = x->state;
	const struct xsp_span thread = {.pid = w->pid, .tid = w->tid};
	struct xsp_thread_row *row = xsp_thread_rows_get(f->rows, &thread);
	struct xsp_off_part parts[XSP_OFF_PARTS];
	const size_t count = xsp_off_parts(w, parts);
	int rc = row != NULL ? xsp_off_reported_add(&f->reported, w) : -ENOMEM;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = put_off(x, row, w->back_ns, w, &parts[i]);
	return rc;
}

static int put_rest(void *ctx, const struct xsp_timeline_thread *t, uint64_t ns)
{
	struct xsp_export *x = ctx;
	struct perf *f = x->state;
	const struct xsp_span thread = {.pid = t->pid, .tid = t->tid};
	struct xsp_thread_row *row = xsp_thread_rows_get(f->rows, &thread);
	const struct xsp_off_part rest = {.why = XSP_OFF_REST, .ns = ns};
	uint64_t start, end;

	xsp_timeline_window(x->view.timeline, &start, &end);
	return row != NULL ? put_off(x, row, end, NULL, &rest) : -ENOMEM;
}

static int perf_end(struct xsp_export *x)
{
	struct perf *f = x->state;

	return x->view.weight == XSP_WEIGHT_OFF_CPU
		       ? xsp_off_rest(&x->view, &f->reported, put_rest, x)
		       : 0;
}

const struct xsp_export_format xsp_format_perf_script = {
	.suffix = ".perf",
	.title = "perf-script text",
	.state_size = sizeof(struct perf),
	.begin = perf_begin,
	.span = perf_span,
	.wait = perf_wait,
	.stacks = true,
	.end = perf_end,
	.discard = perf_discard,
};
