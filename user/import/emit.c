/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * emit.c - writes what has been sorted as events of a capture: entries and exits at the stack
 * pointers of an invented stack, and batches of the agent's records.
 *
 * Spans of a thread that overlap without nesting cannot share a stack: each further one is shown as
 * a thread of its own, a lane.
 */
#include "import/import_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/search.h"
#include "catalog/gpu/cuda_table.h"

#define STACK_TOP 0x7fff00000000ULL
#define FRAME 16U
#define DEPTH_MAX (1U << 18)
#define LANES_MAX 256U /* of a thread */
/* Rounded times may let an inner span stick out of the outer one, or a span reach into the next
 * one, by this much (`join`). */
#define CLIP_NS 1000
/* Records are held back this long, so that a batch has several. */
#define LATE_NS 100000000
#define ASYNC_CALLS (1U << 14)
#define WINDOW_NS 1 /* identifies the window of collection: there is only one */

struct open_span {
	int64_t end_ns;
	uint32_t probe;
	uint32_t correlation, cbid;
	uint8_t ending, api;
	bool goes_on; /* a call of Python that ends with the last one: its return may be lost */
	int64_t begin_ns; /* of a call */
	uint64_t id; /* xsp_import_span.id */
};

struct lane {
	uint32_t thread, tid;
	uint32_t next; /* 1 + index of the thread's next one; 0: none */
	struct open_span *open;
	size_t depth, capacity;
	size_t place; /* in the heap, from 1; 0: nothing is open */
};

struct emitter {
	struct xsp_import *m;
	int64_t offset; /* from times of the trace to those of the capture */
	struct lane *lanes;
	size_t lane_count, lane_capacity;
	/* lanes with open spans; the first one is that whose innermost span ends first */
	uint32_t *heap;
	size_t heap_count, heap_capacity;
	/* the batch at hand */
	struct {
		struct xsp_event_gpu head;
		uint64_t records[XSP_GPU_BATCH_MAX / 8];
	} batch;
	/* call_key() of the last asynchronous calls, by correlation */
	uint64_t asynchronous[ASYNC_CALLS];
	size_t used; /* bytes of records */
	uint32_t count;
	int64_t batch_ns;
	struct xsp_import_process *process; /* its process */
	struct xsp_import_process *main; /* the process of what the trace names no process for */
	struct xsp_import_process nobody;
};

static uint64_t call_key(const struct xsp_import_process *process, uint32_t correlation)
{
	return (uint64_t)process->pid << 32 | correlation;
}

static uint64_t time_at(const struct emitter *t, int64_t ns)
{
	return (uint64_t)(ns + t->offset);
}

/* ---- records ---- */

static int flush_batch(struct emitter *t)
{
	const struct xsp_gpu_batch_head head = {
		.head = {XSP_GPU_BATCH_HEAD, sizeof(head), XSP_GPU_VERSION},
		.pid = t->process->pid,
		.records = t->count,
		.first = t->process->records,
		.window_ns = WINDOW_NS,
	};

	if (t->count == 0)
		return 0;
	memcpy(t->batch.records, &head, sizeof(head));
	t->batch.head = (struct xsp_event_gpu){
		.head = {.time_ns = time_at(t, t->batch_ns),
			 .tid = t->process->pid,
			 .tgid = t->process->pid,
			 .probe = t->m->gpu_probe - 1,
			 .kind = XSP_EVENT_GPU,
			 .size = (uint16_t)(sizeof(t->batch.head) + t->used)},
		.bytes = (uint32_t)t->used,
	};
	t->process->records += t->count;
	t->count = 0;
	t->used = 0;
	return xsp_capture_put_event(t->m->w, 0, &t->batch, t->batch.head.head.size);
}

