/* SPDX-License-Identifier: BSD-2-Clause */
/* gpu_path_walk.c - follows the path of one step backwards. */
#include <errno.h>

#include "analysis/gpu/gpu_path.h"
#include "base/rows/grow.h"

/* How many neighbours are searched: activities of a stream that end out of order, and waits between
 * two launches. */
#define LOOKED_AT 64

struct walk {
	struct xsp_gpu_path *p;
	struct path_result *result;
	uint64_t now_ns;
	/* home: the step's thread. Either is NULL if nothing is held of it. */
	struct path_thread *thread, *home;
	const struct path_work *work; /* NULL: the path is on a thread */
};

/* Puts the time from `from_ns` to now on the path as this kind and name. */
static int spend(struct walk *w, enum xsp_gpu_path_kind kind, uint32_t name, uint64_t from_ns)
{
	struct path_result *r = w->result;
	const uint64_t from = from_ns > r->step.start_ns ? from_ns : r->step.start_ns;
	const uint64_t ns = from < w->now_ns ? w->now_ns - from : 0;

	if (ns == 0)
		return 0;
	w->now_ns = from;
	r->step.ns[kind] += ns;
	if (r->share_count > 0) {
		struct path_share *last = &r->shares[r->share_count - 1];
		if (last->kind == kind && last->name == name) {
			last->ns += ns;
			return 0;
		}
	}
	return XSP_APPEND(r->shares, r->share_capacity, r->share_count,
			  (struct path_share){kind, name, ns});
}

/* ---- the GPU's work ---- */

/* The works of a stream: their number, and in *first the index of the first. */
static size_t works_of(const struct xsp_gpu_path *p, uint32_t stream, size_t *first)
{
	size_t low = 0, end;

	XSP_LOWER_BOUND(low, p->work_count, i, p->works[i].stream < stream);
	*first = end = low;
	XSP_LOWER_BOUND(end, p->work_count, i, p->works[i].stream == stream);
	return end - low;
}

/* The work of a stream that ended last up to then; NULL: none. */
static const struct path_work *last_ended(const struct xsp_gpu_path *p, uint32_t stream,
					  uint64_t until_ns)
{
	size_t first, low;
	const size_t count = works_of(p, stream, &first);

	low = first;
	XSP_LOWER_BOUND(low, first + count, i, p->works[i].start_ns <= until_ns);
	for (unsigned n = 0; low > first && n < LOOKED_AT; n++)
		if (p->works[--low].end_ns <= until_ns)
			return &p->works[low];
	return NULL;
}

/* The work launched last before then, which an event stands for. */
static const struct path_work *last_launched(const struct xsp_gpu_path *p, uint32_t stream,
					     uint64_t call_ns)
{
	size_t first, low;
	const size_t count = works_of(p, stream, &first);

	low = first;
	XSP_LOWER_BOUND(low, first + count, i, p->works[i].call_ns < call_ns);
	return low > first && p->works[low - 1].call_ns != 0 ? &p->works[low - 1] : NULL;
}

static const struct path_work *later(const struct path_work *a, const struct path_work *b)
{
	return a == NULL || (b != NULL && b->end_ns > a->end_ns) ? b : a;
}

/* The work that the call's event stood for; NULL: none that ended recently. False: not recorded. */
static bool work_of_event(const struct xsp_gpu_path *p, const struct path_call *c,
			  const struct path_work **out)
{
	const struct path_call *r = path_call(p, RECORDS, c->event, c->call_ns);

	while (r != NULL && r->device != c->device) /* a stream of another process */
		r = path_call(p, RECORDS, c->event, r->call_ns);
	*out = r != NULL ? last_launched(p, r->stream, r->call_ns) : NULL;
	return p->events;
}

