/* SPDX-License-Identifier: BSD-2-Clause */
/* csv.c - spans as RFC 4180, one a line; the columns are those of docs/sql.md. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/units.h"
#include "export/export_private.h"
#include "export/out.h"
#include "export/text.h"
#include "model/rendered.h"
#include "model/rows/thread_rows.h"
#include "model/spans/category.h"

struct csv {
	struct xsp_categories categories;
	struct xsp_renderer *names;
	struct xsp_thread_rows *rows;
	uint64_t start_ns; /* when the recording began */
	const struct xsp_capture_probe *probes;
	const struct xsp_capture_module *modules;
	size_t probe_count, module_count;
	uint64_t calls_left_out;
};

static char *render_name(void *ctx, const char *name, size_t *length)
{
	char buffer[XSP_TEXT_SHORT];

	(void)ctx;
	return xsp_csv_quoted(xsp_text_short(name, buffer), length);
}

static void put_text(struct xsp_export *x, const char *text)
{
	size_t length = 0;
	char *field = xsp_csv_quoted(text, &length);

	if (field == NULL)
		xsp_out_fail(x->out, -ENOMEM);
	else
		xsp_out_write(x->out, field, length);
	free(field);
}

/* Our own categories need no quotes; those of a trace may be anything. */
static void put_category(struct xsp_export *x, unsigned category)
{
	const struct csv *c = x->state;

	if (category < XSP_CATEGORIES)
		xsp_out_text(x->out, c->categories.names[category]);
	else
		put_text(x, c->categories.names[category]);
}

static int csv_begin(struct xsp_export *x)
{
	struct csv *c = x->state;
	uint64_t end_ns;

	xsp_capture_window(x->view.reader, &c->start_ns, &end_ns);
	c->probe_count = xsp_capture_probes(x->view.reader, &c->probes);
	c->module_count = xsp_capture_modules(x->view.reader, &c->modules);
	int rc = xsp_renderer_new(x->view.timeline, render_name, NULL, &c->names);
	if (rc == 0)
		rc = xsp_categories_init(&c->categories, &x->view);
	if (rc == 0)
		rc = xsp_thread_rows_new(&x->view, &c->rows);
	xsp_out_text(
		x->out,
		"id,parent_id,pid,tid,thread,fiber,category,name,provider,module,depth,ending,start_ns,end_ns,duration_ns,self_ns,cpu_ns,self_cpu_ns,correlation,operator_id,cut,value\r\n");
	return rc;
}

/* Times before the recording began are negative. */
static char *put_time(char *p, uint64_t ns, uint64_t since_ns)
{
	if (ns < since_ns)
		*p++ = '-';
	return xsp_put_u64(p, ns < since_ns ? since_ns - ns : ns - since_ns);
}

/* Writes one more field, which is empty if it is not known. */
static char *put_if(char *p, bool known, uint64_t value)
{
	*p++ = ',';
	return known ? xsp_put_u64(p, value) : p;
}

static void put_thread(struct xsp_export *x, const struct xsp_thread_row *row)
{
	char *p = xsp_out_reserve(x->out, 64);

	p = put_if(p, true, row->pid);
	p = put_if(p, true, row->thread_tid);
	*p++ = ',';
	xsp_out_commit(x->out, p);
	put_text(x, xsp_thread_rows_comm(&x->view, row->root_pid, row->root_tid));
}

static void put_ids(struct xsp_export *x, const struct xsp_span *s,
		    const struct xsp_thread_row *row)
{
	char *p = xsp_out_reserve(x->out, 64);

	p = xsp_put_u64(p, s->serial + 1);
	xsp_out_commit(x->out, put_if(p, s->parent != 0, s->parent));
	put_thread(x, row);
	p = xsp_out_reserve(x->out, 32);
	p = put_if(p, true, s->row);
	*p++ = ',';
	xsp_out_commit(x->out, p);
}