/* Makes room for a record of `size` bytes, at most XSP_GPU_BATCH_MAX with the head, in *out. */
static int begin_record(struct emitter *t, struct xsp_import_process *process, int64_t now,
			size_t size, void **out)
{
	int rc = 0;

	if (t->used + size > sizeof(t->batch.records) || process != t->process)
		rc = flush_batch(t);
	t->process = process;
	if (t->used == 0) {
		t->used = sizeof(struct xsp_gpu_batch_head);
		t->batch_ns = now;
	}
	*out = (char *)t->batch.records + t->used;
	memset(*out, 0, size);
	t->used += size;
	t->count++;
	return rc;
}

static int emit_name(struct emitter *t, struct xsp_import_process *process, int64_t now,
		     uint64_t id, const char *text)
{
	struct xsp_gpu_name *n;
	const size_t whole = strlen(text),
		     length = whole < XSP_GPU_NAME_MAX ? whole : XSP_GPU_NAME_MAX;
	const size_t size = (sizeof(*n) + length + 7) & ~(size_t)7;
	void *room;
	int rc = begin_record(t, process, now, size, &room);

	n = room;
	*n = (struct xsp_gpu_name){.head = {XSP_GPU_NAME, (uint16_t)size, 0},
				   .id = id,
				   .space = XSP_GPU_NAME_STRING,
				   .whole = (uint32_t)whole,
				   .text_at = sizeof(*n),
				   .length = (uint16_t)length};
	memcpy(n + 1, text, length);
	return rc;
}

/* A name of the JSON without its escapes, in m->text. */
static const char *unescaped(struct xsp_import *m, const struct xsp_import_name *name)
{
	char *quoted = m->text + XSP_IMPORT_NAME_MAX; /* as it was written */

	quoted[0] = '"';
	memcpy(quoted + 1, name->raw, name->length);
	quoted[1 + name->length] = '"';
	memset(quoted + 2 + name->length, 0, XSP_JSON_PAD);
	xsp_import_text(m, quoted, m->text, XSP_GPU_NAME_MAX);
	return m->text;
}

static void note_asynchronous(struct xsp_gpu_record *record)
{
	if (record->type == XSP_GPU_MEMCPY || record->type == XSP_GPU_MEMCPY_P2P)
		((struct xsp_gpu_memcpy *)(void *)record)->flags = 1;
	else if (record->type == XSP_GPU_MEMSET)
		((struct xsp_gpu_memset *)(void *)record)->flags = 1;
}

static struct xsp_import_process *process_of_row(struct emitter *t, uint32_t row)
{
	const uint32_t process = t->m->gpu_rows.rows[row].process;

	return process != 0 ? &t->m->processes.rows[process - 1] : t->main;
}

/* A time of 0 says that there is none, unless the trace begins there. */
static uint64_t activity_time(const struct emitter *t, int64_t ns)
{
	const struct xsp_import *m = t->m;
	const bool far = ns < m->first_ns || ns > m->last_ns;

	return far && (ns == 0 || ns + m->base_ns == 0) ? 0 : time_at(t, ns);
}

static int emit_activity(struct emitter *t, const struct xsp_import_activity *a)
{
	struct xsp_import_process *process = process_of_row(t, a->row);
	const struct xsp_gpu_record *record = (const void *)a->record;
	struct xsp_import_names *kernels = &t->m->kernels;
	const uint64_t times[2] = {activity_time(t, a->begin_ns), activity_time(t, a->end_ns)};
	/* its own time may be of another clock */
	const int64_t first = t->m->first_ns, last = t->m->last_ns, at = a->head.time_ns;
	const int64_t now = at < first ? first : at > last ? last : at;
	const bool kernel = record->type == XSP_GPU_KERNEL;
	void *room;
	int rc = 0;

	if (kernel && kernels->all.rows[a->name].number == 0) {
		kernels->all.rows[a->name].number = 1;
		rc = emit_name(t, process, now, a->name + 1ULL,
			       unescaped(t->m, &kernels->all.rows[a->name]));
	}
	if (rc == 0)
		rc = begin_record(t, process, now, record->size, &room);
	if (rc < 0)
		return rc;
	memcpy(room, record, record->size);
	if (record->type == XSP_GPU_CUDA_EVENT)
		((struct xsp_gpu_cuda_event *)room)->device_ns = a->untimed ? 0 : times[0];
	else /* else they follow the head */
		memcpy((char *)room + sizeof(*record), times, sizeof(times));
	if (kernel)
		((struct xsp_gpu_kernel *)room)->name = a->name + 1ULL;
	if (t->asynchronous[record->correlation % ASYNC_CALLS] ==
		    call_key(process, record->correlation) &&
	    record->correlation != 0) /* the trace does not say it for a copy or a set */
		note_asynchronous(room);
	return 0;
}