/* Work on the device's other streams that was launched before then and had ended; NULL: none. */
static const struct path_work *last_on_device(const struct xsp_gpu_path *p, uint32_t device,
					      uint32_t but, uint64_t launched_ns, uint64_t until_ns)
{
	const struct xsp_gpu_stream_use *streams;
	const size_t count = xsp_gpu_sweep_streams(p->sweep, &streams);
	const struct path_work *last = NULL;

	for (uint32_t i = 0; i < count; i++) {
		if (streams[i].device != device || i == but)
			continue;
		const struct path_work *of = launched_ns == UINT64_MAX
						     ? last_ended(p, i, until_ns)
						     : last_launched(p, i, launched_ns);
		if (of != NULL && of->end_ns <= until_ns)
			last = later(last, of);
	}
	return last;
}

/* What the stream waited for between the launch of the previous work and that of this one. */
static const struct path_work *waited_for(const struct xsp_gpu_path *p, const struct path_work *k,
					  uint64_t since_ns, bool *guessed)
{
	const struct path_call *c = path_call(p, STREAM_WAITS, k->stream, k->call_ns);
	const struct path_work *last = NULL, *one;

	for (unsigned n = 0; c != NULL && c->call_ns >= since_ns && n < LOOKED_AT; n++) {
		const bool known = work_of_event(p, c, &one);
		if (!known)
			one = last_on_device(p, c->device, k->stream, c->call_ns, k->start_ns);
		if (one != NULL && one->end_ns <= k->start_ns && later(last, one) == one) {
			last = one;
			*guessed = !known;
		}
		c = path_call(p, STREAM_WAITS, k->stream, c->call_ns);
	}
	return last;
}

static int pass_work(struct walk *w)
{
	struct xsp_gpu_path *p = w->p;
	const struct path_work *k = w->work;
	const struct path_work *before = k > p->works && k[-1].stream == k->stream ? k - 1 : NULL;
	bool guessed = false;
	int rc = spend(w, k->kind, k->name, k->start_ns);

	if (rc < 0 || w->now_ns <= w->result->step.start_ns)
		return rc;
	const uint64_t since = before != NULL ? before->call_ns : 0;
	const struct path_work *other = waited_for(p, k, since, &guessed);
	const struct path_work *last = later(before, other);
	if (k->call_ns != 0 && (last == NULL || last->end_ns < k->call_ns)) {
		struct path_thread *caller = xsp_tally_find(&p->threads, k->call_tid);
		w->thread = caller != NULL ? caller : w->home;
		w->work = NULL;
		return spend(w, XSP_GPU_PATH_LAUNCH, k->name, k->call_ns);
	}
	if (last == NULL) /* neither the cause of this work nor what came before is known */
		return spend(w, XSP_GPU_PATH_UNKNOWN, XSP_GPU_NOWHERE, 0);
	p->counts.guessed += guessed && last == other;
	w->work = last;
	return spend(w, XSP_GPU_PATH_GAP, k->name, last->end_ns);
}

/* ---- threads ---- */

/* Follows the innermost spans. Where a thread is in no span and its waits are not known, it may be
 * waiting. If it is not the step's own thread, the path goes on there at the same moment. */
static int pass_spans(struct walk *w, uint64_t from_ns)
{
	const struct path_thread *th = w->thread;
	const uint64_t start = w->result->step.start_ns;
	int rc = 0;

	while (rc == 0 && w->now_ns > from_ns && w->now_ns > start) {
		size_t at = 0, in;
		const size_t count = th != NULL ? th->span_count : 0;
		XSP_LOWER_BOUND(at, count, i, th->spans[i].end_ns < w->now_ns);
		uint64_t edge = at > 0 ? th->spans[at - 1].end_ns : 0;
		for (in = at; in < count && th->spans[in].start_ns >= w->now_ns;)
			in = th->spans[in].parent;
		const bool inside = in < count;
		if (!inside && th != NULL && th != w->home && th->off_count == 0) {
			w->thread = w->home;
			break;
		}
		if (inside && th->spans[in].start_ns > edge)
			edge = th->spans[in].start_ns;
		rc = spend(w, XSP_GPU_PATH_HOST, inside ? th->spans[in].name : XSP_GPU_NOWHERE,
			   edge > from_ns ? edge : from_ns);
	}
	return rc;
}

