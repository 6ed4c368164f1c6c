/* SPDX-License-Identifier: BSD-2-Clause */
/* trace.c - libxsptrace: include/xsptrace/trace.h on top of a reader and its timeline. */
#include "xsptrace/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analyses.h"
#include "base/text.h"
#include "report/report.h"
#include "base/error.h"
#include "base/rows/grow.h"
#include "base/rows/u64map.h"
#include "capture/capture.h"
#include "catalog/wait_reasons.h"
#include "import/open.h"
#include "model/health.h"
#include "model/pass.h"

struct xsp_trace {
	struct xsp_capture_reader *reader;
	bool running; /* it reads events into room of its own: only one run at a time */
	struct xsp_trace_thread *threads; /* threads that runs have met; it owns their names */
	size_t thread_count, thread_capacity;
	struct xsp_u64map thread_of; /* by process and thread; all threads that are listed */
};

/* One run. */
struct run {
	struct xsp_trace *trace;
	struct xsp_timeline *timeline;
	struct xsp_trace_callbacks callbacks;
	const struct xsp_capture_probe *probes;
	size_t probe_count;
	const char **names; /* names on a path, outermost first */
	size_t room;
	int stopped; /* nonzero if a callback ended the run: what it returned */
};

/* Keeps what a callback returned. If that ends the run, the timeline gets -ECANCELED. */
static int answered(struct run *r, int code)
{
	r->stopped = code;
	return code != 0 ? -ECANCELED : 0;
}

static int fail(int code, const struct xsp_error *err, char *why, size_t size)
{
	if (why != NULL && size > 0)
		snprintf(why, size, "%s", err->text[0] != '\0' ? err->text : strerror(-code));
	return code;
}

/* A number that the callback chose means nothing to strerror(3). */
static int stopped(int code, char *why, size_t size)
{
	return fail(code, &(struct xsp_error){.text = "stopped by a callback"}, why, size);
}

int xsp_trace_open(const char *path, struct xsp_trace **trace, char *why, size_t size)
{
	struct xsp_trace *t = calloc(1, sizeof(*t));
	struct xsp_error err = {0};

	*trace = NULL;
	if (t == NULL)
		return fail(-ENOMEM, &err, why, size);
	const struct xsp_open_options how = {.into = NULL};
	struct xsp_import_report report;
	bool made;
	const int rc = xsp_open_capture_or_trace(path, &how, &t->reader, &made, &report, &err);
	if (rc < 0) {
		free(t);
		return fail(rc, &err, why, size);
	}
	*trace = t;
	return 0;
}

void xsp_trace_close(struct xsp_trace *trace)
{
	if (trace == NULL)
		return;
	xsp_capture_close(trace->reader);
	for (size_t i = 0; i < trace->thread_count; i++)
		free((char *)(uintptr_t)trace->threads[i].comm);
	free(trace->threads);
	xsp_u64map_free(&trace->thread_of);
	free(trace);
}

/* ---- before a run ---- */

void xsp_trace_window(const struct xsp_trace *trace, uint64_t *start_ns, uint64_t *end_ns,
		      uint64_t *recorded_ns)
{
	uint64_t start, end;

	xsp_capture_window(trace->reader, &start, &end);
	if (start_ns != NULL)
		*start_ns = start;
	if (end_ns != NULL)
		*end_ns = end;
	if (recorded_ns != NULL)
		*recorded_ns = xsp_capture_recorded_ns(trace->reader);
}

uint64_t xsp_trace_realtime(const struct xsp_trace *trace, uint64_t ns)
{
	return xsp_capture_realtime(trace->reader, ns);
}

uint64_t xsp_trace_events_lost(const struct xsp_trace *trace)
{
	return xsp_health_of(trace->reader).events_lost;
}

bool xsp_trace_is_complete(const struct xsp_trace *trace)
{
	const struct xsp_health health = xsp_health_of(trace->reader);

	return xsp_health_is_whole(&health);
}

const char *xsp_trace_info(const struct xsp_trace *trace, const char *key)
{
	return xsp_capture_info(trace->reader, key);
}