static struct xsp_import_process *process_of(const struct emitter *t, const struct lane *l)
{
	return &t->m->processes.rows[t->m->threads.rows[l->thread].process];
}

/* CUPTI's record of a call whose span has ended. */
static int emit_call(struct emitter *t, const struct lane *l, const struct open_span *s)
{
	const enum xsp_cuda_api api = (enum xsp_cuda_api)(s->api - 1);
	const struct xsp_import_thread *th = &t->m->threads.rows[l->thread];
	void *room;
	int rc = begin_record(t, process_of(t, l), s->end_ns, sizeof(struct xsp_gpu_api), &room);

	if (rc == 0)
		*(struct xsp_gpu_api *)room = (struct xsp_gpu_api){
			.head = {api == XSP_CUDA_DRIVER ? XSP_GPU_DRIVER : XSP_GPU_RUNTIME,
				 sizeof(struct xsp_gpu_api), s->correlation},
			.start_ns = time_at(t, s->begin_ns),
			.end_ns = time_at(t, s->end_ns),
			.cbid = s->cbid,
			.tid = l->tid == th->tid ? th->display_tid : l->tid,
		};
	return rc;
}

/* If the trace names no process: the one with most calls of CUDA's API, of several the first. */
static struct xsp_import_process *process_of_gpu(struct emitter *t)
{
	struct xsp_import *m = t->m;
	struct xsp_import_process *found = NULL;

	for (size_t i = 0; i < m->processes.count; i++) {
		struct xsp_import_process *p = &m->processes.rows[i];
		if (p->used && (found == NULL || p->calls > found->calls))
			found = p;
	}
	return found != NULL ? found : &t->nobody;
}

static int emit_devices(struct emitter *t, int64_t now)
{
	struct xsp_import *m = t->m;
	int rc = 0;

	for (size_t i = 0; i < m->device_count && rc == 0; i++) {
		struct xsp_gpu_device d = m->devices[i];
		const size_t length = strnlen(m->device_names[i], 256);
		const size_t size = (sizeof(d) + length + 7) & ~(size_t)7;
		void *room;
		rc = begin_record(t, t->main, now, size, &room);
		d.head = (struct xsp_gpu_record){XSP_GPU_DEVICE, (uint16_t)size, 0};
		d.text_at = sizeof(d);
		d.length = (uint16_t)length;
		memcpy(room, &d, sizeof(d));
		memcpy((char *)room + sizeof(d), m->device_names[i], length);
	}
	for (size_t i = 0; i <= m->contexts.mask && m->contexts.slots != NULL && rc == 0; i++) {
		const struct xsp_u64map_slot *slot = &m->contexts.slots[i];
		void *room;
		if (!slot->used)
			continue;
		rc = begin_record(t, process_of_row(t, (uint32_t)(slot->key >> 32)), now,
				  sizeof(struct xsp_gpu_context), &room);
		*(struct xsp_gpu_context *)room = (struct xsp_gpu_context){
			.head = {XSP_GPU_CONTEXT, sizeof(struct xsp_gpu_context), 0},
			.context = (uint32_t)slot->key,
			.device = slot->value};
	}
	return rc;
}

