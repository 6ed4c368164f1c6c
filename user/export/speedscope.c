/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * speedscope.c - speedscope's own format: an evented profile for each row, with names written once.
 * speedscope opens such files at sizes at which its import of Chrome traces never finishes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/export_private.h"
#include "base/text.h"
#include "export/out.h"
#include "export/text.h"
#include "model/rows/nested.h"
#include "model/run_stats.h"

struct speedscope {
	struct xsp_nested spans; /* a kind is a frame of speedscope */
	uint64_t start_ns; /* when the recording began */
	uint64_t from_ns, end_ns; /* the range that is written */
	const char *separator;
};

static int speedscope_begin(struct xsp_export *x)
{
	struct speedscope *s = x->state;

	xsp_capture_window(x->view.reader, &s->start_ns, &s->end_ns);
	xsp_timeline_window(x->view.timeline, &s->from_ns, &s->end_ns);
	return xsp_nested_init(&s->spans, &x->view, x->options.path);
}

static int speedscope_span(struct xsp_export *x, const struct xsp_span *span)
{
	return xsp_nested_span(&((struct speedscope *)x->state)->spans, span);
}

static char *put_time(const struct speedscope *s, char *p, uint64_t ns)
{
	return xsp_put_u64(p, ns > s->start_ns ? ns - s->start_ns : 0);
}

static int put_event(void *ctx, bool begins, uint32_t frame, uint64_t time_ns)
{
	struct xsp_export *x = ctx;
	struct speedscope *s = x->state;
	char *p = stpcpy(xsp_out_reserve(x->out, 96), s->separator);

	p = begins ? XSP_PUT(p, "{\"type\":\"O\",\"frame\":")
		   : XSP_PUT(p, "{\"type\":\"C\",\"frame\":");
	p = xsp_put_u64(p, frame);
	p = XSP_PUT(p, ",\"at\":");
	p = put_time(s, p, time_ns);
	*p++ = '}';
	xsp_out_commit(x->out, p);
	s->separator = ",\n";
	if (time_ns > s->end_ns)
		s->end_ns = time_ns;
	return 0;
}

static void put_profile_name(struct xsp_export *x, const struct xsp_thread_row *row)
{
	char process[256], name[400];

	xsp_run_process_name(x->view.reader, row->root_pid, process, sizeof(process));
	snprintf(name, sizeof(name), "%s (pid %u) thread %u (%s)", process, row->pid,
		 row->thread_tid, xsp_thread_rows_comm(&x->view, row->root_pid, row->root_tid));
	if (row->number > 0)
		xsp_join(name, sizeof(name), "", " stack %u", row->number);
	xsp_out_json(x->out, name);
}

static int put_profile(struct xsp_export *x, const struct xsp_thread_row *row)
{
	struct speedscope *s = x->state;
	char *p;

	xsp_out_text(x->out, row->index == 0 ? "\n{\"type\":\"evented\",\"name\":"
					     : ",\n{\"type\":\"evented\",\"name\":");
	put_profile_name(x, row);
	xsp_out_text(x->out, ",\"unit\":\"nanoseconds\",\"startValue\":");
	xsp_out_commit(x->out, put_time(s, xsp_out_reserve(x->out, 32), s->from_ns));
	xsp_out_text(x->out, ",\"events\":[\n");
	s->separator = "";
	int rc = xsp_ordered_emit(s->spans.spans, row->index, put_event, x);
	xsp_out_text(x->out, "],\"endValue\":");
	p = put_time(s, xsp_out_reserve(x->out, 32), s->end_ns);
	*p++ = '}';
	xsp_out_commit(x->out, p);
	return rc;
}

static void put_frame(struct xsp_export *x, const struct xsp_span_kind *frame, bool first)
{
	const char *name = xsp_timeline_name(x->view.timeline, frame->name);
	char buffer[XSP_TEXT_SHORT], *text = NULL;

	xsp_out_text(x->out, first ? "{\"name\":" : ",\n{\"name\":");
	name = xsp_text_short(name != NULL ? name : "", buffer);
	if (frame->ending != XSP_RETURNED && asprintf(&text, "%s [end not seen]", name) < 0) {
		xsp_out_fail(x->out, -ENOMEM);
		return;
	}
	xsp_out_json(x->out, text != NULL ? text : name);
	xsp_out_text(x->out, "}");
	free(text);
}

/* Writes the title of the whole, with what is missing. */
static void put_name(struct xsp_export *x)
{
	char losses[160], *text = NULL;

	if (!xsp_run_losses_line(x->view.reader, x->view.timeline, losses, sizeof(losses)))
		xsp_out_json(x->out, x->options.trace_name);
	else if (asprintf(&text, "%s (%s)", x->options.trace_name, losses) < 0)
		xsp_out_fail(x->out, -ENOMEM);
	else
		xsp_out_json(x->out, text);
	free(text);
}

static int speedscope_end(struct xsp_export *x)
{
	const struct speedscope *s = x->state;
	int rc = 0;

	xsp_out_text(x->out,
		     "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
		     "\"exporter\":\"xsptrace " XSP_VERSION "\",\n\"name\":");
	put_name(x);
	xsp_out_text(x->out, ",\n\"profiles\":[");
	for (size_t i = 0; rc == 0 && i < xsp_thread_rows_count(s->spans.rows); i++)
		rc = put_profile(x, xsp_thread_rows_at(s->spans.rows, i));
	xsp_out_text(x->out, "],\n\"shared\":{\"frames\":[\n");
	for (size_t i = 0; i < s->spans.kinds.count; i++)
		put_frame(x, &s->spans.kinds.rows[i], i == 0);
	xsp_out_text(x->out, "]}}\n");
	return rc;
}

static void speedscope_discard(struct xsp_export *x)
{
	xsp_nested_clear(&((struct speedscope *)x->state)->spans);
}

const struct xsp_export_format xsp_format_speedscope = {
	.suffix = ".speedscope.json",
	.title = "speedscope",
	.state_size = sizeof(struct speedscope),
	.begin = speedscope_begin,
	.span = speedscope_span,
	.end = speedscope_end,
	.discard = speedscope_discard,
};