static void put_times(struct xsp_export *x, const struct xsp_span *s, uint32_t correlation,
		      uint64_t op)
{
	const struct csv *c = x->state;
	const bool measured = xsp_span_has_duration(s);
	char *p = xsp_out_reserve(x->out, 320);

	p = put_if(p, true, s->depth);
	*p++ = ',';
	p = stpcpy(p, xsp_ending_name(xsp_ending_of(s)));
	*p++ = ',';
	p = put_time(p, s->start_ns, c->start_ns);
	*p++ = ',';
	p = put_time(p, s->end_ns, c->start_ns);
	p = put_if(p, measured, s->end_ns - s->start_ns);
	p = put_if(p, measured, s->self_ns);
	p = put_if(p, measured && s->cpu_ns != XSP_CPU_UNKNOWN, s->cpu_ns);
	p = put_if(p, measured && s->self_cpu_ns != XSP_CPU_UNKNOWN, s->self_cpu_ns);
	p = put_if(p, correlation != 0, correlation);
	p = put_if(p, op != 0, op);
	p = put_if(p, true, (s->flags & XSP_SPAN_CUT) != 0);
	xsp_out_commit(x->out, XSP_PUT(p, ",\r\n"));
}

static int put_span(struct xsp_export *x, const struct xsp_span *s, uint32_t correlation,
		    uint64_t op)
{
	const struct csv *c = x->state;
	const struct xsp_capture_probe *probe =
		s->probe < c->probe_count ? &c->probes[s->probe] : NULL;
	const bool in_module = probe != NULL && probe->module < c->module_count;
	const struct xsp_thread_row *row = xsp_thread_rows_get(c->rows, s);
	const struct xsp_rendered *name = xsp_renderer_get(c->names, s->name);

	if (row == NULL || name == NULL)
		return -ENOMEM;
	put_ids(x, s, row);
	put_category(x, xsp_category_of(&c->categories, s));
	xsp_out_text(x->out, ",");
	xsp_out_write(x->out, name->text, name->length);
	xsp_out_text(x->out, ",");
	put_text(x, probe != NULL ? probe->provider : "");
	xsp_out_text(x->out, ",");
	put_text(x, in_module ? c->modules[probe->module].path : "");
	put_times(x, s, correlation, op);
	return 0;
}

static int csv_span(struct xsp_export *x, const struct xsp_span *s)
{
	if (s->call_follows)
		return 0;
	return put_span(x, s, 0, s->op != 0 ? s->op : s->user);
}

/* A call that only CUPTI saw is not a span. */
static int csv_call(struct xsp_export *x, const struct xsp_gpu_call *call)
{
	struct csv *c = x->state;

	if (call->span != NULL)
		return put_span(x, call->span, call->correlation, call->external);
	c->calls_left_out++;
	return 0;
}

/* A moment: fills those of a span's columns that it has. */
static int csv_value(struct xsp_export *x, const struct xsp_value *v)
{
	const struct csv *c = x->state;
	const struct xsp_thread_row *row = xsp_thread_rows_of(c->rows, v->pid, v->tid, 0);
	const struct xsp_rendered *name = xsp_renderer_get(c->names, v->name);
	char number[XSP_UNITS_SIZE];

	if (row == NULL || name == NULL)
		return -ENOMEM;
	xsp_out_text(x->out, ",");
	put_thread(x, row);
	xsp_out_text(x->out, ",,value,");
	xsp_out_write(x->out, name->text, name->length);
	char *p = XSP_PUT(xsp_out_reserve(x->out, 64), ",,,,,");
	p = put_time(p, v->time_ns, c->start_ns);
	*p++ = ',';
	xsp_out_commit(x->out, put_time(p, v->time_ns, c->start_ns));
	xsp_out_printf(x->out, ",,,,,,,,%s\r\n", xsp_format_real(number, v->value));
	return 0;
}

static int csv_end(struct xsp_export *x)
{
	const struct csv *c = x->state;
	char **text = x->options.note;

	if (text != NULL && c->calls_left_out > 0 &&
	    asprintf(text,
		     "without %" PRIu64
		     " calls of CUDA's that only CUPTI saw: .json and .db have them",
		     c->calls_left_out) < 0) {
		*text = NULL;
		return -ENOMEM;
	}
	return 0;
}

static void csv_discard(struct xsp_export *x)
{
	struct csv *c = x->state;

	xsp_categories_clear(&c->categories);
	xsp_renderer_free(c->names);
	xsp_thread_rows_free(c->rows);
}

const struct xsp_export_format xsp_format_csv = {
	.suffix = ".csv",
	.title = "spans as a table",
	.state_size = sizeof(struct csv),
	.begin = csv_begin,
	.span = csv_span,
	.call = csv_call,
	.value = csv_value,
	.end = csv_end,
	.discard = csv_discard,
};