bool xsp_trace_process(const struct xsp_trace *trace, size_t index,
		       struct xsp_trace_process *process)
{
	const struct xsp_capture_process *list;

	if (index >= xsp_capture_processes(trace->reader, &list))
		return false;
	*process = (struct xsp_trace_process){
		.pid = list[index].pid,
		.ns_pid = list[index].ns_pid,
		.parent = list[index].parent,
		.comm = list[index].comm,
		.command = list[index].cmdline,
		.executable = list[index].exe,
	};
	return true;
}

/* Threads known when the recording began come first, then those that runs have met. */
bool xsp_trace_thread(const struct xsp_trace *trace, size_t index, struct xsp_trace_thread *thread)
{
	const struct xsp_capture_thread *list;
	const size_t known = xsp_capture_threads(trace->reader, &list);

	if (index >= known + trace->thread_count)
		return false;
	if (index >= known)
		*thread = trace->threads[index - known];
	else
		*thread = (struct xsp_trace_thread){
			.pid = list[index].pid,
			.tid = list[index].tid,
			.ns_tid = list[index].ns_tid,
			.comm = list[index].comm,
		};
	return true;
}

/* 1: it is listed already. */
static int note_thread(struct xsp_trace *trace, uint32_t pid, uint32_t tid)
{
	const uint64_t key = (uint64_t)pid << 32 | tid;

	return xsp_u64map_get(&trace->thread_of, key) != NULL
		       ? 1
		       : xsp_u64map_set(&trace->thread_of, key, 1);
}

static int keep_threads(struct xsp_trace *trace, const struct xsp_timeline *timeline)
{
	const struct xsp_capture_thread *known;
	const struct xsp_timeline_thread *met;
	const size_t known_count = xsp_capture_threads(trace->reader, &known);
	const size_t count = xsp_timeline_threads(timeline, &met);
	int rc = 0;

	for (size_t i = 0; i < known_count && rc >= 0; i++)
		rc = note_thread(trace, known[i].pid, known[i].tid);
	for (size_t i = 0; i < count && rc >= 0; i++) {
		rc = note_thread(trace, met[i].pid, met[i].tid);
		if (rc != 0)
			continue;
		struct xsp_trace_thread t = {.pid = met[i].pid,
					     .tid = met[i].tid,
					     .ns_tid = met[i].ns_tid,
					     .comm = strdup(met[i].comm)};
		if (t.comm == NULL || XSP_APPEND(trace->threads, trace->thread_capacity,
						 trace->thread_count, t) < 0) {
			free((char *)(uintptr_t)t.comm);
			return -ENOMEM;
		}
	}
	return rc < 0 ? rc : 0;
}

/* ---- a run ---- */

/* Valid until the next call. NULL: out of memory. */
static const char *const *names_of(struct run *r, const xsp_name_id *path, size_t count)
{
	if (xsp_grow(&r->names, &r->room, count + 1) < 0)
		return NULL;
	for (size_t i = 0; i < count; i++)
		r->names[i] = xsp_timeline_name(r->timeline, path[i] & ~XSP_PATH_FRAME);
	r->names[count] = NULL;
	return r->names;
}

static unsigned flags_of(const struct xsp_span *span)
{
	static const struct {
		unsigned ours, theirs;
	} flags[] = {
		{XSP_SPAN_UNFINISHED, XSP_TRACE_UNFINISHED},
		{XSP_SPAN_UNWOUND, XSP_TRACE_UNWOUND},
		{XSP_SPAN_EXIT_LOST, XSP_TRACE_END_NOT_SEEN},
		{XSP_SPAN_POINT, XSP_TRACE_NO_DURATION},
		{XSP_SPAN_CUT, XSP_TRACE_CUT},
	};
	unsigned out = 0;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (span->flags & flags[i].ours)
			out |= flags[i].theirs;
	return out;
}