static int emit_state(struct emitter *t, struct xsp_import_process *process, int64_t now,
		      uint32_t state)
{
	void *room;
	int rc = begin_record(t, process, now, sizeof(struct xsp_gpu_state), &room);

	*(struct xsp_gpu_state *)room = (struct xsp_gpu_state){
		.head = {XSP_GPU_STATE, sizeof(struct xsp_gpu_state), 0},
		.time_ns = time_at(t, now),
		.state = state,
		.api_version = t->m->versions[0],
		.driver_version = t->m->versions[1],
		.runtime_version = t->m->versions[2],
	};
	return rc;
}

/* For all processes with records. */
static int emit_states(struct emitter *t, int64_t now, uint32_t state)
{
	struct xsp_import *m = t->m;
	int rc = t->main->gpu ? 0 : emit_state(t, t->main, now, state);

	for (size_t i = 0; i < m->processes.count && rc == 0; i++)
		if (m->processes.rows[i].gpu)
			rc = emit_state(t, &m->processes.rows[i], now, state);
	return rc;
}

/* ---- spans ---- */

static int emit_event(struct emitter *t, const struct lane *l, uint32_t probe, size_t depth,
		      int64_t ns, enum xsp_event_kind kind, uint8_t flags)
{
	const struct xsp_event e = {
		.time_ns = time_at(t, ns),
		.sp = STACK_TOP - depth * FRAME,
		.tid = l->tid,
		.tgid = process_of(t, l)->pid,
		.probe = probe,
		.kind = (uint8_t)kind,
		.flags = (uint8_t)(XSP_EVENT_SP_EXACT | flags),
		.size = sizeof(e),
	};

	return xsp_capture_put_event(t->m->w, 0, &e, sizeof(e));
}

static int pop(struct emitter *t, struct lane *l)
{
	struct open_span *s = &l->open[--l->depth];
	const size_t depth = l->depth + 1;
	int rc = 0;

	if (s->end_ns > t->m->last_ns) /* it has none */
		s->end_ns = t->m->last_ns;
	if (s->ending == XSP_IMPORT_RETURNED)
		rc = emit_event(t, l, s->probe, depth, s->end_ns, XSP_EVENT_EXIT, 0);
	else if (s->ending == XSP_IMPORT_CUT)
		rc = emit_event(t, l, s->probe, depth, s->end_ns, XSP_EVENT_EXIT, XSP_EVENT_CUT);
	else if (s->ending == XSP_IMPORT_UNWOUND) /* it lands in the span around it */
		rc = emit_event(t, l, s->probe, depth - 1, s->end_ns, XSP_EVENT_UNWIND, 0);
	/* a process without activities has no records either */
	const bool recorded =
		s->correlation != 0 && (process_of(t, l) == t->main || process_of(t, l)->gpu);
	return rc == 0 && recorded ? emit_call(t, l, s) : rc;
}

/* ---- which span ends next ---- */

static int64_t ends_at(const struct emitter *t, size_t place)
{
	const struct lane *l = &t->lanes[t->heap[place]];

	return l->open[l->depth - 1].end_ns;
}

static void swap(struct emitter *t, size_t i, size_t k)
{
	const uint32_t lane = t->heap[i];

	t->heap[i] = t->heap[k];
	t->heap[k] = lane;
	t->lanes[t->heap[i]].place = i + 1;
	t->lanes[t->heap[k]].place = k + 1;
}

static void sift_down(struct emitter *t)
{
	for (size_t i = 0;;) {
		size_t least = i;
		for (size_t k = 2 * i + 1; k < 2 * i + 3 && k < t->heap_count; k++)
			if (ends_at(t, k) < ends_at(t, least))
				least = k;
		if (least == i)
			return;
		swap(t, i, least);
		i = least;
	}
}

/* The innermost span of the lane ends earlier than before. */
static void sift_up(struct emitter *t, const struct lane *l)
{
	for (size_t i = l->place - 1; i > 0 && ends_at(t, i) < ends_at(t, (i - 1) / 2);
	     i = (i - 1) / 2)
		swap(t, i, (i - 1) / 2);
}

