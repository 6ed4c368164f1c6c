/* SPDX-License-Identifier: BSD-2-Clause */
/* gpu_path.c - holds what paths are made from until they can be made, and sums them up. */
#include "analysis/gpu/gpu_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"

int xsp_gpu_path_new(struct xsp_timeline *t, struct xsp_gpu_sweep *sweep, struct xsp_gpu_host *host,
		     struct xsp_gpu_path **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = t;
	(*out)->sweep = sweep;
	(*out)->host = host;
	(*out)->has_steps = xsp_timeline_steps_expected(t);
	return 0;
}

static void clear_results(struct path_results *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->list[i].shares);
	free(r->list);
	*r = (struct path_results){0};
}

void xsp_gpu_path_free(struct xsp_gpu_path *p)
{
	if (p == NULL)
		return;
	for (size_t i = 0; i < p->threads.count; i++) {
		free(p->threads.rows[i].spans);
		free(p->threads.rows[i].offs);
	}
	xsp_tally_free(&p->threads);
	free(p->works);
	for (unsigned i = 0; i < CALL_LISTS; i++)
		free(p->calls[i].list);
	clear_results(&p->pending);
	clear_results(&p->firsts);
	xsp_tally_free(&p->uses);
	free(p);
}

/* ---- sums ---- */

static int add_share(struct xsp_gpu_path *p, const struct path_share *s)
{
	struct xsp_gpu_path_use *u =
		xsp_tally_row(&p->uses, (uint64_t)s->kind << 32 | s->name,
			      &(struct xsp_gpu_path_use){.kind = s->kind, .name = s->name});

	if (u == NULL)
		return -ENOMEM;
	u->ns += s->ns;
	u->steps++;
	return 0;
}

static uint64_t length(const struct xsp_gpu_path_step *s)
{
	return s->end_ns - s->start_ns;
}

static XSP_ORDER(by_length, struct xsp_gpu_path_step, XSP_COMPARE(length(y), length(x)));

/* Counts a path and frees its shares. */
static int count_step(struct xsp_gpu_path *p, struct path_result *r)
{
	struct xsp_gpu_path_counts *c = &p->counts;
	int rc = 0;

	c->steps++;
	c->total_ns += length(&r->step);
	for (unsigned i = 0; i < XSP_GPU_PATH_KINDS; i++) {
		c->ns[i] += r->step.ns[i];
		c->most_ns[i] = r->step.ns[i] > c->most_ns[i] ? r->step.ns[i] : c->most_ns[i];
	}
	XSP_RANK(p->slowest, &p->slowest_count, XSP_GPU_PATH_SLOWEST, &r->step, by_length);
	for (size_t i = 0; i < r->share_count && rc == 0; i++)
		rc = add_share(p, &r->shares[i]);
	free(r->shares);
	r->shares = NULL;
	r->share_count = 0;
	return rc;
}

/* ---- steps ---- */

static void forget_steps(struct xsp_gpu_path *p)
{
	clear_results(&p->pending);
	clear_results(&p->firsts);
	xsp_tally_begin_anew(&p->uses);
	p->slowest_count = 0;
	p->counts = (struct xsp_gpu_path_counts){.late = p->counts.late};
}

static void leave_out_warm_up(struct xsp_gpu_path *p, const struct xsp_step *step)
{
	struct path_results *const lists[] = {&p->pending, &p->firsts};

	for (unsigned k = 0; k < 2; k++)
		for (size_t i = 0; i < lists[k]->count; i++) {
			struct path_result *r = &lists[k]->list[i];
			if (r->step.tid != step->tid || r->step.start_ns != step->start_ns)
				continue;
			free(r->shares);
			*r = lists[k]->list[--lists[k]->count];
			p->counts.warm_up++;
			return;
		}
}

int xsp_gpu_path_step(struct xsp_gpu_path *p, const struct xsp_step *step)
{
	const struct path_result r = {.step = {.tid = step->tid,
					       .number = step->number,
					       .start_ns = step->start_ns,
					       .end_ns = step->end_ns},
				      .first = step->first};

	if (step->news == XSP_STEP_FORGET)
		forget_steps(p);
	if (step->news == XSP_STEP_WARM_UP)
		leave_out_warm_up(p, step);
	return step->news == XSP_STEP_ENDED
		       ? XSP_APPEND(p->pending.list, p->pending.capacity, p->pending.count, r)
		       : 0;
}

