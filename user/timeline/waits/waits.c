/* SPDX-License-Identifier: BSD-2-Clause */
/* waits.c - hands on waits, the sums of threads, and the CPU time of spans. */
#include "timeline/timeline_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "catalog/wait_reasons.h"

/* What the kernel side counts for a thread under another name: waits inside CUDA calls. With a cut,
 * which the kernel side does not know: all kept waits. XSP_WAIT_RUNNABLE: the runnable time. */
struct sums {
	uint64_t blocked_ns[XSP_WAIT_CLASSES], waits[XSP_WAIT_CLASSES];
	size_t row; /* --windows: 1 + its row of `times`; 0: it has none so far */
};

struct xsp_waits {
	uint64_t least_ns;
	XSP_TALLY(struct sums) sums; /* by pid << 32 | tid */
	struct xsp_thread_times *times;
	size_t count, capacity;
};

static int begin(struct xsp_timeline *t)
{
	const char *text = xsp_capture_info(t->reader, "waits");

	if (text == NULL || strcmp(text, "off") == 0)
		return 0;
	t->waits = calloc(1, sizeof(*t->waits));
	if (t->waits == NULL)
		return -ENOMEM;
	t->waits->least_ns = strtoull(text, NULL, 10);
	t->waits_until_ns = xsp_capture_until_ns(t->reader, "waits");
	return 1;
}

static void free_waits(struct xsp_timeline *t)
{
	xsp_peers_free(t);
	if (t->waits == NULL)
		return;
	xsp_tally_free(&t->waits->sums);
	free(t->waits->times);
	free(t->waits);
}

bool xsp_timeline_has_waits(const struct xsp_timeline *t)
{
	return t->waits != NULL;
}

uint64_t xsp_timeline_waits_until_ns(const struct xsp_timeline *t)
{
	return t->waits_until_ns;
}

uint64_t xsp_timeline_wait_least_ns(const struct xsp_timeline *t)
{
	return t->waits != NULL ? t->waits->least_ns : 0;
}

uint64_t xsp_thread_blocked_ns(const struct xsp_thread_times *times)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < XSP_WAIT_CLASSES; i++)
		sum += times->blocked_ns[i];
	return sum;
}

bool xsp_timeline_python_lock(const struct xsp_timeline *t, uint32_t pid,
			      struct xsp_python_lock *out)
{
	char key[40];

	snprintf(key, sizeof(key), "python lock %" PRIu32, pid);
	const char *text = xsp_capture_info(t->reader, key);
	return text != NULL &&
	       sscanf(text, "%" SCNx64 " %" SCNu32 " %" SCNu32, &out->address,
		      &out->condition_bytes, &out->bytes) == 3 &&
	       out->condition_bytes > 0 && out->condition_bytes <= out->bytes;
}

size_t xsp_timeline_times(const struct xsp_timeline *t, const struct xsp_thread_times **times)
{
	*times = t->waits != NULL ? t->waits->times : NULL;
	return t->waits != NULL ? t->waits->count : 0;
}

void xsp_waits_forget(struct xsp_timeline *t)
{
	if (t->waits != NULL)
		t->waits->count = 0;
}

static int note_cpu_time(struct xsp_timeline *t, const struct row *row, struct xsp_span *span)
{
	(void)row;
	const uint64_t wall =
		xsp_timeline_clip(t, span->end_ns) - xsp_timeline_clip(t, span->start_ns);
	const uint64_t off = span->off_end_ns - span->off_start_ns;

	if (span->off_start_ns != XSP_OFF_UNKNOWN && span->off_end_ns != XSP_OFF_UNKNOWN &&
	    span->off_end_ns >= span->off_start_ns) {
		const uint64_t self_off = off > span->child_off_ns ? off - span->child_off_ns : 0;
		span->cpu_ns = wall > off ? wall - off : 0;
		if (span->child_off_ns != XSP_OFF_UNKNOWN)
			span->self_cpu_ns = span->self_ns > self_off ? span->self_ns - self_off : 0;
	}
	if (span->total_off_ns != XSP_OFF_UNKNOWN)
		span->total_cpu_ns = span->total_ns > span->total_off_ns
					     ? span->total_ns - span->total_off_ns
					     : 0;
	return 0;
}