/* A span has begun on the lane: it ends before the one around it. */
static int note_begin(struct emitter *t, struct lane *l)
{
	if (l->place == 0) {
		if (xsp_grow(&t->heap, &t->heap_capacity, t->heap_count + 1) < 0)
			return -ENOMEM;
		t->heap[t->heap_count++] = (uint32_t)(l - t->lanes);
		l->place = t->heap_count;
	}
	sift_up(t, l);
	return 0;
}

/* The timeline, too, waits only so long for records. */
static int flush_late(struct emitter *t, int64_t now)
{
	return t->count > 0 && now - t->batch_ns > LATE_NS ? flush_batch(t) : 0;
}

/* Writes all ends up to that time. */
static int pop_until(struct emitter *t, int64_t now)
{
	int rc = 0;

	while (rc == 0 && t->heap_count > 0 && ends_at(t, 0) <= now) {
		struct lane *l = &t->lanes[t->heap[0]];
		rc = flush_late(t, ends_at(t, 0));
		if (rc == 0)
			rc = pop(t, l);
		if (l->depth == 0) {
			swap(t, 0, t->heap_count - 1);
			t->heap_count--;
			l->place = 0;
		}
		sift_down(t);
	}
	return rc;
}

/* ---- what begins ---- */

static int new_lane(struct emitter *t, uint32_t thread, uint32_t number, uint32_t *index)
{
	struct xsp_import *m = t->m;
	struct xsp_import_thread *th = &m->threads.rows[thread];
	char comm[32];

	if (xsp_grow(&t->lanes, &t->lane_capacity, t->lane_count + 1) < 0)
		return -ENOMEM;
	*index = (uint32_t)t->lane_count++;
	t->lanes[*index] = (struct lane){.thread = thread, .tid = th->tid};
	if (number == 0)
		return 0;
	t->lanes[*index].tid = xsp_import_invent_id(m);
	snprintf(comm, sizeof(comm), "%.14s overlap %u", th->name, number);
	return xsp_capture_put_thread(
		m->w, &(struct xsp_capture_thread){.pid = m->processes.rows[th->process].pid,
						   .tid = t->lanes[*index].tid,
						   .ns_tid = t->lanes[*index].tid,
						   .comm = comm});
}

/*
 * If a span crosses the end of an open one, which of the two was rounded? It is inside, and ends
 * with the open one, if it goes at most CLIP_NS beyond, and no more than it overlaps. Otherwise, if
 * it overlaps the open one by at most CLIP_NS, the open one ends where it begins. So nothing moves
 * behind what was written already. False: neither is possible, they overlap. *kept: how many of the
 * open spans stay open around it.
 */
static bool join(const struct lane *l, int64_t begin_ns, int64_t *end_ns, size_t *kept)
{
	const int64_t half = (*end_ns - begin_ns) / 2;
	const int64_t least = *end_ns - (half < CLIP_NS ? half : CLIP_NS);

	/* inner ones end no later than outer ones */
	*kept = 0;
	XSP_LOWER_BOUND(*kept, l->depth, i, l->open[i].end_ns >= least);
	if (*kept < l->depth && l->open[*kept].end_ns - begin_ns > CLIP_NS)
		return false;
	if (*kept > 0 && *end_ns > l->open[*kept - 1].end_ns)
		*end_ns = l->open[*kept - 1].end_ns;
	return true;
}

/* All but the outer `kept` spans of the lane end now. */
static int end_inner(struct emitter *t, struct lane *l, size_t kept, int64_t now)
{
	if (kept == l->depth)
		return 0;
	for (size_t i = kept; i < l->depth; i++) {
		l->open[i].end_ns = now;
		xsp_import_counted(t->m, XSP_IMPORT_CLIPPED);
	}
	sift_up(t, l);
	return pop_until(t, now);
}

/* The first lane of the thread whose open spans contain the span or end before it; made if needed.
 * *end_ns may become a little earlier. -E2BIG: there are too many lanes. */
static int lane_for(struct emitter *t, uint32_t thread, int64_t begin_ns, int64_t *end_ns,
		    struct lane **out)
{
	const int64_t told_ns = *end_ns;
	uint32_t at = t->m->threads.rows[thread].lane, last = 0, number = 0;
	size_t kept;