static int make_path(struct xsp_gpu_path *p, struct path_result *r)
{
	int rc = 0;

	if (!xsp_timeline_recorded(p->timeline, r->step.start_ns, r->step.end_ns)) {
		p->counts.unrecorded++;
		return 0;
	}
	if (r->step.start_ns < p->forgotten_ns) {
		p->counts.too_large++;
		return 0;
	}
	rc = xsp_gpu_path_walk(p, r);
	if (rc == 0)
		rc = r->first ? XSP_APPEND(p->firsts.list, p->firsts.capacity, p->firsts.count, *r)
			      : count_step(p, r);
	if (rc < 0)
		free(r->shares);
	return rc;
}

/* ---- order ---- */

static XSP_ORDER(by_end, struct path_span, XSP_RISING(end_ns) ?: XSP_FALLING(start_ns));
static XSP_ORDER(by_stream, struct path_work,
	  XSP_RISING(stream) ?: XSP_RISING(start_ns) ?: XSP_RISING(end_ns));
static XSP_ORDER(by_key, struct path_call, XSP_RISING(key) ?: XSP_RISING(call_ns));

/* Goes from the last span to the first. A span that begins after another has ended encloses neither
 * that one nor any before it. */
static void find_parents(struct path_thread *th)
{
	uint32_t top = XSP_GPU_NOWHERE;

	if (th->unordered)
		XSP_SORT(th->spans, th->span_count, by_end);
	th->unordered = false;
	for (size_t i = th->span_count; i-- > 0;) {
		struct path_span *s = &th->spans[i];
		while (top != XSP_GPU_NOWHERE && th->spans[top].start_ns >= s->end_ns)
			top = th->spans[top].parent;
		s->parent = top;
		top = (uint32_t)i;
	}
}

static void put_in_order(struct xsp_gpu_path *p)
{
	for (size_t i = 0; i < p->threads.count; i++)
		find_parents(&p->threads.rows[i]);
	XSP_SORT(p->works, p->work_count, by_stream);
	for (unsigned i = 0; i < CALL_LISTS; i++)
		XSP_SORT(p->calls[i].list, p->calls[i].count, by_key);
}

/* ---- dropping ---- */

#define KEEP_IF(list, count, i, condition)                                                         \
	do {                                                                                       \
		size_t kept_ = 0;                                                                  \
		for (size_t i = 0; i < (count); i++)                                               \
			if (condition)                                                             \
				(list)[kept_++] = (list)[i];                                       \
		p->held -= (count)-kept_;                                                          \
		(count) = kept_;                                                                   \
	} while (0)

/* Drops what ended before `ns`. Keeps the last work of each stream, which the next work may have
 * waited for. Work launched earlier and still running may wait for an event: keeps the calls before
 * its launch. */
static void forget(struct xsp_gpu_path *p, uint64_t ns)
{
	uint64_t launched = ns;

	for (size_t i = 0; i < p->threads.count; i++) {
		struct path_thread *th = &p->threads.rows[i];
		KEEP_IF(th->spans, th->span_count, k, th->spans[k].end_ns > ns);
		KEEP_IF(th->offs, th->off_count, k, th->offs[k].back_ns > ns);
	}
	KEEP_IF(p->works, p->work_count, i,
		p->works[i].end_ns > ns || i + 1 == p->work_count ||
			p->works[i + 1].stream != p->works[i].stream ||
			p->works[i + 1].end_ns > ns);
	for (size_t i = 0; i < p->work_count; i++)
		if (p->works[i].end_ns > ns && p->works[i].call_ns != 0 &&
		    p->works[i].call_ns < launched)
			launched = p->works[i].call_ns;
	for (unsigned k = 0; k < CALL_LISTS; k++)
		KEEP_IF(p->calls[k].list, p->calls[k].count, i,
			p->calls[k].list[i].call_end_ns > launched);
	p->forgotten_ns = ns;
}

