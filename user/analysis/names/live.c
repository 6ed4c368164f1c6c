/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/names/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/tally.h"
#include "catalog/wait_reasons.h"

/* A name's sums when the interval began. */
struct sums {
	uint64_t calls, total_ns, self_ns;
};

/* A thread's sums when the interval began. */
struct thread_sums {
	uint64_t until_ns, running_ns, runnable_ns, blocked_ns[XSP_WAIT_CLASSES];
};

/* A thread's spans in the interval, and where its last sample was. */
struct thread_spans {
	uint64_t key, spans;
	uint32_t place; /* 1 + name id; 0: not known */
};

struct xsp_live {
	struct xsp_timeline *timeline;
	struct xsp_summary *summary;
	uint64_t recorded_ns, interval_ns;
	struct sums *before; /* by name */
	uint64_t *open; /* by name */
	size_t before_capacity, open_capacity, open_count;
	struct xsp_live_name *names;
	size_t name_count, name_capacity;
	/* by pid << 32 | tid */
	XSP_TALLY(struct xsp_live_thread) threads;
	/* of threads with times at the end of the last interval */
	XSP_TALLY(struct thread_sums) sums;
	XSP_TALLY(struct thread_spans) spans;
	size_t last; /* index in `spans` of the last span */
};

static uint64_t key_of(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

int xsp_live_new(struct xsp_timeline *t, struct xsp_live **out)
{
	struct xsp_live *l = calloc(1, sizeof(*l));

	*out = l;
	if (l == NULL)
		return -ENOMEM;
	l->timeline = t;
	if (xsp_summary_new_names(t, &l->summary) == 0)
		return 0;
	xsp_live_free(l);
	*out = NULL;
	return -ENOMEM;
}

void xsp_live_free(struct xsp_live *l)
{
	if (l == NULL)
		return;
	xsp_summary_free(l->summary);
	xsp_tally_free(&l->threads);
	xsp_tally_free(&l->sums);
	xsp_tally_free(&l->spans);
	free(l->before);
	free(l->open);
	free(l->names);
	free(l);
}

/* ---- spans ---- */

/* NULL: no memory. */
static struct thread_spans *spans_of(struct xsp_live *l, uint32_t pid, uint32_t tid)
{
	const uint64_t key = key_of(pid, tid);

	if (l->last < l->spans.count && l->spans.rows[l->last].key == key)
		return &l->spans.rows[l->last];
	struct thread_spans *its =
		xsp_tally_row(&l->spans, key, &(struct thread_spans){.key = key});
	if (its != NULL)
		l->last = xsp_tally_index(&l->spans, its);
	return its;
}

static int on_span(void *ctx, const struct xsp_span *span)
{
	struct xsp_live *l = ctx;
	const struct xsp_timeline_sink summary = xsp_summary_sink(l->summary);
	struct thread_spans *its = spans_of(l, span->pid, span->tid);

	if (its == NULL)
		return -ENOMEM;
	its->spans++;
	return summary.span(summary.ctx, span);
}

/* A line of the program, else the innermost function that is not the C library's. */
static uint32_t place_of(const struct xsp_live *l, const struct xsp_sample *s)
{
	if (s->own_line != 0 || s->line != 0)
		return s->own_line != 0 ? s->own_line : s->line;
	for (uint32_t i = s->path_length - s->kernel_length; i > 0; i--) {
		const uint32_t id = s->path[i - 1] & ~XSP_PATH_FRAME;
		if (!xsp_wait_is_primitive(xsp_timeline_name(l->timeline, id)))
			return id + 1;
	}
	return s->function + 1;
}

static int on_sample(void *ctx, const struct xsp_sample *s)
{
	struct xsp_live *l = ctx;
	struct thread_spans *its = spans_of(l, s->pid, s->tid);

	if (its == NULL)
		return -ENOMEM;
	its->place = place_of(l, s);
	return 0;
}

struct xsp_timeline_sink xsp_live_sink(struct xsp_live *l)
{
	return (struct xsp_timeline_sink){.ctx = l, .span = on_span, .sample = on_sample};
}

/* ---- threads ---- */

static struct xsp_live_thread *thread_of(struct xsp_live *l, const struct xsp_timeline_thread *t)
{
	const size_t before = l->threads.count;
	struct xsp_live_thread *thread = xsp_tally_row(
		&l->threads, key_of(t->pid, t->tid),
		&(struct xsp_live_thread){
			.pid = t->pid, .tid = t->tid, .ns_pid = t->ns_pid, .ns_tid = t->ns_tid});

	if (l->threads.count > before)
		snprintf(thread->comm, sizeof(thread->comm), "%s", t->comm);
	return thread;
}

static uint64_t more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0; /* the earlier figure estimated what was open */
}

static void update_times(struct xsp_live *l, const struct xsp_thread_times *t)
{
	const struct thread_sums none = {.until_ns = t->since_ns};
	const struct thread_sums *before =
		xsp_tally_find(&l->sums, key_of(t->thread->pid, t->thread->tid));
	struct xsp_live_thread *thread = thread_of(l, t->thread);

	if (thread == NULL)
		return;
	/* another thread has the number now */
	if (before == NULL || before->until_ns < t->since_ns)
		before = &none;
	thread->times_known = true;
	thread->now = t->now;
	thread->interval_ns = more(t->until_ns, before->until_ns);
	thread->running_ns = more(t->running_ns, before->running_ns);
	thread->runnable_ns = more(t->runnable_ns, before->runnable_ns);
	for (size_t i = 0; i < XSP_WAIT_CLASSES; i++)
		thread->blocked_ns[i] = more(t->blocked_ns[i], before->blocked_ns[i]);
}