/* ---- events ---- */

static int add_sums(struct xsp_waits *w, const struct xsp_event *e, const struct xsp_wait *wait)
{
	struct sums *s = xsp_tally_row(&w->sums, xsp_u64_pair(e->tgid, e->tid),
				       &(struct sums){.waits = {0}});

	if (s == NULL)
		return -ENOMEM;
	s->blocked_ns[wait->why] += wait->woken_ns - wait->left_ns;
	s->blocked_ns[XSP_WAIT_RUNNABLE] += wait->back_ns - wait->woken_ns;
	s->waits[wait->why]++;
	return 0;
}

static void move_in_cuda(struct xsp_waits *w, const struct xsp_event *e,
			 struct xsp_thread_times *times)
{
	const struct sums *c = xsp_tally_find(&w->sums, xsp_u64_pair(e->tgid, e->tid));

	for (size_t i = 0; c != NULL && i < XSP_WAIT_CLASSES; i++) {
		if (i == XSP_WAIT_RUNNABLE)
			continue;
		if (c->blocked_ns[i] > times->blocked_ns[i] || c->waits[i] > times->waits[i])
			continue; /* not a real wait */
		times->blocked_ns[i] -= c->blocked_ns[i];
		times->waits[i] -= c->waits[i];
		times->blocked_ns[XSP_WAIT_GPU] += c->blocked_ns[i];
		times->waits[XSP_WAIT_GPU] += c->waits[i];
	}
}

/* The thread's time in the cut, by the kept waits; shorter ones count as running. */
static void cut_times(const struct xsp_timeline *t, const struct xsp_event *e,
		      struct xsp_thread_times *times)
{
	struct xsp_waits *w = t->waits;
	const struct sums none = {.waits = {0}},
			  *s = xsp_tally_find(&w->sums, xsp_u64_pair(e->tgid, e->tid)) ?: &none;
	uint64_t off = 0;

	times->since_ns = xsp_timeline_clip(t, times->since_ns);
	times->until_ns = xsp_timeline_clip(t, times->until_ns);
	for (size_t i = 0; i < XSP_WAIT_CLASSES; i++) {
		off += s->blocked_ns[i];
		times->blocked_ns[i] = i == XSP_WAIT_RUNNABLE ? 0 : s->blocked_ns[i];
		times->waits[i] = s->waits[i];
	}
	times->runnable_ns = s->blocked_ns[XSP_WAIT_RUNNABLE];
	const uint64_t all = times->until_ns - times->since_ns;
	times->running_ns = all > off ? all - off : 0;
}

static const struct open_span *innermost(const struct thread *th)
{
	const struct row *row = th->rows[th->current];

	return row->count > 0 ? &row->spans[row->count - 1] : NULL;
}

/* The kernel's functions, after the rest of the path, without the scheduler's. */
static int push_kernel(struct xsp_timeline *t, struct row *row, const struct xsp_details *details,
		       struct xsp_wait *w)
{
	xsp_name_id ids[XSP_KERNEL_FRAMES];
	const size_t n = xsp_kernel_functions(t, details, ids);
	size_t first = 0;

	while (first < n && xsp_wait_is_scheduler(xsp_timeline_name(t, ids[first])))
		first++;
	if (first == n)
		return 0;
	w->kernel = ids[first] + 1;
	return xsp_path_push(&row->path, ids + first, n - first);
}