/* The last time off the CPU, except in a call that waits for the device; NULL: none. */
static const struct path_off *last_off(const struct walk *w, const struct path_call *b)
{
	const struct path_thread *th = w->thread;
	size_t low = 0;

	XSP_LOWER_BOUND(low, th != NULL ? th->off_count : 0, i, th->offs[i].left_ns < w->now_ns);
	while (low > 0 && b != NULL && th->offs[low - 1].left_ns >= b->call_ns &&
	       th->offs[low - 1].back_ns <= b->call_end_ns)
		low--;
	return low > 0 && (b == NULL || th->offs[low - 1].left_ns > b->call_ns) ? &th->offs[low - 1]
										: NULL;
}

static const struct path_work *work_of_block(const struct xsp_gpu_path *p,
					     const struct path_call *b, bool *guessed)
{
	const struct path_work *out;

	*guessed = b->what == 1 && !work_of_event(p, b, &out);
	if (b->what != 1 || *guessed)
		return b->what != 1 && b->stream != XSP_GPU_NOWHERE
			       ? last_ended(p, b->stream, b->until_ns)
			       : last_on_device(p, b->device, XSP_GPU_NOWHERE, UINT64_MAX,
						b->until_ns);
	return out != NULL && out->end_ns <= b->until_ns ? out : NULL;
}

/* Work that had ended when the call began was not waited for. */
static int pass_block(struct walk *w, const struct path_call *b)
{
	bool guessed;
	const struct path_work *work = work_of_block(w->p, b, &guessed);

	if (work == NULL || work->end_ns <= b->call_ns || work->end_ns > w->now_ns)
		return pass_spans(w, b->call_ns);
	w->p->counts.guessed += guessed;
	w->work = work;
	return spend(w, XSP_GPU_PATH_SYNC, b->what, work->end_ns);
}

static int pass_off(struct walk *w, const struct path_off *o)
{
	struct path_thread *waker = xsp_tally_find(&w->p->threads, o->waker);

	if (w->now_ns >= o->woken_ns) { /* the same: it was woken as it came back */
		const int rc = spend(w, XSP_GPU_PATH_OFF, o->why, o->woken_ns);
		if (rc < 0 || w->now_ns > o->woken_ns) /* the start of the step */
			return rc;
		if (waker != NULL && waker != w->thread) {
			w->thread = waker;
			return 0;
		}
	}
	return spend(w, XSP_GPU_PATH_OFF, o->why, o->left_ns);
}

static int pass_thread(struct walk *w)
{
	const uint32_t tid = w->thread != NULL ? w->thread->tid : w->result->step.tid;
	const struct path_call *b = path_call(w->p, BLOCKS, tid, w->now_ns);
	const struct path_off *o = last_off(w, b);
	const uint64_t end = o != NULL ? o->back_ns : b != NULL ? b->call_end_ns : 0;

	if (w->now_ns > end || (o == NULL && b == NULL))
		return pass_spans(w, end);
	return o != NULL ? pass_off(w, o) : pass_block(w, b);
}

/* ---- the whole path ---- */

/* One row for each kind and name. */
static XSP_ORDER(by_share, struct path_share, XSP_RISING(kind) ?: XSP_RISING(name));

static void add_share(void *to, const void *more)
{
	((struct path_share *)to)->ns += ((const struct path_share *)more)->ns;
}

int xsp_gpu_path_walk(struct xsp_gpu_path *p, struct path_result *result)
{
	struct walk w = {.p = p,
			 .result = result,
			 .now_ns = result->step.end_ns,
			 .home = xsp_tally_find(&p->threads, result->step.tid)};
	/* Clocks that disagree could lead round in a circle. Each turn goes back in time, or to
	 * what began earlier. */
	size_t turns = 4 * p->held + LOOKED_AT;
	int rc = 0;

	w.thread = w.home;
	while (rc == 0 && w.now_ns > result->step.start_ns && turns-- > 0)
		rc = w.work != NULL ? pass_work(&w) : pass_thread(&w);
	if (rc == 0)
		rc = spend(&w, XSP_GPU_PATH_UNKNOWN, XSP_GPU_NOWHERE, 0);
	result->share_count = XSP_SUM_UP(result->shares, result->share_count, by_share, add_share);
	return rc;
}