/* Makes the paths of the steps that ended by `ns`. */
static int settle(struct xsp_gpu_path *p, uint64_t ns)
{
	struct path_results waiting = p->pending;
	int rc = 0;

	put_in_order(p);
	p->pending.count = 0;
	for (size_t i = 0; i < waiting.count && rc == 0; i++)
		if (waiting.list[i].step.end_ns <= ns)
			rc = make_path(p, &waiting.list[i]);
		else
			waiting.list[p->pending.count++] = waiting.list[i];
	p->settled_ns = ns;
	return rc;
}

/* Drops the older half of the time until there is room. Keeps what pending steps need, unless
 * nothing else can go. */
static int make_room(struct xsp_gpu_path *p)
{
	int rc = 0;

	for (unsigned n = 0; rc == 0 && n < 64 && p->held > XSP_GPU_PATH_HELD_MOST / 4 * 3; n++) {
		const uint64_t half = p->forgotten_ns + (p->latest_ns - p->forgotten_ns) / 2;
		uint64_t until = p->latest_ns - p->forgotten_ns < 2 ? p->latest_ns : half;
		rc = settle(p, until);
		uint64_t kept = until;
		for (size_t i = 0; i < p->pending.count; i++)
			if (p->pending.list[i].step.start_ns < kept)
				kept = p->pending.list[i].step.start_ns;
		forget(p, kept > p->forgotten_ns ? kept : until);
	}
	return rc;
}

static int make_room_for_one(struct xsp_gpu_path *p, uint64_t ns)
{
	uint64_t end;

	if (p->forgotten_ns == 0)
		xsp_timeline_window(p->timeline, &p->forgotten_ns, &end);
	p->latest_ns = ns > p->latest_ns ? ns : p->latest_ns;
	return p->held++ >= XSP_GPU_PATH_HELD_MOST ? make_room(p) : 0;
}

/* ---- input ---- */

/* Returns NULL if out of memory. */
static struct path_thread *thread_of(struct xsp_gpu_path *p, uint32_t tid)
{
	return xsp_tally_row(&p->threads, tid, &(struct path_thread){.tid = tid});
}

int xsp_gpu_path_span(struct xsp_gpu_path *p, const struct xsp_span *span)
{
	struct path_span s = {span->start_ns, span->end_ns, 0, XSP_GPU_NOWHERE};

	if (!p->has_steps || span->row != 0 || !xsp_span_has_duration(span) ||
	    s.end_ns <= p->forgotten_ns)
		return 0;
	int rc = make_room_for_one(p, s.end_ns);
	if (rc == 0)
		rc = xsp_gpu_host_row(p->host, span->name, &s.name);
	struct path_thread *th = rc == 0 ? thread_of(p, span->tid) : NULL;
	if (th == NULL)
		return -ENOMEM;
	th->unordered = th->unordered ||
			(th->span_count > 0 && by_end(&th->spans[th->span_count - 1], &s) > 0);
	return XSP_APPEND(th->spans, th->span_capacity, th->span_count, s);
}

int xsp_gpu_path_wait(struct xsp_gpu_path *p, const struct xsp_wait *wait)
{
	if (!p->has_steps || (wait->flags & XSP_WAIT_SHORT) || wait->back_ns <= p->forgotten_ns)
		return 0;
	struct path_off off = {.left_ns = wait->left_ns,
			       .woken_ns = wait->woken_ns,
			       .back_ns = wait->back_ns,
			       .why = (uint32_t)wait->why,
			       .waker = wait->waker};
	if (off.woken_ns < off.left_ns)
		off.woken_ns = off.left_ns;
	const int rc = make_room_for_one(p, wait->back_ns);
	struct path_thread *th = rc == 0 ? thread_of(p, wait->tid) : NULL;
	return th == NULL ? -ENOMEM : XSP_APPEND(th->offs, th->off_capacity, th->off_count, off);
}

static int put_call(struct xsp_gpu_path *p, enum path_list which, const struct path_call *c)
{
	struct path_calls *calls = &p->calls[which];
	const int rc = make_room_for_one(p, c->call_end_ns);

	return rc < 0 ? rc : XSP_APPEND(calls->list, calls->capacity, calls->count, *c);
}