	for (; at != 0; number++) {
		*out = &t->lanes[at - 1];
		if (join(*out, begin_ns, end_ns, &kept)) {
			if (*end_ns < told_ns)
				xsp_import_counted(t->m, XSP_IMPORT_CLIPPED);
			return end_inner(t, *out, kept, begin_ns);
		}
		last = at;
		at = (*out)->next;
	}
	if (number >= LANES_MAX)
		return -E2BIG;
	int rc = new_lane(t, thread, number, &at);
	if (rc < 0)
		return rc;
	*out = &t->lanes[at];
	if (last != 0)
		t->lanes[last - 1].next = at + 1;
	else
		t->m->threads.rows[thread].lane = at + 1;
	return 0;
}

/* A call of Python that goes on although its caller calls again has returned before. A span whose
 * end was not seen, or that goes on when its caller has returned, ends with the one around it. */
static int bound(struct emitter *t, struct lane *l, bool goes_on, struct xsp_import_span *s)
{
	struct open_span *top = l->depth > 1 ? &l->open[l->depth - 1] : NULL;
	int64_t end_ns = s->end_ns;
	size_t kept;
	int rc = 0;

	if (top != NULL && top->goes_on && s->caller != 0 && top->id != s->caller &&
	    top[-1].id == s->caller) {
		top->ending = XSP_IMPORT_NOT_SEEN;
		top->end_ns = s->head.time_ns;
		xsp_import_counted(t->m, XSP_IMPORT_NO_RETURN);
		sift_up(t, l);
		rc = pop_until(t, s->head.time_ns);
	}
	if (rc < 0 || l->depth == 0 || join(l, s->head.time_ns, &end_ns, &kept))
		return rc;
	if (s->head.ending == XSP_IMPORT_RETURNED && goes_on) {
		s->head.ending = XSP_IMPORT_NOT_SEEN;
		xsp_import_counted(t->m, XSP_IMPORT_NO_RETURN);
	}
	if (s->head.ending == XSP_IMPORT_NOT_SEEN)
		s->end_ns = l->open[l->depth - 1].end_ns;
	return 0;
}

static int emit_span(struct emitter *t, const struct xsp_import_span *sorted)
{
	struct xsp_import_span own = *sorted, *s = &own;
	const bool goes_on =
		s->head.rank == XSP_IMPORT_PYTHON && s->end_ns >= t->m->python_ns - CLIP_NS;
	const uint32_t first = t->m->threads.rows[s->thread].lane;
	struct lane *l = NULL;
	int rc = first != 0 ? bound(t, &t->lanes[first - 1], goes_on, s) : 0;
	int64_t end_ns = s->end_ns;

	if (rc == 0)
		rc = lane_for(t, s->thread, s->head.time_ns, &end_ns, &l);
	if (rc == -E2BIG || (rc == 0 && l->depth >= DEPTH_MAX)) {
		xsp_import_counted(t->m, XSP_IMPORT_DEEP);
		t->m->report->counts[XSP_IMPORT_SPANS]--;
		return 0;
	}
	if (rc == 0 && xsp_grow(&l->open, &l->capacity, l->depth + 1) < 0)
		rc = -ENOMEM;
	if (rc < 0)
		return rc;
	if (l->tid != t->m->threads.rows[s->thread].tid)
		xsp_import_counted(t->m, XSP_IMPORT_OVERLAPPING);
	if (s->head.ending == XSP_IMPORT_POINT)
		return emit_event(t, l, s->probe, l->depth + 1, s->head.time_ns, XSP_EVENT_POINT,
				  0);
	l->open[l->depth++] =
		(struct open_span){.end_ns = end_ns,
				   .begin_ns = s->head.time_ns,
				   .probe = s->probe,
				   .correlation = s->correlation,
				   .cbid = s->cbid,
				   .ending = s->head.ending,
				   .goes_on = goes_on,
				   .id = s->id,
				   .api = (uint8_t)(s->head.api & ~XSP_IMPORT_BESIDE)};
	if (s->head.api & XSP_IMPORT_BESIDE)
		t->asynchronous[s->correlation % ASYNC_CALLS] =
			call_key(process_of(t, l), s->correlation);
	rc = note_begin(t, l);
	return rc < 0 ? rc
		      : emit_event(t, l, s->probe, l->depth, s->head.time_ns, XSP_EVENT_ENTRY, 0);
}

