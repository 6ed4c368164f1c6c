/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/names/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/u64map.h"

/* Of a name, when the interval began. */
struct sums {
	uint64_t calls, total_ns, self_ns;
};

/* Of a thread, the same. */
struct thread_sums {
	uint64_t key, until_ns, running_ns, runnable_ns, blocked_ns[XSP_WAIT_CLASSES];
};

/* Spans of a thread in the interval. */
struct tally {
	uint64_t key, spans;
};

struct xsp_live {
	struct xsp_timeline *timeline;
	struct xsp_summary *summary;
	uint64_t recorded_ns, interval_ns;
	struct sums *before; /* by name */
	uint64_t *open; /* by name */
	size_t before_capacity, before_count, open_capacity, open_count;
	struct xsp_live_name *names;
	size_t name_count, name_capacity;
	struct xsp_live_thread *threads;
	size_t thread_count, thread_capacity;
	struct xsp_u64map thread_of; /* pid << 32 | tid → index in threads */
	struct thread_sums *sums; /* of those that had times at the last interval's end */
	size_t sum_count, sum_capacity;
	struct xsp_u64map sums_of;
	struct tally *tallies;
	size_t tally_count, tally_capacity;
	struct xsp_u64map tally_of;
	size_t last; /* tally of the last span */
	int error; /* in a function that cannot return it */
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
	xsp_u64map_free(&l->thread_of);
	xsp_u64map_free(&l->sums_of);
	xsp_u64map_free(&l->tally_of);
	free(l->before);
	free(l->open);
	free(l->names);
	free(l->threads);
	free(l->sums);
	free(l->tallies);
	free(l);
}

/* ---- spans ---- */

static int tally_of(struct xsp_live *l, uint64_t key, size_t *out)
{
	const long at = xsp_u64map_index(&l->tally_of, key, &l->tallies, &l->tally_capacity,
					 l->tally_count);

	if (at < 0)
		return -ENOMEM;
	*out = (size_t)at;
	if (*out == l->tally_count)
		l->tallies[l->tally_count++] = (struct tally){.key = key};
	return 0;
}

static int on_span(void *ctx, const struct xsp_span *span)
{
	struct xsp_live *l = ctx;
	const struct xsp_timeline_sink summary = xsp_summary_sink(l->summary);
	const uint64_t key = key_of(span->pid, span->tid);
	int rc = 0;

	if (l->last >= l->tally_count || l->tallies[l->last].key != key)
		rc = tally_of(l, key, &l->last);
	if (rc < 0)
		return rc;
	l->tallies[l->last].spans++;
	return summary.span(summary.ctx, span);
}

struct xsp_timeline_sink xsp_live_sink(struct xsp_live *l)
{
	return (struct xsp_timeline_sink){.ctx = l, .span = on_span};
}

/* ---- threads ---- */

static struct xsp_live_thread *thread_of(struct xsp_live *l, const struct xsp_timeline_thread *t)
{
	const uint64_t key = key_of(t->pid, t->tid);
	const long at = xsp_u64map_index(&l->thread_of, key, &l->threads, &l->thread_capacity,
					 l->thread_count);

	if (at < 0) {
		l->error = -ENOMEM;
		return NULL;
	}
	struct xsp_live_thread *thread = &l->threads[at];
	if ((size_t)at < l->thread_count)
		return thread;
	l->thread_count++;
	*thread = (struct xsp_live_thread){
		.pid = t->pid, .tid = t->tid, .ns_pid = t->ns_pid, .ns_tid = t->ns_tid};
	snprintf(thread->comm, sizeof(thread->comm), "%s", t->comm);
	return thread;
}

static uint64_t more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0; /* what was open then was an estimate */
}