/* May the call wait for the copy? An asynchronous call does so only if the driver copies pageable
 * memory through its own buffer. */
static bool may_block(const struct xsp_gpu_activity *a)
{
	const struct xsp_gpu_memcpy *c = a->record;
	const uint8_t pageable = 1; /* CUpti_ActivityMemoryKind; 0: not known */

	if (a->kind == XSP_GPU_IS_MEMSET)
		return !(((const struct xsp_gpu_memset *)a->record)->flags & 1);
	return !(c->flags & 1) || c->source_kind <= pageable || c->destination_kind <= pageable;
}

int xsp_gpu_path_work(struct xsp_gpu_path *p, const struct xsp_gpu_activity *a,
		      const struct xsp_gpu_work *work)
{
	static const enum xsp_gpu_path_kind kinds[XSP_GPU_CLASSES] = {
		[XSP_GPU_FOR_COMPUTE] = XSP_GPU_PATH_COMPUTE,
		[XSP_GPU_FOR_COMMUNICATION] = XSP_GPU_PATH_COMMUNICATION,
		[XSP_GPU_FOR_MEMORY] = XSP_GPU_PATH_MEMORY,
	};
	struct path_work w = {.start_ns = work->start_ns,
			      .end_ns = work->end_ns,
			      .call_ns = work->call_ns,
			      .call_tid = work->call_tid,
			      .name = work->name,
			      .kind = kinds[work->class]};
	struct path_call copy = {.key = work->call_tid,
				 .call_ns = work->call_ns,
				 .call_end_ns = a->call_end_ns,
				 .until_ns = work->end_ns};

	if (!p->has_steps)
		return 0;
	p->counts.late += w.end_ns <= p->settled_ns;
	if (w.end_ns <= p->forgotten_ns)
		return 0;
	int rc = make_room_for_one(p, w.end_ns);
	if (rc == 0)
		rc = xsp_gpu_sweep_place(p->sweep, a, &copy.device, &copy.stream);
	w.stream = copy.stream;
	if (rc == 0)
		rc = XSP_APPEND(p->works, p->work_capacity, p->work_count, w);
	if (rc < 0)
		return rc;
	/* A copy that had ended when its call returned: the call waited for it. */
	const bool waited = w.kind == XSP_GPU_PATH_MEMORY && w.call_ns != 0 &&
			    w.end_ns <= a->call_end_ns && may_block(a);
	return waited ? put_call(p, BLOCKS, &copy) : 0;
}

int xsp_gpu_path_sync(struct xsp_gpu_path *p, const struct xsp_gpu_activity *a)
{
	const bool record = a->kind == XSP_GPU_IS_EVENT;
	const struct xsp_gpu_sync *s = a->record;
	const struct xsp_gpu_cuda_event *e = a->record;
	struct path_call c = {.call_ns = a->call_ns,
			      .call_end_ns = a->call_end_ns,
			      .until_ns = a->call_end_ns,
			      .event = (uint64_t)a->context << 32 | (record ? e->event : s->event),
			      .what = record ? 0 : s->what};
	const enum path_list which = record ? RECORDS : c.what == 2 ? STREAM_WAITS : BLOCKS;

	/* A call whose thread is not known could belong to any thread. */
	if (!p->has_steps || a->call_ns == 0 || a->call_end_ns <= p->forgotten_ns)
		return 0;
	const int rc = xsp_gpu_sweep_place(p->sweep, a, &c.device, &c.stream);
	c.key = which == RECORDS ? c.event : which == BLOCKS ? a->call_tid : c.stream;
	p->events = p->events || record;
	return rc < 0 ? rc : put_call(p, which, &c);
}

int xsp_gpu_path_end(struct xsp_gpu_path *p)
{
	int rc = 0;

	if (p->pending.count > 0)
		rc = settle(p, UINT64_MAX);
	for (size_t i = 0; i < p->firsts.count && rc == 0; i++)
		rc = count_step(p, &p->firsts.list[i]);
	clear_results(&p->firsts);
	return rc;
}
