/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chrome.c - Chrome trace JSON as Kineto (PyTorch's profiler) writes it: same keys in the same
 * order, same time base, same rows. docs/formats.md lists our own keys.
 *
 * pid and tid of slices are numbers only: speedscope throws at anything else.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/format/json.h"
#include "catalog/providers.h"
#include "export/chrome/json.h"
#include "export/chrome/parts.h"
#include "export/export_private.h"
#include "export/text.h"
#include "model/spans/scope.h"
#include "model/spans/sequence.h"
#include "timeline/torch_args.h"
#include "timeline/windows.h"

/* Kineto's "three months". Time stamps are relative to a multiple of this, so they stay exact in a
 * double (below 2^53). It also lets traces of several processes be merged. */
#define BASE_PERIOD_NS (7889238ULL * 1000000000ULL)
/* The row of the trace span; process ids are at most 2^22, so it is free. */
#define SPANS_PID 0x10000000U
#define SPANS_SORT_INDEX 0x20000000U

/* Spans of a row that ended together without exits of their own, innermost first. They are written
 * when their number is known. */
struct held {
	struct xsp_span *spans;
	size_t count, capacity;
};

struct chrome {
	struct xsp_chrome open; /* first: xsp_chrome_of() */
	const struct xsp_capture_probe *probes;
	size_t probe_count;
	bool has_read; /* the capture was made from a trace */
	struct held *held; /* by row */
	size_t held_rows;
	struct xsp_python_rows *python_rows;
};

/* ---- the beginning ---- */

static void put_head(struct xsp_export *x, const struct chrome *c)
{
	xsp_out_text(x->out, "{\"schemaVersion\":1,\n");
	if (x->view.job != NULL || !xsp_timeline_has_gpu(x->view.timeline)) /* else the end knows */
		xsp_out_text(x->out, "\"deviceProperties\":[],\n");
	if (x->view.job == NULL) /* for a job, put_capture() says it for each capture */
		xsp_chrome_recorded(x);
	else
		xsp_out_text(x->out, "\"xsptrace_version\":\"" XSP_VERSION "\",\n");
	xsp_out_text(x->out, "\"displayTimeUnit\":\"ms\",\n\"baseTimeNanoseconds\":");
	xsp_out_u64(x->out, c->open.base_ns);
	xsp_out_text(x->out, ",\n\"traceEvents\":[\n");
}

static void let_go(struct held *h)
{
	for (size_t i = 0; i < h->count; i++)
		xsp_details_unref(h->spans[i].details);
	h->count = 0;
}

/* ---- begin ---- */

static char *render_name(void *ctx, const char *name, size_t *length)
{
	char buffer[XSP_TEXT_SHORT];

	(void)ctx;
	return xsp_json_escaped(xsp_text_short(name, buffer), length);
}

static bool is_read(const struct xsp_capture_probe *probe)
{
	return (xsp_provider_traits(probe->provider) & XSP_PROVIDER_READ) != 0;
}

static void set_clock(struct xsp_export *x, struct chrome *c)
{
	xsp_capture_window(x->view.reader, &c->open.start_ns, &c->open.end_ns);
	if (c->open.end_ns < c->open.start_ns)
		c->open.end_ns = c->open.start_ns;
	uint64_t start = xsp_capture_realtime(x->view.reader, c->open.start_ns);
	if (x->view.job != NULL)
		start += (uint64_t)x->view.job->shift_ns[x->view.part];
	if (x->view.part == 0)
		x->base_ns = start / BASE_PERIOD_NS * BASE_PERIOD_NS;
	c->open.base_ns = x->base_ns;
	c->open.shift = start - c->open.base_ns - c->open.start_ns;
	/* what lies in a range has the same times as in the whole */
	c->open.start_ns = xsp_timeline_clip(x->view.timeline, c->open.start_ns);
	c->open.end_ns = xsp_timeline_clip(x->view.timeline, c->open.end_ns);
}

static int chrome_begin(struct xsp_export *x)
{
	struct chrome *c = x->state;
	int rc = xsp_renderer_new(x->view.timeline, render_name, NULL, &c->open.names);

	if (rc == 0)
		rc = xsp_thread_rows_new(&x->view, &c->open.rows);
	if (rc == 0)
		rc = xsp_chrome_gpu_new(&c->open.gpu);
	if (rc < 0)
		return rc;
	c->probe_count = xsp_capture_probes(x->view.reader, &c->probes);
	for (size_t i = 0; i < c->probe_count && !c->has_read; i++)
		c->has_read = is_read(&c->probes[i]);
	set_clock(x, c);
	if (x->view.part == 0)
		put_head(x, c);
	return 0;
}

static void chrome_discard(struct xsp_export *x)
{
	struct chrome *c = x->state;

	xsp_renderer_free(c->open.names);
	xsp_thread_rows_free(c->open.rows);
	xsp_chrome_gpu_free(c->open.gpu);
	for (size_t i = 0; i < c->held_rows; i++) {
		let_go(&c->held[i]);
		free(c->held[i].spans);
	}
	free(c->held);
	xsp_python_rows_free(c->python_rows);
	xsp_fwdbwd_free(c->open.fwdbwd);
	xsp_torch_args_free(c->open.arguments);
}

/* ---- slices ---- */

static void prepare_row(struct xsp_thread_row *row)
{
	char *p = row->text;

	p = XSP_PUT(p, "\",\"pid\":");
	p = xsp_put_u64(p, row->pid);
	p = XSP_PUT(p, ",\"tid\":");
	p = xsp_put_u64(p, row->tid);
	p = XSP_PUT(p, ",\"ts\":");
	row->text_length = (unsigned)(p - row->text);
}

/* The span's probe; only a damaged capture has a span without one. */
static const struct xsp_capture_probe *probe_of(const struct chrome *c, const struct xsp_span *span)
{
	static const struct xsp_capture_probe none = {.kind = XSP_PROBE_FUNCTION};

	return span->probe < c->probe_count ? &c->probes[span->probe] : &none;
}

/* Writes the estimated time of the probes in a span, if it is most of the span's own time. */
static char *put_probe_time(char *p, const struct xsp_span *span)
{
	if (!xsp_span_is_mostly_probes(span))
		return p;
	p = XSP_PUT(p, ",\"mostly probes (us)\":");
	return xsp_put_us(p, span->probe_ns);
}

static char *put_cpu_time(char *p, const struct xsp_span *span)
{
	if (span->cpu_ns == XSP_CPU_UNKNOWN || !xsp_span_has_duration(span))
		return p;
	p = XSP_PUT(p, ",\"cpu_time (us)\":");
	return xsp_put_us(p, span->cpu_ns);
}

static char *put_scope(char *p, const char *scope)
{
	if (scope == NULL)
		return p;
	p = XSP_PUT(p, ",\"Scope\":\"");
	p = stpcpy(p, scope);
	return XSP_PUT(p, "\"");
}

/* The category that a span had in the trace from which the capture was made. */
static char *put_read_category(struct xsp_export *x, const struct xsp_capture_probe *probe)
{
	xsp_out_text(x->out, "{\"ph\":\"X\",\"cat\":");
	xsp_out_json(x->out, probe->symbol);
	return XSP_PUT(xsp_out_reserve(x->out, 64), ",\"name\":\"");
}

/* Remembers an operator after its slice. After a backward node's slice, draws the arrow to it. */
static int put_fwdbwd(struct xsp_export *x, const struct xsp_thread_row *row,
		      const struct xsp_span *span)
{
	struct xsp_fwdbwd_operator from;
	const int rc =
		xsp_fwdbwd_span(&xsp_chrome_of(x)->fwdbwd, x->view.timeline, row, span, &from);

	if (rc <= 0)
		return rc;
	xsp_chrome_put_flow(x, "fwdbwd", false, from.arrow, from.row->pid, from.row->tid,
			    from.start_ns);
	xsp_chrome_put_flow(x, "fwdbwd", true, from.arrow, row->pid, row->tid, span->start_ns);
	return 0;
}

static int put_slice(struct xsp_export *x, struct xsp_thread_row *row, const struct xsp_span *span,
		     uint64_t end_ns)
{
	struct chrome *c = x->state;
	const struct xsp_rendered *name = xsp_renderer_get(c->open.names, span->name);

	if (name == NULL)
		return -ENOMEM;
	if (row->text_length == 0)
		prepare_row(row);

	char *p = xsp_out_reserve(x->out, 64);
	if (xsp_is_user_annotation(probe_of(c, span), span))
		p = XSP_PUT(p, "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"");
	else if (c->has_read && is_read(probe_of(c, span)))
		p = put_read_category(x, probe_of(c, span));
	else
		p = XSP_PUT(p, "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"");
	xsp_out_commit(x->out, p);
	xsp_out_write(x->out, name->text, name->length);

	p = xsp_out_reserve(x->out, 512);
	memcpy(p, row->text, sizeof(row->text)); /* a constant size is a few moves */
	p += row->text_length;
	p = xsp_chrome_put_ts(x, p, span->start_ns);
	p = XSP_PUT(p, ",\"dur\":");
	p = xsp_put_us(p, end_ns > span->start_ns ? end_ns - span->start_ns : 0);
	p = XSP_PUT(p, ",\"args\":{\"External id\":");
	p = xsp_put_u64(p, span->serial + 1); /* 0 is Kineto's "linked to nothing" */
	p = XSP_PUT(p, ",\"Record function id\":0,\"Ev Idx\":");
	p = xsp_put_u64(p, c->open.slices++);
	if (span->flags)
		p = xsp_chrome_put_flags(p, span->flags);
	p = put_probe_time(p, span);
	p = put_cpu_time(p, span);
	p = put_scope(p, xsp_span_scope(probe_of(c, span), span));
	xsp_out_commit(x->out, p);
	int rc = span->details != NULL ? xsp_chrome_details(x, span) : 0;
	xsp_out_text(x->out, "}},\n");
	if (rc == 0 && span->details != NULL)
		rc = put_fwdbwd(x, row, span);
	return rc;
}

/*
 * An exception ends many spans at one moment, which is also when the next span starts. Readers that
 * add ts and dur as doubles see these ends slightly apart, in any order. speedscope then loses the
 * nesting for good. So each such span, whose true end is unknown, ends STEP ns before the one
 * around it.
 */
#define STEP 2
/* with more there are no steps, since they would reach back into spans that did exit */
#define HELD_MAX 64
#define NO_EXIT (XSP_SPAN_UNFINISHED | XSP_SPAN_UNWOUND | XSP_SPAN_EXIT_LOST)

static int hold(struct chrome *c, const struct xsp_thread_row *row, const struct xsp_span *span)
{
	if (xsp_grow_zeroed(&c->held, &c->held_rows, (size_t)row->index + 1) < 0)
		return -ENOMEM;
	struct held *h = &c->held[row->index];
	if (xsp_grow(&h->spans, &h->capacity, h->count + 1) < 0)
		return -ENOMEM;
	h->spans[h->count] = *span;
	xsp_details_ref(h->spans[h->count++].details);
	return 0;
}

static int release(struct xsp_export *x, struct xsp_thread_row *row, struct held *h)
{
	uint64_t step = h->count <= HELD_MAX ? STEP : 0;
	int rc = 0;

	for (size_t i = 0; i < h->count && rc == 0; i++)
		rc = put_slice(x, row, &h->spans[i], h->spans[i].end_ns - step * (h->count - i));
	let_go(h);
	return rc;
}

static int chrome_span(struct xsp_export *x, const struct xsp_span *span)
{
	struct chrome *c = x->state;
	if (xsp_chrome_is_call(x, span))
		return xsp_chrome_call_span(x, span);
	struct xsp_thread_row *row = xsp_thread_rows_get(c->open.rows, span);
	struct held *h = NULL;
	bool holds = span->flags & NO_EXIT ||
		     (span->flags & XSP_SPAN_CUT && span->end_ns == c->open.end_ns);
	int rc = 0;

	if (row == NULL)
		return -ENOMEM;
	if (x->options.python_rows && span->details != NULL)
		rc = xsp_python_rows_span(x, &c->python_rows, span);
	if (row->index < c->held_rows && c->held[row->index].count > 0)
		h = &c->held[row->index];
	if (rc == 0 && h && (!holds || h->spans[0].end_ns != span->end_ns))
		rc = release(x, row, h);
	if (rc < 0)
		return rc;
	return holds ? hold(c, row, span) : put_slice(x, row, span, span->end_ns);
}

#define STACK_MOST 512U /* a longer sample's stack shows a number for the names in its middle */

static int put_name(struct xsp_export *x, uint32_t id)
{
	struct chrome *c = x->state;
	const struct xsp_rendered *name = xsp_renderer_get(c->open.names, id & ~XSP_PATH_FRAME);

	if (name == NULL)
		return -ENOMEM;
	xsp_out_write(x->out, name->text, name->length);
	return 0;
}

/*
 * A mark on the thread's row. Its stack is text, outermost first: importers of stacks read either
 * such text or slices.
 */
static int chrome_sample(struct xsp_export *x, const struct xsp_sample *s)
{
	struct xsp_thread_row *row = xsp_chrome_row(x, s->pid, s->tid, 0);

	if (row == NULL)
		return -ENOMEM;
	xsp_out_text(x->out, "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"sample\",\"name\":\"");
	int rc = put_name(x, s->path[s->path_length - 1]);
	xsp_out_printf(x->out, "\",\"pid\":%u,\"tid\":%u,\"ts\":", row->pid, row->tid);
	xsp_chrome_time(x, s->time_ns);
	xsp_out_printf(x->out, ",\"args\":{\"weight (ns)\":%llu%s,\"stack\":\"",
		       (unsigned long long)s->period_ns, s->kernel ? ",\"kernel\":true" : "");
	for (uint32_t i = 0; i < s->path_length && rc == 0; i++) {
		if (i > 0)
			xsp_out_text(x->out, ";");
		if (i == STACK_MOST / 2 && s->path_length > STACK_MOST) {
			i = s->path_length - STACK_MOST / 2;
			xsp_out_printf(x->out, "[%u more];", s->path_length - STACK_MOST);
		}
		rc = put_name(x, s->path[i]);
	}
	xsp_out_text(x->out, "\"}},\n");
	return rc;
}

/* ---- rows and marks that are known after the last span ---- */

static void put_process(struct xsp_export *x, const struct xsp_thread_row *row)
{
	char name[256];

	const struct xsp_view_named *named = xsp_view_name(&x->view, row->root_pid);

	xsp_run_process_name(x->view.reader, row->root_pid, name, sizeof(name));
	xsp_chrome_put_text_meta(x, "process_name", row->pid, 0, "name",
				 named != NULL ? named->name : name);
	xsp_chrome_put_text_meta(
		x, "process_labels", row->pid, 0, "labels",
		xsp_thread_rows_uses_root_ids(xsp_chrome_of(x)->rows, row->root_pid)
			? "CPU (ids of the root pid namespace)"
			: "CPU");
	xsp_chrome_put_sort_index(x, "process_sort_index", row->pid, 0,
				  named != NULL ? named->order : row->pid);
}

static void put_thread(struct xsp_export *x, const struct xsp_thread_row *row)
{
	const char *comm = xsp_thread_rows_comm(&x->view, row->root_pid, row->root_tid);

	xsp_chrome_open_meta(x, "thread_name", row->pid, row->tid, "name");
	xsp_out_printf(x->out, "\"thread %u (", row->thread_tid);
	xsp_out_json_part(x->out, comm);
	xsp_out_text(x->out, ")");
	if (row->number == XSP_STATES_ROW)
		xsp_out_text(x->out, " states");
	else if (row->number == XSP_PYTHON_ROW)
		xsp_out_text(x->out, " Python, as seen at spans");
	else if (row->number > 0)
		xsp_out_printf(x->out, " stack %u", row->number);
	xsp_out_text(x->out, "\"}},\n");
	/* among equal indexes the lower tid comes first: a thread, then its other stacks */
	xsp_chrome_put_sort_index(x, "thread_sort_index", row->pid, row->tid, row->thread_tid);
}

static void put_rows(struct xsp_export *x, const struct chrome *c)
{
	size_t n = xsp_thread_rows_count(c->open.rows);

	for (size_t i = 0; i < n; i++)
		if (xsp_thread_rows_at(c->open.rows, i)->first_of_process)
			put_process(x, xsp_thread_rows_at(c->open.rows, i));
	for (size_t i = 0; i < n; i++)
		put_thread(x, xsp_thread_rows_at(c->open.rows, i));
}

/* Each capture has two rows. */
static uint32_t spans_tid(const struct xsp_export *x)
{
	return SPANS_PID + 2 * (uint32_t)x->view.part;
}

/* Begins a span over the whole capture. The caller writes what is in `args` and closes both
 * objects. */
static void open_span_of_all(struct xsp_export *x, const char *name, uint32_t tid,
			     uint64_t start_ns, uint64_t end_ns)
{
	xsp_out_printf(x->out, "{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"%s\"", name);
	xsp_out_commit(x->out, xsp_chrome_put_place(x, xsp_out_reserve(x->out, 256), SPANS_PID, tid,
						    start_ns, end_ns - start_ns));
}

/* The recording itself as a slice: Kineto has it too, but with a text as pid and tid. */
static void put_trace_span(struct xsp_export *x, const struct chrome *c)
{
	open_span_of_all(x, "xsptrace (0)", spans_tid(x), c->open.start_ns, c->open.end_ns);
	xsp_out_text(x->out, "\"Op count\":");
	xsp_out_u64(x->out, c->open.slices);
	xsp_out_text(x->out, "}},\n");
	xsp_chrome_put_text_meta(x, "process_name", SPANS_PID, 0, "name", "Spans");
	xsp_chrome_put_sort_index(x, "process_sort_index", SPANS_PID, 0, SPANS_SORT_INDEX);
	xsp_chrome_put_text_meta(x, "thread_name", SPANS_PID, spans_tid(x), "name", "xsptrace");
}

/* With --max-overhead: a row of the times in which every probe was on. */
static void put_windows(struct xsp_export *x)
{
	const struct xsp_capture_window *w = NULL;
	size_t n = xsp_capture_windows(x->view.reader, &w);

	for (size_t i = 0; i < n; i++) {
		const uint64_t start = xsp_timeline_clip(x->view.timeline, w[i].start_ns);
		const uint64_t end = xsp_timeline_clip(x->view.timeline, w[i].end_ns);
		if (end <= start)
			continue;
		open_span_of_all(x, "recorded", spans_tid(x) + 1, start, end);
		xsp_out_text(x->out, "}},\n");
	}
	if (n > 0)
		xsp_chrome_put_text_meta(x, "thread_name", SPANS_PID, spans_tid(x) + 1, "name",
					 xsp_capture_schedule(x->view.reader) != NULL
						 ? "windows of --windows"
						 : "windows of --max-overhead");
}

/* A mark over the whole height of the trace; ids are usually strings here. */
static void put_mark(struct xsp_export *x, const char *name, const char *pid, const char *tid,
		     uint64_t monotonic_ns)
{
	xsp_out_printf(
		x->out,
		"{\"ph\":\"i\",\"s\":\"g\",\"name\":\"%s\",\"pid\":\"%s\",\"tid\":\"%s\",\"ts\":",
		name, pid, tid);
	xsp_chrome_time(x, monotonic_ns);
	xsp_out_text(x->out, "}");
}

/* The keys that the trace of one capture has at the top. Here they are arguments of an event that
 * viewers ignore. */
static void put_capture(struct xsp_export *x, const struct chrome *c)
{
	xsp_out_printf(x->out,
		       "{\"ph\":\"M\",\"name\":\"xsptrace_capture\",\"pid\":%u,\"tid\":%u,\"ts\":",
		       SPANS_PID, spans_tid(x));
	xsp_chrome_time(x, c->open.start_ns);
	xsp_out_text(x->out, ",\"args\":{\n");
	xsp_chrome_recorded(x);
	xsp_chrome_read(x);
	xsp_out_printf(x->out, "\"capture\":%zu,\"clock_shift_ns\":%lld}},\n", x->view.part,
		       (long long)x->view.job->shift_ns[x->view.part]);
}

static void put_tail(struct xsp_export *x)
{
	const char *before = "";

	if (x->view.job == NULL)
		xsp_chrome_read(x);
	xsp_chrome_text_pair(x->out, &before, "traceName", x->options.trace_name);
	xsp_out_text(x->out, "}\n");
}

static int chrome_end(struct xsp_export *x)
{
	struct chrome *c = x->state;
	char text[160];

	for (size_t i = 0; i < xsp_thread_rows_count(c->open.rows) && i < c->held_rows; i++) {
		int rc = release(x, xsp_thread_rows_at(c->open.rows, i), &c->held[i]);
		if (rc < 0)
			return rc;
	}
	xsp_python_rows_end(x, c->python_rows);
	const int failed = xsp_chrome_last_states(x);
	if (failed < 0)
		return failed;
	put_rows(x, c);
	xsp_chrome_gpu_rows(x);
	put_trace_span(x, c);
	put_windows(x);
	if (x->view.part == 0) {
		put_mark(x, "Iteration Start: xsptrace", "Traces", "Trace xsptrace",
			 c->open.start_ns);
		xsp_out_text(x->out, ",\n");
	}
	/* shows losses where users look, not only in keys that viewers hide */
	if (xsp_run_losses_line(x->view.reader, x->view.timeline, text, sizeof(text))) {
		put_mark(x, text, "", "", c->open.start_ns);
		xsp_out_text(x->out, ",\n");
	}
	if (x->view.job != NULL)
		put_capture(x, c);
	if (!xsp_view_is_last(&x->view))
		return 0;
	put_mark(x, "Record Window End", "", "", c->open.end_ns);
	xsp_out_text(x->out, "],\n");
	put_tail(x);
	return 0;
}

#define CHROME_FORMAT(ending, what)                                                                \
	{                                                                                          \
		.suffix = (ending), .title = (what), .begin = chrome_begin, .span = chrome_span,   \
		.call = xsp_chrome_call, .gpu = xsp_chrome_activity, .memory = xsp_chrome_memory,  \
		.process_memory = xsp_chrome_process_memory, .wait = xsp_chrome_wait,              \
		.sample = chrome_sample, .value = xsp_chrome_value, .readable = 1000000000,        \
		.jobs = true, .end = chrome_end, .discard = chrome_discard,                        \
		.state_size = sizeof(struct chrome),                                               \
	}

const struct xsp_export_format xsp_format_json = CHROME_FORMAT(".json", "Chrome trace");
const struct xsp_export_format xsp_format_json_gz =
	CHROME_FORMAT(".json.gz", "Chrome trace, compressed");