static void update_times(struct xsp_live *l, const struct xsp_thread_times *t)
{
	const uint64_t key = key_of(t->thread->pid, t->thread->tid);
	const uint32_t *at = xsp_u64map_get(&l->sums_of, key);
	const struct thread_sums none = {.until_ns = t->since_ns};
	const struct thread_sums *before = at != NULL ? &l->sums[*at] : &none;
	struct xsp_live_thread *thread = thread_of(l, t->thread);

	if (thread == NULL)
		return;
	if (before->until_ns < t->since_ns) /* the number came again */
		before = &none;
	thread->times_known = true;
	thread->now = t->now;
	thread->interval_ns = more(t->until_ns, before->until_ns);
	thread->running_ns = more(t->running_ns, before->running_ns);
	thread->runnable_ns = more(t->runnable_ns, before->runnable_ns);
	for (size_t i = 0; i < XSP_WAIT_CLASSES; i++)
		thread->blocked_ns[i] = more(t->blocked_ns[i], before->blocked_ns[i]);
}

/* For the next interval. */
static int keep_times(struct xsp_live *l, const struct xsp_thread_times *times, size_t count)
{
	xsp_u64map_free(&l->sums_of);
	l->sum_count = 0;
	if (xsp_grow(&l->sums, &l->sum_capacity, count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct xsp_thread_times *t = &times[i];
		struct thread_sums *s = &l->sums[l->sum_count];
		if (t->ended)
			continue;
		*s = (struct thread_sums){.key = key_of(t->thread->pid, t->thread->tid),
					  .until_ns = t->until_ns,
					  .running_ns = t->running_ns,
					  .runnable_ns = t->runnable_ns};
		memcpy(s->blocked_ns, t->blocked_ns, sizeof(s->blocked_ns));
		if (xsp_u64map_set(&l->sums_of, s->key, (uint32_t)l->sum_count++) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* With waits the threads are those that times came of. */
static int update_threads(struct xsp_live *l)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(l->timeline, &times);

	xsp_u64map_free(&l->thread_of);
	l->thread_count = 0;
	for (size_t i = 0; i < count; i++)
		if (!times[i].ended)
			update_times(l, &times[i]);
	return l->error < 0 ? l->error : keep_times(l, times, count);
}

static void on_open_spans(void *ctx, const struct xsp_open_spans *open)
{
	struct xsp_live *l = ctx;
	const bool known =
		xsp_u64map_get(&l->thread_of, key_of(open->thread->pid, open->thread->tid)) != NULL;

	for (size_t i = 0; i < open->count; i++)
		if (open->names[i] < l->open_count)
			l->open[open->names[i]]++;
	if (!known && xsp_timeline_has_waits(l->timeline))
		return; /* it is about to end */
	struct xsp_live_thread *thread = thread_of(l, open->thread);
	if (thread == NULL || !open->current || open->count == 0)
		return;
	thread->has_open = true;
	thread->open = open->names[open->count - 1];
	if (open->in_cuda && thread->now > XSP_NOW_WAITS + XSP_WAIT_RUNNABLE)
		thread->now = XSP_NOW_WAITS + XSP_WAIT_GPU;
}

static void update_tallies(struct xsp_live *l)
{
	for (size_t i = 0; i < l->tally_count; i++) {
		const uint32_t *at = xsp_u64map_get(&l->thread_of, l->tallies[i].key);
		if (at != NULL)
			l->threads[*at].spans = l->tallies[i].spans;
	}
	l->tally_count = 0;
	xsp_u64map_free(&l->tally_of);
}

/* ---- names ---- */

static int make_room(struct xsp_live *l)
{
	const size_t count = xsp_timeline_name_count(l->timeline);

	if (xsp_grow(&l->before, &l->before_capacity, count) < 0 ||
	    xsp_grow(&l->open, &l->open_capacity, count) < 0)
		return -ENOMEM;
	if (count > l->before_count)
		memset(l->before + l->before_count, 0,
		       (count - l->before_count) * sizeof(*l->before));
	if (count > 0)
		memset(l->open, 0, count * sizeof(*l->open));
	l->before_count = l->open_count = count;
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
	/* of which no call has ended yet */
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
	update_tallies(l);
	rc = l->error < 0 ? l->error : update_names(l);
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
	*threads = l->threads;
	return l->thread_count;
}