/* The path is that of a span without a name that begins there. */
static int notify_with_path(struct xsp_timeline *t, struct thread *th,
			    const struct xsp_event_wait *e, struct xsp_wait *w)
{
	struct open_span here = {.sp = e->head.sp};
	struct row *row = th->rows[th->current];
	int rc = xsp_details_add(&here.details, &e->head);
	bool was_reported = false;

	if (rc == 0)
		rc = xsp_path_to(t, th->pid, row, row->count, &here);
	if (rc == 0)
		rc = push_kernel(t, row, here.details, w);
	w->path = row->path.ids;
	w->path_length = row->path.length;
	w->spans_length = row->count > 0 ? row->path_ends[row->count - 1] : 0;
	w->details = here.details;
	if (rc == 0)
		rc = xsp_wait_place(t, w);
	const uint64_t back_ns = w->back_ns;
	if (rc == 0)
		rc = xsp_notify_wait(t, w, &was_reported);
	if (rc == 0 && t->charges_wanted)
		rc = xsp_charge_wait(t, th, w, back_ns);
	if (rc == 0 && was_reported && t->cut.text != NULL && !(w->flags & XSP_WAIT_SHORT))
		rc = add_sums(t->waits, &e->head, w);
	xsp_details_unref(here.details);
	return rc;
}

static int on_wait(struct xsp_timeline *t, const struct xsp_event_wait *e)
{
	struct thread *th;
	int rc = xsp_threads_get(t, &e->head, &th);

	if (rc < 0 || e->left_ns > e->head.time_ns)
		return rc; /* not a real wait */
	rc = xsp_off_add(t, th, e);
	if (rc < 0)
		return rc;
	const struct open_span *s = innermost(th),
			       *reported = xsp_row_innermost_kept(th->rows[th->current]);
	struct xsp_wait w = {
		.pid = th->pid,
		.tid = th->tid,
		.left_ns = e->left_ns,
		.woken_ns = e->woken_ns < e->left_ns	    ? e->head.time_ns
			    : e->woken_ns > e->head.time_ns ? e->head.time_ns
							    : e->woken_ns,
		.back_ns = e->head.time_ns,
		.short_ns = e->short_ns,
		.why = e->why & (XSP_WAIT_CLASSES - 1),
		.syscall = e->syscall,
		.argument = e->argument,
		.waker = e->waker,
		.flags = e->flags,
		.in_span = reported != NULL,
		.span = reported != NULL ? reported->name : 0,
	};
	xsp_wait_of_part(t, &w);
	if (w.why == XSP_WAIT_RUNNABLE)
		w.woken_ns = w.left_ns;
	if (s != NULL && w.why != XSP_WAIT_RUNNABLE && !(w.flags & XSP_WAIT_SHORT) &&
	    xsp_timeline_cuda(t, s->probe) != NULL) {
		rc = t->cut.text == NULL ? add_sums(t->waits, &e->head, &w) : 0;
		w.why = XSP_WAIT_GPU;
	}
	if (rc == 0 && e->owner != 0 && !xsp_threads_by_ns(t, th->pid, e->owner, &w.owner))
		w.owner = 0;
	if (rc == 0)
		rc = xsp_wait_peer(t, e, &w);
	return rc < 0 ? rc : notify_with_path(t, th, e, &w);
}

static void read_faults(const struct xsp_event_times *e, struct xsp_thread_times *times)
{
	const struct xsp_section *s = xsp_event_section(&e->head, XSP_SECTION_FAULTS);
	const uint64_t *counts = s != NULL ? xsp_section_data(s) : NULL;

	if (s == NULL || xsp_section_length(s) < 2 * sizeof(*counts))
		return;
	times->faults_known = true;
	times->minor_faults = counts[0];
	times->major_faults = counts[1];
	if (xsp_section_length(s) >= 2 * sizeof(*counts) + sizeof(times->io))
		memcpy(&times->io, counts + 2, sizeof(times->io));
}

/* Adds what a thread did in a later window to what it did before. Its beginning is then so long before its end as it was
 * recorded: what lies between two windows is not its time. */