/* Keeps them for the next interval. */
static int keep_times(struct xsp_live *l, const struct xsp_thread_times *times, size_t count)
{
	xsp_tally_begin_anew(&l->sums);
	for (size_t i = 0; i < count; i++) {
		const struct xsp_thread_times *t = &times[i];
		struct thread_sums s = {.until_ns = t->until_ns,
					.running_ns = t->running_ns,
					.runnable_ns = t->runnable_ns};
		memcpy(s.blocked_ns, t->blocked_ns, sizeof(s.blocked_ns));
		if (!t->ended &&
		    xsp_tally_row(&l->sums, key_of(t->thread->pid, t->thread->tid), &s) == NULL)
			return -ENOMEM;
	}
	return 0;
}

/* With waits, the threads are those that have times. */
static int update_threads(struct xsp_live *l)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(l->timeline, &times);

	xsp_tally_begin_anew(&l->threads);
	for (size_t i = 0; i < count; i++)
		if (!times[i].ended)
			update_times(l, &times[i]);
	return l->threads.tally.error < 0 ? -ENOMEM : keep_times(l, times, count);
}

static void on_open_spans(void *ctx, const struct xsp_open_spans *open)
{
	struct xsp_live *l = ctx;
	const uint64_t key = key_of(open->thread->pid, open->thread->tid);
	const bool known = xsp_tally_find(&l->threads, key) != NULL;

	for (size_t i = 0; i < open->count; i++)
		if (open->names[i] < l->open_count)
			l->open[open->names[i]]++;
	if (!known && xsp_timeline_has_waits(l->timeline))
		return; /* the thread is about to end */
	struct xsp_live_thread *thread = thread_of(l, open->thread);
	if (thread == NULL || !open->current || open->count == 0)
		return;
	thread->has_open = true;
	thread->open = open->names[open->count - 1];
	if (open->in_cuda && thread->now > XSP_NOW_WAITS + XSP_WAIT_RUNNABLE)
		thread->now = XSP_NOW_WAITS + XSP_WAIT_GPU;
}

static void update_spans(struct xsp_live *l)
{
	for (size_t i = 0; i < l->spans.count; i++) {
		struct xsp_live_thread *thread = xsp_tally_find(&l->threads, l->spans.rows[i].key);
		if (thread == NULL)
			continue;
		thread->spans = l->spans.rows[i].spans;
		thread->place = l->spans.rows[i].place;
	}
	xsp_tally_begin_anew(&l->spans);
}

/* ---- names ---- */

static int make_room(struct xsp_live *l)
{
	const size_t count = xsp_timeline_name_count(l->timeline);

	if (xsp_grow_zeroed(&l->before, &l->before_capacity, count) < 0 ||
	    xsp_grow(&l->open, &l->open_capacity, count) < 0)
		return -ENOMEM;
	if (count > 0)
		memset(l->open, 0, count * sizeof(*l->open));
	l->open_count = count;
	return 0;
}

static int add_name(struct xsp_live *l, const struct xsp_live_name *name)
{
	return XSP_APPEND(l->names, l->name_capacity, l->name_count, *name);
}

static int update_names(struct xsp_live *l)
{
	const struct xsp_summary_row *rows;
	const size_t count = xsp_summary_rows(l->summary, &rows);
	int rc = 0;

	l->name_count = 0;
	for (size_t i = 0; i < count && rc == 0; i++) {
		struct sums *before = &l->before[rows[i].name];
		const struct xsp_live_name name = {
			.all = rows[i],
			.calls = more(rows[i].calls, before->calls),
			.total_ns = more(rows[i].total_ns, before->total_ns),
			.self_ns = more(rows[i].self_ns, before->self_ns),
			.open = l->open[rows[i].name],
		};
		*before = (struct sums){rows[i].calls, rows[i].total_ns, rows[i].self_ns};
		l->open[rows[i].name] = 0;
		rc = add_name(l, &name);
	}
	/* names without a call that has ended */
	for (size_t i = 0; i < l->open_count && rc == 0; i++)
		if (l->open[i] > 0)
			rc = add_name(l, &(struct xsp_live_name){.all = {.name = (xsp_name_id)i},
								 .open = l->open[i]});
	return rc;
}

/* ---- an interval ---- */

int xsp_live_update(struct xsp_live *l, uint64_t recorded_ns)
{
	l->interval_ns = more(recorded_ns, l->recorded_ns);
	l->recorded_ns = recorded_ns;
	int rc = make_room(l);
	if (rc == 0)
		rc = update_threads(l);
	if (rc < 0)
		return rc;
	xsp_timeline_open(l->timeline, on_open_spans, l);
	update_spans(l);
	rc = l->threads.tally.error < 0 ? -ENOMEM : update_names(l);
	return rc < 0 ? rc : xsp_timeline_forget(l->timeline);
}

uint64_t xsp_live_interval_ns(const struct xsp_live *l)
{
	return l->interval_ns;
}

size_t xsp_live_names(const struct xsp_live *l, struct xsp_live_name **names)
{
	*names = l->names;
	return l->name_count;
}

size_t xsp_live_threads(const struct xsp_live *l, struct xsp_live_thread **threads)
{
	*threads = l->threads.rows;
	return l->threads.count;
}