/* The time on a CPU of a call without a duration is not known, although the timeline counts 0. */
static uint64_t cpu_of(const struct xsp_span *span)
{
	const bool known = span->cpu_ns != XSP_CPU_UNKNOWN && !(span->flags & XSP_SPAN_POINT);

	return known ? span->cpu_ns : XSP_TRACE_UNKNOWN;
}

static int on_span(void *ctx, const struct xsp_span *span)
{
	struct run *r = ctx;
	const struct xsp_trace_span s = {
		.size = sizeof(s),
		.id = span->serial + 1,
		.parent = span->parent,
		.start_ns = span->start_ns,
		.end_ns = span->end_ns,
		.self_ns = span->self_ns,
		.cpu_ns = cpu_of(span),
		.probe_ns = span->probe_ns,
		.pid = span->pid,
		.tid = span->tid,
		.row = span->row,
		.depth = span->depth,
		.flags = flags_of(span),
		.name = xsp_timeline_name(r->timeline, span->name),
		.provider = span->probe < r->probe_count ? r->probes[span->probe].provider : "",
		.ancestors = names_of(r, span->ancestors, span->depth),
	};

	return s.ancestors != NULL ? answered(r, r->callbacks.span(r->callbacks.ctx, &s)) : -ENOMEM;
}

static enum xsp_trace_activity_kind kind_of(enum xsp_gpu_kind kind)
{
	return kind == XSP_GPU_IS_KERNEL   ? XSP_TRACE_KERNEL
	       : kind == XSP_GPU_IS_MEMCPY ? XSP_TRACE_COPY
	       : kind == XSP_GPU_IS_MEMSET ? XSP_TRACE_SET
	       : kind == XSP_GPU_IS_SYNC   ? XSP_TRACE_SYNC
					   : XSP_TRACE_OTHER;
}

static uint64_t bytes_of(const struct xsp_gpu_activity *a)
{
	return a->kind == XSP_GPU_IS_MEMCPY   ? ((const struct xsp_gpu_memcpy *)a->record)->bytes
	       : a->kind == XSP_GPU_IS_MEMSET ? ((const struct xsp_gpu_memset *)a->record)->bytes
					      : 0;
}

static int on_activity(void *ctx, const struct xsp_gpu_activity *activity)
{
	struct run *r = ctx;
	const struct xsp_trace_activity a = {
		.size = sizeof(a),
		.kind = kind_of(activity->kind),
		.start_ns = activity->start_ns,
		.end_ns = activity->end_ns,
		.pid = activity->pid,
		.device = activity->device,
		.context = activity->context,
		.stream = activity->stream,
		.correlation = activity->correlation,
		.operator_id = activity->external,
		.bytes = bytes_of(activity),
		.name = activity->name,
	};

	return answered(r, r->callbacks.activity(r->callbacks.ctx, &a));
}

static int on_sample(void *ctx, const struct xsp_sample *sample)
{
	struct run *r = ctx;
	const struct xsp_trace_sample s = {
		.size = sizeof(s),
		.time_ns = sample->time_ns,
		.period_ns = sample->period_ns,
		.pid = sample->pid,
		.tid = sample->tid,
		.stack = names_of(r, sample->path, sample->path_length),
		.depth = sample->path_length,
	};

	return s.stack != NULL ? answered(r, r->callbacks.sample(r->callbacks.ctx, &s)) : -ENOMEM;
}

static int on_wait(void *ctx, const struct xsp_wait *wait)
{
	struct run *r = ctx;
	const struct xsp_trace_wait w = {
		.size = sizeof(w),
		.left_ns = wait->left_ns,
		.woken_ns = wait->woken_ns,
		.back_ns = wait->back_ns,
		.pid = wait->pid,
		.tid = wait->tid,
		.owner = wait->owner,
		.waker = wait->waker,
		.reason = xsp_wait_class_name(wait->why),
		.place = wait->place > 0 ? xsp_timeline_name(r->timeline, wait->place - 1) : NULL,
	};

	/* Waits too short for an event of their own come as a sum. */
	return wait->flags & XSP_WAIT_SHORT ? 0
					    : answered(r, r->callbacks.wait(r->callbacks.ctx, &w));
}