static void add_window(struct xsp_thread_times *to, const struct xsp_thread_times *more)
{
	to->since_ns = more->since_ns - (to->until_ns - to->since_ns);
	to->until_ns = more->until_ns;
	to->running_ns += more->running_ns;
	to->runnable_ns += more->runnable_ns;
	for (size_t i = 0; i < XSP_WAIT_CLASSES; i++) {
		to->blocked_ns[i] += more->blocked_ns[i];
		to->waits[i] += more->waits[i];
	}
	to->faults_known = to->faults_known && more->faults_known;
	to->minor_faults += more->minor_faults;
	to->major_faults += more->major_faults;
	for (size_t i = 0; i < sizeof(to->io) / sizeof(uint64_t); i++)
		((uint64_t *)&to->io)[i] += ((const uint64_t *)&more->io)[i];
	to->ended = more->ended;
	to->now = more->now;
}

/* --windows: the last row is of one of them. The sums of waits begin anew. */
static int end_window(struct xsp_waits *w, const struct xsp_event *e)
{
	struct sums *s = xsp_tally_row(&w->sums, xsp_u64_pair(e->tgid, e->tid),
				       &(struct sums){.waits = {0}});

	if (s == NULL)
		return -ENOMEM;
	const size_t row = s->row;
	*s = (struct sums){.row = row != 0 ? row : w->count};
	if (row != 0 && w->times[row - 1].until_ns <= w->times[w->count - 1].since_ns)
		add_window(&w->times[row - 1], &w->times[--w->count]);
	return 0;
}

/* The thread's last event, if the thread has ended. */
static int on_times(struct xsp_timeline *t, const struct xsp_event_times *e)
{
	struct xsp_waits *w = t->waits;
	const struct xsp_timeline_thread *thread;
	int rc = xsp_threads_info(t, &e->head, e->ended != 0, &thread);

	if (rc == 0 && (xsp_cut_time(t, e->since_ns, e->head.time_ns) != 0 ||
			xsp_cut_thread(t, thread->tid) != 0))
		return 0;
	if (rc < 0 || xsp_grow(&w->times, &w->capacity, w->count + 1) < 0)
		return rc < 0 ? rc : -ENOMEM;
	struct xsp_thread_times *times = &w->times[w->count++];
	*times = (struct xsp_thread_times){.thread = thread,
					   .since_ns = e->since_ns,
					   .until_ns = e->head.time_ns,
					   .running_ns = e->running_ns,
					   .runnable_ns = e->runnable_ns,
					   .ended = e->ended != 0};
	for (size_t i = 0; i < XSP_WAIT_CLASSES; i++) {
		times->blocked_ns[i] = e->blocked_ns[i];
		times->waits[i] = e->waits[i];
	}
	if (t->cut.text == NULL)
		read_faults(e, times);
	if (t->cut.text != NULL)
		cut_times(t, &e->head, times);
	else
		move_in_cuda(w, &e->head, times);
	times->now = e->now <= XSP_NOW_WAITS + XSP_WAIT_CLASSES - 1 ? e->now : XSP_NOW_UNKNOWN;
	if (t->scheduled && !e->ended)
		return end_window(w, &e->head);
	if (e->ended) { /* the next thread with this number is another one */
		rc = t->scheduled ? end_window(w, &e->head) : 0;
		xsp_tally_forget(&w->sums, xsp_u64_pair(e->head.tgid, e->head.tid));
	}
	return rc;
}

static int on_event(struct xsp_timeline *t, const struct xsp_event *e)
{
	if (e->kind == XSP_EVENT_WAIT)
		return on_wait(t, (const void *)e);
	return on_times(t, (const void *)e);
}

const struct xsp_listener xsp_listener_waits = {
	.name = "waits",
	.live = true,
	.begin = begin,
	.events = 1U << XSP_EVENT_WAIT | 1U << XSP_EVENT_TIMES,
	.event = on_event,
	.note = note_cpu_time,
	.free = free_waits,
};