static int emit_allocation(struct emitter *t, const struct xsp_import_allocation *a)
{
	const struct xsp_import_thread *th = &t->m->threads.rows[a->thread];
	struct {
		struct xsp_event head;
		struct xsp_section section;
		uint64_t word[5];
	} e = {
		.head = {.time_ns = time_at(t, a->head.time_ns),
			 .tid = th->tid,
			 .tgid = t->m->processes.rows[th->process].pid,
			 .probe = a->probe,
			 .kind = XSP_EVENT_MEMORY,
			 .flags = XSP_EVENT_SECTIONS},
		.section = {.type = XSP_SECTION_WORDS},
	};

	memcpy(e.word, a->word, a->words * sizeof(*a->word));
	e.section.size = (uint16_t)(sizeof(e.section) + a->words * sizeof(*a->word));
	e.head.size = (uint16_t)(sizeof(e.head) + e.section.size);
	return xsp_capture_put_event(t->m->w, 0, &e, e.head.size);
}

static int emit_value(struct emitter *t, const struct xsp_import_value *v)
{
	const struct xsp_import_thread *th = &t->m->threads.rows[v->thread];
	struct xsp_event_value e = {
		.head = {.time_ns = time_at(t, v->head.time_ns),
			 .tid = th->tid,
			 .tgid = t->m->processes.rows[th->process].pid,
			 .probe = v->probe,
			 .kind = XSP_EVENT_VALUE,
			 .size = sizeof(e)},
	};

	memcpy(&e.bits, &v->value, sizeof(e.bits));
	return xsp_capture_put_event(t->m->w, 0, &e, sizeof(e));
}

static int emit_record(struct emitter *t, const struct xsp_sorted *record)
{
	const struct xsp_import_head *head = (const void *)record;
	int rc = pop_until(t, head->time_ns);

	if (rc == 0)
		rc = flush_late(t, head->time_ns);
	if (rc < 0)
		return rc;
	return head->kind == XSP_IMPORT_SPAN	   ? emit_span(t, (const void *)record)
	       : head->kind == XSP_IMPORT_ACTIVITY ? emit_activity(t, (const void *)record)
	       : head->kind == XSP_IMPORT_VALUE	   ? emit_value(t, (const void *)record)
						   : emit_allocation(t, (const void *)record);
}

static void free_teller(struct emitter *t)
{
	for (size_t i = 0; i < t->lane_count; i++)
		free(t->lanes[i].open);
	free(t->lanes);
	free(t->heap);
	free(t);
}

int xsp_import_emit(struct xsp_import *m, int64_t offset)
{
	struct emitter *t = calloc(1, sizeof(*t));
	const struct xsp_sorted *record;
	int rc = 0;

	if (t == NULL)
		return -ENOMEM;
	*t = (struct emitter){.m = m, .offset = offset};
	t->main = t->process = process_of_gpu(t);
	if (m->gpu_probe != 0) {
		rc = emit_states(t, m->first_ns, XSP_GPU_ACTIVE);
		if (rc == 0)
			rc = emit_devices(t, m->first_ns);
	}
	while (rc == 0 && (rc = xsp_sorter_next(m->sorter, &record)) > 0)
		rc = emit_record(t, record);
	if (rc == 0)
		rc = pop_until(t, INT64_MAX);
	if (rc == 0 && m->gpu_probe != 0)
		rc = emit_states(t, m->last_ns, XSP_GPU_STOPPED);
	if (rc == 0)
		rc = flush_batch(t);
	free_teller(t);
	return rc;
}