static int on_value(void *ctx, const struct xsp_value *value)
{
	struct run *r = ctx;
	const struct xsp_trace_counter c = {
		.size = sizeof(c),
		.time_ns = value->time_ns,
		.pid = value->pid,
		.tid = value->tid,
		.name = xsp_timeline_name(r->timeline, value->name),
		.value = value->value,
	};

	return answered(r, r->callbacks.counter(r->callbacks.ctx, &c));
}

static int on_process_memory(void *ctx, const struct xsp_process_memory_at *at)
{
	struct run *r = ctx;
	const struct {
		const char *name;
		uint64_t bytes;
	} amounts[] = {{"resident memory", at->memory.resident},
		       {"anonymous memory", at->memory.anonymous}};
	int rc = 0;

	for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]) && rc == 0; i++) {
		const struct xsp_trace_counter c = {
			.size = sizeof(c),
			.time_ns = at->time_ns,
			.pid = at->pid,
			.name = amounts[i].name,
			.value = (double)amounts[i].bytes,
		};
		rc = answered(r, r->callbacks.counter(r->callbacks.ctx, &c));
	}
	return rc;
}

#define STRUCT_MAX 4096U /* bytes: a larger `size` was not initialised */
#define END_OF(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))

/* Where each member of the caller's struct ends. An older caller knows only the first members. */
static const size_t callback_ends[] = {
	END_OF(struct xsp_trace_callbacks, size),    END_OF(struct xsp_trace_callbacks, ctx),
	END_OF(struct xsp_trace_callbacks, span),    END_OF(struct xsp_trace_callbacks, activity),
	END_OF(struct xsp_trace_callbacks, sample),  END_OF(struct xsp_trace_callbacks, wait),
	END_OF(struct xsp_trace_callbacks, counter),
};
static const size_t part_ends[] = {
	END_OF(struct xsp_trace_part, size),	  END_OF(struct xsp_trace_part, from_ns),
	END_OF(struct xsp_trace_part, to_ns),	  END_OF(struct xsp_trace_part, min_duration_ns),
	END_OF(struct xsp_trace_part, max_depth),
};
#define COUNT(ends) (sizeof(ends) / sizeof((ends)[0]))

/* Copies the members that the caller's struct has; the rest is 0. -EINVAL: its size would split a
 * member, or is absurd. */
static int copy_struct(void *to, const size_t *ends, size_t count, const void *from)
{
	const size_t known = ends[count - 1];
	size_t size, i = 0;

	memcpy(&size, from, sizeof(size));
	while (i < count - 1 && ends[i] < size)
		i++;
	if (size > STRUCT_MAX || (size <= known && size != ends[i]))
		return -EINVAL;
	memset(to, 0, known);
	memcpy(to, from, size < known ? size : known);
	return 0;
}

struct part {
	struct xsp_cut cut; /* the timeline uses it during the run */
	char text[160]; /* values in the form of command-line options */
};

static void put_option(struct part *p, bool given, const char *option, uint64_t value,
		       const char *unit)
{
	if (given)
		xsp_join(p->text, sizeof(p->text), " ", "%s %" PRIu64 "%s", option, value, unit);
}

/* NULL or all zeros mean the whole capture. -EINVAL: the struct's size is impossible. */
static int read_part(const struct xsp_trace *trace, const struct xsp_trace_part *asked,
		     struct part *p)
{
	struct xsp_trace_part part = {.size = sizeof(part)};
	uint64_t start, end;

	*p = (struct part){.text = ""};
	if (asked != NULL && copy_struct(&part, part_ends, COUNT(part_ends), asked) < 0)
		return -EINVAL;
	xsp_capture_window(trace->reader, &start, &end);
	put_option(p, part.from_ns > start, "--from", part.from_ns - start, "ns");
	put_option(p, part.to_ns != 0, "--to", part.to_ns > start ? part.to_ns - start : 0, "ns");
	put_option(p, part.min_duration_ns != 0, "--min-duration", part.min_duration_ns, "ns");
	put_option(p, part.max_depth != 0, "--max-depth", part.max_depth, "");
	p->cut = (struct xsp_cut){
		.from_ns = part.from_ns,
		.to_ns = part.to_ns != 0 ? part.to_ns : UINT64_MAX,
		.min_duration_ns = part.min_duration_ns,
		.max_depth = part.max_depth,
		.text = p->text[0] != '\0' ? p->text : NULL,
	};
	return 0;
}

