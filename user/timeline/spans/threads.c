/* SPDX-License-Identifier: BSD-2-Clause */
/* threads.c - threads: found by tid, kept while they live, and then as a small record. */
#include "timeline/spans/spans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/order.h"
#include "timeline/others.h"

int xsp_threads_begin(struct xsp_timeline *t)
{
	const struct xsp_capture_thread *threads;
	const struct xsp_capture_process *processes;
	size_t count = xsp_capture_threads(t->reader, &threads);
	for (size_t i = 0; i < count; i++) {
		if (xsp_u64map_set(&t->definitions, xsp_u64_pair(threads[i].pid, threads[i].tid),
				   (uint32_t)i) < 0)
			return -ENOMEM;
	}
	count = xsp_capture_processes(t->reader, &processes);
	for (size_t i = 0; i < count; i++) {
		if (xsp_u64map_set(&t->processes, processes[i].pid, (uint32_t)i) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void drop_details(const struct open_span *spans, size_t count)
{
	for (size_t i = 0; i < count; i++)
		xsp_details_unref(spans[i].details);
}

static void free_thread(struct thread *th)
{
	for (size_t i = 0; i < th->row_count; i++) {
		drop_details(th->rows[i]->spans, th->rows[i]->count);
		free(th->rows[i]->spans);
		free(th->rows[i]->names);
		free(th->rows[i]->path.ids);
		free(th->rows[i]->path_ends);
		free(th->rows[i]);
	}
	for (size_t i = 0; i < th->parked_made; i++) {
		drop_details(th->parked[i]->spans, th->parked[i]->count);
		free(th->parked[i]->spans);
		free(th->parked[i]->names);
		free(th->parked[i]);
	}
	free(th->rows);
	free(th->parked);
	xsp_off_forget(th);
	free(th);
}

void xsp_threads_free(struct xsp_timeline *t)
{
	for (size_t i = 0; i < t->alive_made; i++)
		free_thread(t->alive[i]);
	for (size_t i = 0; i < t->record_count; i++)
		free(t->records[i]);
	free(t->alive);
	free(t->records);
	free(t->sorted);
	xsp_u64map_free(&t->definitions);
	xsp_u64map_free(&t->processes);
	xsp_u64map_free(&t->by_tid);
	xsp_u64map_free(&t->record_of);
}

/* ---- records ---- */

static void set_comm(struct thread_record *r, const char *comm, size_t size)
{
	size_t length = strnlen(comm, size < sizeof(r->comm) ? size : sizeof(r->comm) - 1);
	memcpy(r->comm, comm, length);
	r->comm[length] = '\0';
}

static void describe(const struct xsp_timeline *t, struct thread_record *r)
{
	const struct xsp_capture_thread *threads;
	const struct xsp_capture_process *processes;
	xsp_capture_threads(t->reader, &threads);
	xsp_capture_processes(t->reader, &processes);
	const uint32_t *d = xsp_u64map_get(&t->definitions,
					   xsp_u64_pair(r->thread_info.pid, r->thread_info.tid));
	const uint32_t *p = xsp_u64map_get(&t->processes, r->thread_info.pid);
	r->thread_info.ns_pid =
		p != NULL && processes[*p].ns_pid != 0 ? processes[*p].ns_pid : r->thread_info.pid;
	/* the main thread's id is the process's, in every namespace */
	r->thread_info.ns_tid = r->thread_info.tid == r->thread_info.pid ? r->thread_info.ns_pid
									 : r->thread_info.tid;
	if (d != NULL && threads[*d].ns_tid != 0)
		r->thread_info.ns_tid = threads[*d].ns_tid;
	const char *comm = r->thread_info.pid == XSP_OTHERS_PID	      ? XSP_OTHERS_NAME
			   : d != NULL && threads[*d].comm[0] != '\0' ? threads[*d].comm
			   : p != NULL				      ? processes[*p].comm
								      : "";
	set_comm(r, comm, SIZE_MAX);
}

static int new_record(struct xsp_timeline *t, uint32_t pid, uint32_t tid, uint32_t *out)
{
	const uint32_t *before = xsp_u64map_get(&t->record_of, tid);
	const uint64_t last_ns = before == NULL ? 0 : t->records[*before]->last_ns;
	const size_t index = t->record_count;
	struct thread_record *r =
		index < UINT32_MAX
			? XSP_APPEND_ZEROED(t->records, t->record_capacity, t->record_count)
			: NULL;
	if (r == NULL || xsp_u64map_set(&t->record_of, tid, (uint32_t)index) < 0)
		return -ENOMEM;
	r->thread_info = (struct xsp_timeline_thread){.pid = pid, .tid = tid, .rows = 1};
	r->thread_info.comm = r->comm;
	r->last_ns = last_ns;
	describe(t, r);
	*out = (uint32_t)index;
	return 0;
}

/* ---- live threads ---- */

static int spare_thread(struct xsp_timeline *t, struct thread **out)
{
	if (t->alive_count == t->alive_made &&
	    XSP_APPEND_ZEROED(t->alive, t->alive_capacity, t->alive_made) == NULL)
		return -ENOMEM;
	*out = t->alive[t->alive_count];
	return 0;
}

static int begin_thread(struct xsp_timeline *t, uint32_t pid, uint32_t tid, struct thread **out)
{
	struct thread *th;
	int rc = spare_thread(t, &th);
	if (rc < 0)
		return rc;
	const uint32_t *record = xsp_u64map_get(&t->record_of, tid);
	if (record != NULL && t->records[*record]->thread_info.pid == pid)
		th->record = *record;
	else if ((rc = new_record(t, pid, tid, &th->record)) < 0)
		return rc;
	th->tid = tid;
	th->pid = pid;
	th->position = (uint32_t)t->alive_count;
	th->used_rows = 0;
	th->born_ns = t->records[th->record]->last_ns;
	th->current = 0;
	th->many_stacks = false;
	xsp_off_forget(th);
	th->windows = th->let_gos = 0;
	th->top_sp = 0;
	th->exit = EXIT_NONE;
	struct row *row;
	rc = xsp_row_get(t, th, 0, &row);
	if (rc == 0)
		rc = xsp_u64map_set(&t->by_tid, tid, th->position);
	if (rc < 0)
		return rc;
	t->alive_count++;
	*out = th;
	return 0;
}

/* Closes the open spans and releases the thread; the next one gets its memory. */
static int end_thread(struct xsp_timeline *t, struct thread *th, uint64_t end_ns, uint32_t flags)
{
	int rc = xsp_pair_far_ends(t, th, end_ns);
	if (rc == 0)
		rc = xsp_windows_pass(t, th, end_ns);
	if (rc == 0)
		rc = xsp_pair_close(t, th, end_ns, flags);
	xsp_u64map_remove(&t->by_tid, th->tid);
	uint64_t *last_ns = &t->records[th->record]->last_ns;
	for (size_t i = 0; i < th->row_count; i++) {
		*last_ns = xsp_max_u64(*last_ns, th->rows[i]->last_ns);
		th->rows[i]->base = th->rows[i]->last_ns = 0;
	}
	t->alive_count--;
	struct thread *moved = t->alive[t->alive_count];
	t->alive[th->position] = moved;
	t->alive[t->alive_count] = th;
	if (moved != th) {
		moved->position = th->position;
		uint32_t *at = xsp_u64map_get(&t->by_tid, moved->tid);
		if (at != NULL)
			*at = moved->position;
	}
	t->last = NULL;
	return rc;
}

int xsp_threads_end_idle(struct xsp_timeline *t, uint32_t tid, uint64_t now)
{
	const uint32_t *at = xsp_u64map_get(&t->by_tid, tid);
	struct thread *th = at != NULL ? t->alive[*at] : NULL;

	for (size_t i = 0; th != NULL && i < th->used_rows; i++)
		if (th->rows[i]->count > 0)
			return 0;
	if (th != NULL && th->parked_count > 0)
		return 0;
	int rc = th != NULL ? end_thread(t, th, now, XSP_SPAN_UNFINISHED) : 0;
	return rc < 0 ? rc : 1;
}

int xsp_threads_get(struct xsp_timeline *t, const struct xsp_event *e, struct thread **out)
{
	struct thread *th = t->last;
	if (th != NULL && th->tid == e->tid && th->pid == e->tgid) {
		*out = th;
		return 0;
	}
	const uint32_t *at = xsp_u64map_get(&t->by_tid, e->tid);
	int rc = 0;
	th = at == NULL ? NULL : t->alive[*at];
	if (th != NULL && th->pid != e->tgid) {
		/* another process's thread has the id now; this one's exit was not seen */
		rc = end_thread(t, th, e->time_ns, XSP_SPAN_UNFINISHED);
		th = NULL;
	}
	if (rc == 0 && th == NULL)
		rc = begin_thread(t, e->tgid, e->tid, &th);
	if (rc != 0)
		return rc;
	*out = t->last = th;
	return 0;
}

int xsp_threads_end(struct xsp_timeline *t, uint64_t end_ns)
{
	while (t->alive_count > 0) {
		int rc = end_thread(t, t->alive[t->alive_count - 1], end_ns, XSP_SPAN_UNFINISHED);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int xsp_threads_forget(struct xsp_timeline *t)
{
	struct thread_record **kept = calloc(t->alive_count + 1, sizeof(void *));

	if (kept == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < t->alive_count; i++) {
		kept[i] = t->records[t->alive[i]->record];
		t->records[t->alive[i]->record] = NULL;
		t->alive[i]->record = (uint32_t)i;
	}
	for (size_t i = 0; i < t->record_count; i++)
		free(t->records[i]);
	free(t->records);
	t->records = kept;
	t->record_capacity = t->alive_count + 1;
	t->record_count = t->alive_count;
	xsp_u64map_free(&t->record_of);
	for (size_t i = 0; i < t->record_count; i++)
		if (xsp_u64map_set(&t->record_of, kept[i]->thread_info.tid, (uint32_t)i) < 0)
			return -ENOMEM;
	/* the capture has released them */
	xsp_u64map_free(&t->definitions);
	xsp_u64map_free(&t->processes);
	return xsp_threads_begin(t);
}

uint64_t xsp_timeline_open_since(const struct xsp_timeline *t, const struct xsp_open_spans *open,
				 size_t index)
{
	const struct open_span *s = (const struct open_span *)open->spans + index;

	return t->gone_ns != NULL && s->probe < t->probe_count && t->gone_ns[s->probe] != UINT64_MAX
		       ? 0
		       : s->start_ns;
}

/* How many of a row's spans a window's end has closed: the thread has had no event since, which
 * would have removed them. */
static size_t cut_by_windows(const struct xsp_timeline *t, const struct row *row)
{
	size_t n = 0;

	if (t->window_count == 0)
		return 0;
	while (n < row->count && row->spans[n].start_ns <= t->windows[t->window_count - 1].end_ns)
		n++;
	return n;
}

void xsp_timeline_open(const struct xsp_timeline *t,
		       void (*fn)(void *ctx, const struct xsp_open_spans *open), void *ctx)
{
	for (size_t i = 0; i < t->alive_count; i++) {
		const struct thread *th = t->alive[i];
		for (uint32_t k = 0; k < th->used_rows; k++) {
			const struct row *row = th->rows[k];
			const size_t cut = cut_by_windows(t, row);
			const struct open_span *last =
				row->count > cut ? &row->spans[row->count - 1] : NULL;
			fn(ctx, &(struct xsp_open_spans){
					.thread = &t->records[th->record]->thread_info,
					.current = k == th->current,
					.names = row->names + cut,
					.count = row->count - cut,
					.in_cuda = last != NULL &&
						   xsp_timeline_cuda(t, last->probe) != NULL,
					.spans = row->spans + cut});
		}
	}
}

int xsp_threads_info(struct xsp_timeline *t, const struct xsp_event *e, bool ended,
		     const struct xsp_timeline_thread **out)
{
	const uint32_t *at = xsp_u64map_get(&t->by_tid, e->tid);
	const uint32_t *record = xsp_u64map_get(&t->record_of, e->tid);
	uint32_t fresh = record != NULL ? *record : 0;
	int rc = 0;

	if (t->live && !ended) { /* it lives: its record must stay */
		struct thread *th;
		rc = xsp_threads_get(t, e, &th);
		if (rc == 0)
			*out = &t->records[th->record]->thread_info;
		return rc;
	}
	if (at != NULL && ended)
		rc = end_thread(t, t->alive[*at], e->time_ns, XSP_SPAN_UNFINISHED);
	if (rc == 0 && (record == NULL || t->records[fresh]->thread_info.pid != e->tgid))
		rc = new_record(t, e->tgid, e->tid, &fresh);
	if (rc == 0)
		*out = &t->records[fresh]->thread_info;
	return rc;
}

bool xsp_threads_by_ns(const struct xsp_timeline *t, uint32_t pid, uint32_t ns_tid, uint32_t *out)
{
	const struct xsp_capture_thread *threads;
	size_t count = xsp_capture_threads(t->reader, &threads);

	/* a number that came again: its latest thread */
	for (size_t i = t->record_count; i > 0; i--) {
		const struct xsp_timeline_thread *thread_info = &t->records[i - 1]->thread_info;
		if (thread_info->pid == pid && thread_info->ns_tid == ns_tid) {
			*out = thread_info->tid;
			return true;
		}
	}
	for (size_t i = count; i > 0; i--) {
		if (threads[i - 1].pid == pid && threads[i - 1].ns_tid == ns_tid) {
			*out = threads[i - 1].tid;
			return true;
		}
	}
	return false;
}

/* ---- task events ---- */

static int task_exec(struct xsp_timeline *t, struct thread *th, uint64_t now)
{
	/* the other threads of the process are gone too */
	for (size_t i = t->alive_count; i > 0; i--) {
		struct thread *other = t->alive[i - 1];
		if (other->pid != th->pid)
			continue;
		int rc = xsp_windows_pass(t, other, now);
		if (rc == 0)
			rc = xsp_pair_close(t, other, now, XSP_SPAN_UNWOUND);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* A task with a known name and an id of its own: another name shows that a tid was reused. */
static int task_fork(struct xsp_timeline *t, const struct xsp_event_task *k)
{
	const uint32_t *at = xsp_u64map_get(&t->by_tid, k->head.tid);
	if (at != NULL) {
		int rc = end_thread(t, t->alive[*at], k->head.time_ns, XSP_SPAN_UNFINISHED);
		if (rc < 0)
			return rc;
	}
	const uint32_t *r = xsp_u64map_get(&t->record_of, k->head.tid);
	if (r != NULL && k->comm[0] != '\0' &&
	    strncmp(t->records[*r]->comm, k->comm, sizeof(k->comm)) != 0) {
		uint32_t fresh;
		return new_record(t, k->head.tgid, k->head.tid, &fresh);
	}
	return 0;
}

int xsp_threads_task(struct xsp_timeline *t, const struct xsp_event *e)
{
	const struct xsp_event_task *k = (const void *)e;
	struct thread *th = NULL;
	int rc = 0;
	if (k->what == XSP_TASK_EXIT && xsp_u64map_get(&t->by_tid, e->tid) == NULL)
		return 0;
	if (k->what == XSP_TASK_FORK)
		rc = task_fork(t, k);
	if (rc == 0)
		rc = xsp_threads_get(t, e, &th);
	if (rc != 0)
		return rc;
	struct thread_record *r = t->records[th->record];
	if (k->comm[0] != '\0')
		set_comm(r, k->comm, sizeof(k->comm));
	if (k->ns_tid != 0) {
		r->thread_info.ns_tid = k->ns_tid;
		if (e->tid == e->tgid)
			r->thread_info.ns_pid = k->ns_tid;
	}
	if (k->what == XSP_TASK_EXEC) {
		rc = xsp_memory_exec(t, e);
		return rc == 0 ? task_exec(t, th, e->time_ns) : rc;
	}
	if (k->what == XSP_TASK_EXIT)
		return end_thread(t, th, e->time_ns, XSP_SPAN_UNFINISHED);
	return 0;
}

/* ---- what is shown ---- */

static XSP_ORDER(by_ids, struct xsp_timeline_thread, XSP_RISING(pid) ?: XSP_RISING(tid));

size_t xsp_timeline_threads(const struct xsp_timeline *t,
			    const struct xsp_timeline_thread **threads)
{
	struct xsp_timeline *mutable = (struct xsp_timeline *)(uintptr_t)t;
	*threads = NULL;
	struct xsp_timeline_thread *list = calloc(t->record_count + 1, sizeof(*list));
	if (list == NULL)
		return 0;
	size_t count = 0;
	for (size_t i = 0; i < t->record_count; i++)
		if (t->records[i]->thread_info.has_spans)
			list[count++] = t->records[i]->thread_info;
	qsort(list, count, sizeof(*list), by_ids);
	free(mutable->sorted);
	mutable->sorted = list;
	*threads = list;
	return count;
}

const struct xsp_timeline_thread *xsp_timeline_thread(const struct xsp_timeline *t, uint32_t tid)
{
	const uint32_t *at = xsp_u64map_get(&t->record_of, tid);
	return at == NULL ? NULL : &t->records[*at]->thread_info;
}