static int begin_run(void *ctx, struct xsp_capture_reader *reader, struct xsp_timeline *t,
		     struct xsp_sinks *sinks, struct xsp_error *err)
{
	struct run *r = ctx;
	const struct xsp_timeline_sink sink = {
		.ctx = r,
		.span = r->callbacks.span != NULL ? on_span : NULL,
		.gpu = r->callbacks.activity != NULL ? on_activity : NULL,
		.sample = r->callbacks.sample != NULL ? on_sample : NULL,
		.wait = r->callbacks.wait != NULL ? on_wait : NULL,
		.process_memory = r->callbacks.counter != NULL ? on_process_memory : NULL,
		.value = r->callbacks.counter != NULL ? on_value : NULL,
	};

	(void)err;
	r->timeline = t;
	r->probe_count = xsp_capture_probes(reader, &r->probes);
	return xsp_sinks_add(sinks, sink);
}

static int end_run(void *ctx, struct xsp_timeline *t, struct xsp_error *err)
{
	const struct run *r = ctx;

	(void)err;
	return keep_threads(r->trace, t);
}

int xsp_trace_run(struct xsp_trace *trace, const struct xsp_trace_callbacks *callbacks,
		  const struct xsp_trace_part *part, char *why, size_t size)
{
	struct run r = {.trace = trace};
	struct xsp_error err = {0};
	struct part p;
	int rc = trace->running ? -EBUSY : callbacks == NULL ? -EINVAL : 0;

	if (rc == 0)
		rc = copy_struct(&r.callbacks, callback_ends, COUNT(callback_ends), callbacks);
	if (rc == 0)
		rc = read_part(trace, part, &p);
	if (rc < 0)
		return fail(rc, &err, why, size);
	const struct xsp_pass_listener listener = {&r, begin_run, end_run, NULL};
	const struct xsp_pass pass = {trace->reader, p.cut.text != NULL ? &p.cut : NULL, NULL,
				      &listener, 1};
	trace->running = true;
	rc = xsp_pass_run(&pass, &err);
	free(r.names);
	trace->running = false;
	if (r.stopped != 0)
		return stopped(r.stopped, why, size);
	return rc < 0 ? fail(rc, &err, why, size) : 0;
}

/* ---- an analysis ---- */

int xsp_trace_analyze(struct xsp_trace *trace, const struct xsp_trace_part *part,
		      enum xsp_trace_format format, FILE *to, char *why, size_t size)
{
	static int (*const writers[])(const struct xsp_report *, FILE *,
				      const struct xsp_report_how *) = {
		[XSP_TRACE_TEXT] = xsp_report_write_text,
		[XSP_TRACE_JSON] = xsp_report_write_json,
		[XSP_TRACE_CSV] = xsp_report_write_csv,
	};
	struct xsp_report *report = NULL;
	struct xsp_error err = {0};
	struct part p;
	int rc = trace->running					 ? -EBUSY
		 : (size_t)format < COUNT(writers) && to != NULL ? xsp_report_new(&report)
								 : -EINVAL;

	if (rc == 0)
		rc = read_part(trace, part, &p);
	if (rc == 0) {
		const struct xsp_analyze_options how = {.cut = p.cut.text != NULL ? &p.cut : NULL};
		trace->running = true;
		rc = xsp_analyze(trace->reader, &how, report, &err);
		trace->running = false;
	}
	if (rc == 0)
		rc = writers[format](report, to, &(struct xsp_report_how){.top = 0});
	xsp_report_free(report);
	return rc < 0 ? fail(rc, &err, why, size) : 0;
}
