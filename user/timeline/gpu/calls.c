/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls.c - CUDA calls: joins the probes' spans and CUPTI's records of them, by thread and time.
 * The record of a call lies inside its span; a runtime call encloses driver calls.
 */
#include "timeline/gpu/gpu_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/search.h"

/* ---- threads ---- */

/* Valid until the next thread is added. NULL: out of memory. */
static struct gpu_thread *thread_of(struct xsp_gpu *g, uint32_t pid, uint32_t tid)
{
	return xsp_tally_row(&g->threads, xsp_u64_pair(pid, tid),
			     &(struct gpu_thread){.pid = pid, .tid = tid});
}

/* The agent knows threads by their ids in the process's own namespace. Finds the root id. */
static int root_tid(struct xsp_gpu *g, uint32_t pid, uint32_t ns_tid, uint32_t *out)
{
	const uint32_t *at = xsp_u64map_get(&g->tids, xsp_u64_pair(pid, ns_tid));

	if (at != NULL) {
		*out = *at;
		return 0;
	}
	if (!xsp_threads_by_ns(g->t, pid, ns_tid, out)) {
		*out = ns_tid; /* the thread may appear later, so this is not stored */
		return 0;
	}
	return xsp_u64map_set(&g->tids, xsp_u64_pair(pid, ns_tid), *out);
}

/* ---- handing on ---- */

/* Measures the clocks by a call that has both a span and a record. */
static void measure_clock(struct xsp_gpu *g, const struct xsp_span *s, const struct api_record *r)
{
	int64_t start = (int64_t)(r->start_ns - s->start_ns),
		end = (int64_t)(s->end_ns - r->end_ns);
	struct xsp_gpu_counts *c = &g->counts;

	if (c->api_matched == 0 || start < c->start_least)
		c->start_least = start;
	if (c->api_matched == 0 || end < c->end_least)
		c->end_least = end;
	c->start_sum += start > 0 ? (uint64_t)start : 0;
	c->end_sum += end > 0 ? (uint64_t)end : 0;
	c->api_matched++;
}

static struct around_call around_of(const struct xsp_span *s)
{
	return (struct around_call){
		.op = s->op, .user = s->user, .op_name = s->op_name, .user_name = s->user_name};
}

static int finish_held(struct xsp_gpu *g, struct held *h, const struct api_record *r)
{
	struct xsp_gpu_call call = {
		.span = &h->span,
		.pid = h->span.pid,
		.tid = h->span.tid,
		.row = h->span.row,
		.start_ns = h->span.start_ns,
		.end_ns = h->span.end_ns,
		.api = (enum xsp_cuda_api)h->api,
		.name = "",
		.external = h->span.op != 0 ? h->span.op : h->span.user,
	};

	h->done = true;
	if (r != NULL) {
		call.correlation = r->correlation;
		call.cbid = r->cbid;
		call.result = r->result;
	}
	int rc = xsp_notify_call(g->t, &call);
	xsp_details_unref(h->span.details);
	h->span.details = NULL;
	return rc;
}

/* ---- matching ---- */

static size_t first_ending_after(const struct gpu_thread *th, uint64_t ns)
{
	size_t low = th->held_from;

	XSP_LOWER_BOUND(low, th->held_count, i, th->held[i].span.end_ns < ns);
	return low;
}

/* Time that both cover, as a share of what they cover together. */
static double alike(const struct xsp_span *s, const struct api_record *r)
{
	uint64_t from = s->start_ns > r->start_ns ? s->start_ns : r->start_ns;
	uint64_t to = s->end_ns < r->end_ns ? s->end_ns : r->end_ns;
	uint64_t first = s->start_ns < r->start_ns ? s->start_ns : r->start_ns;
	uint64_t last = s->end_ns > r->end_ns ? s->end_ns : r->end_ns;

	return from > to ? 0 : (double)(to - from + 1) / (double)(last - first + 1);
}

/* How many later ends to look at: a call that ends that late encloses the record's. */
#define CANDIDATES 64

/* The span of the record's call; *inside: another one that it encloses, or NULL. */
static struct held *find_span(struct gpu_thread *th, const struct api_record *r,
			      const struct held **inside)
{
	struct held *best = NULL;
	double most = 0;

	*inside = NULL;
	for (size_t i = first_ending_after(th, r->start_ns), n = 0;
	     i < th->held_count && n < CANDIDATES; i++, n++) {
		struct held *h = &th->held[i];
		double a = alike(&h->span, r);
		if (a <= 0)
			continue;
		if (h->api == r->api && !h->done && a > most) {
			most = a;
			best = h;
		} else if (h->api != r->api && h->span.start_ns >= r->start_ns) {
			*inside = h;
		}
	}
	return best;
}

/* The outermost call around it, if there is one and it has ended; otherwise NULL. */
static const struct held *outermost(const struct gpu_thread *th, const struct held *h)
{
	const struct held *end = th->held + th->held_count;

	for (const struct held *o = h + 1; o < end && o - h <= CANDIDATES; o++)
		if (h->span.outer_ns != 0 && o->span.start_ns == h->span.outer_ns)
			return o;
	return NULL;
}

/* How many records to wait for the record of the call around a driver call, which comes after the
 * driver call's own. */
#define AROUND_WITHIN 8U

/* Whose correlation id does a call inside another one have? */
enum whose_id { ID_ITS_OWN, ID_OF_THE_CALL_AROUND, ID_NOT_KNOWN };

static bool encloses(uint64_t start_ns, uint64_t end_ns, const struct api_record *r)
{
	return start_ns <= r->start_ns && r->end_ns <= end_ns;
}

/* CUPTI gives a driver call the id of the runtime call around it. Others, and calls of imported
 * traces, have their own. `next`: the record after this one. */
static enum whose_id whose_id(const struct xsp_gpu *g, const struct gpu_thread *th,
			      const struct held *h, const struct api_record *r, size_t next)
{
	const uint32_t *at = xsp_u64map_get(&g->call_of, xsp_u64_pair(th->pid, r->correlation));
	const struct call *c = at != NULL ? &g->calls[*at] : NULL;
	const struct held *o;

	if (r->api != XSP_CUDA_DRIVER)
		return ID_ITS_OWN;
	for (size_t i = next; i < th->record_count && i - next < AROUND_WITHIN; i++) {
		const struct api_record *around = &th->records[i];
		if (around->api != XSP_CUDA_DRIVER && encloses(around->start_ns, around->end_ns, r))
			return around->correlation == r->correlation ? ID_OF_THE_CALL_AROUND
								     : ID_ITS_OWN;
	}
	if (c != NULL && c->known && c->tid == th->tid && encloses(c->start_ns, c->end_ns, r))
		return ID_OF_THE_CALL_AROUND;
	o = outermost(th, h);
	return o != NULL && (o->done || o->api == XSP_CUDA_DRIVER) ? ID_ITS_OWN : ID_NOT_KNOWN;
}

static int without_span(struct xsp_gpu *g, const struct gpu_thread *th, const struct api_record *r,
			const struct held *inside, struct call *found)
{
	const char *name = xsp_gpu_name(
		g, r->api == XSP_CUDA_DRIVER ? XSP_GPU_NAME_DRIVER : XSP_GPU_NAME_RUNTIME, r->cbid);

	*found = (struct call){.pid = th->pid,
			       .correlation = r->correlation,
			       .tid = th->tid,
			       .start_ns = r->start_ns,
			       .end_ns = r->end_ns,
			       .left_out = xsp_cut_time(g->t, r->start_ns, r->end_ns) |
					   xsp_cut_thread(g->t, th->tid) |
					   (xsp_cut_leaves_call_out(g->t, name != NULL ? name : "")
						    ? XSP_LEFT_OUT_NAME
						    : 0)};
	if (inside != NULL) {
		found->row = inside->span.row;
		found->around = around_of(&inside->span);
	}
	const struct xsp_gpu_call call = {
		.pid = th->pid,
		.tid = th->tid,
		.row = found->row,
		.start_ns = r->start_ns,
		.end_ns = r->end_ns,
		.api = (enum xsp_cuda_api)r->api,
		.name = name != NULL ? name : "",
		.correlation = r->correlation,
		.cbid = r->cbid,
		.result = r->result,
		.external = xsp_gpu_launcher(&found->around),
	};
	return xsp_notify_call(g->t, &call);
}

/* `next`: the record after it. */
static int match_record(struct xsp_gpu *g, struct gpu_thread *th, const struct api_record *r,
			size_t next)
{
	const struct held *inside;
	struct held *h = find_span(th, r, &inside);
	struct call found;
	int rc;

	if (h == NULL && r->bad)
		return 0;
	if (h == NULL) {
		rc = without_span(g, th, r, inside, &found);
	} else {
		const struct xsp_span *s = &h->span;
		const struct held *o = outermost(th, h);
		found = (struct call){.pid = th->pid,
				      .correlation = r->correlation,
				      .tid = th->tid,
				      .row = s->row,
				      /* arrows begin at the outermost call */
				      .start_ns = s->outer_ns != 0 ? s->outer_ns : s->start_ns,
				      .end_ns = o != NULL ? o->span.end_ns : s->end_ns,
				      .left_out = s->left_out,
				      .around = around_of(s)};
		measure_clock(g, s, r);
		/* readers of the call take one inside no other for the only one with its id */
		if (s->outer_ns != 0 && whose_id(g, th, h, r, next) == ID_ITS_OWN)
			h->span.outer_ns = 0;
		rc = finish_held(g, h, r);
	}
	if (rc < 0 || r->correlation == 0)
		return rc;
	return xsp_gpu_call_known(g, &found);
}

/* May the record of the call around it still come, and settle whose id this is? */
static bool waits_for_call_around(const struct xsp_gpu *g, struct gpu_thread *th,
				  const struct api_record *r, size_t next)
{
	const struct held *inside, *h;

	if (r->api != XSP_CUDA_DRIVER || next + AROUND_WITHIN < th->record_count)
		return false;
	h = find_span(th, r, &inside);
	return h != NULL && h->span.outer_ns != 0 && whose_id(g, th, h, r, next) == ID_NOT_KNOWN;
}

/* `next`: the record after it. */
static bool is_due(const struct xsp_gpu *g, struct gpu_thread *th, const struct api_record *r,
		   size_t next)
{
	/* without probes on calls there is nothing to wait for */
	return !g->t->cuda_probes || g->now - r->came_ns > XSP_RECORD_NS ||
	       (th->closed_ns >= r->end_ns && !waits_for_call_around(g, th, r, next));
}

/* Matches the records whose span must have ended by now, or all. */
static int match_records(struct xsp_gpu *g, struct gpu_thread *th, bool all)
{
	size_t kept = 0;
	int rc = 0;

	for (size_t i = 0; i < th->record_count && rc == 0; i++) {
		struct api_record r = th->records[i];
		if (all || is_due(g, th, &r, i + 1) || th->record_count - i > XSP_MAX_RECORDS)
			rc = match_record(g, th, &r, i + 1);
		else
			th->records[kept++] = r;
	}
	th->record_count = kept;
	return rc;
}

int xsp_gpu_api_record(struct xsp_gpu *g, uint32_t pid, const struct xsp_gpu_record *record,
		       enum xsp_cuda_api api)
{
	struct xsp_gpu_api a;
	uint32_t tid;

	xsp_gpu_record_read(record, &a, sizeof(a));
	int rc = root_tid(g, pid, a.tid, &tid);
	if (rc != 0)
		return rc;
	struct gpu_thread *th = thread_of(g, pid, tid);
	if (th == NULL)
		return -ENOMEM;
	g->counts.api_records++;
	const enum xsp_gpu_bad bad = xsp_gpu_bad_times(g, a.start_ns, a.end_ns, g->now);
	if (bad != XSP_GPU_TIMED)
		g->counts.bad[bad]++;
	const struct api_record r = {.start_ns = a.start_ns,
				     .end_ns = a.end_ns < a.start_ns ? a.start_ns : a.end_ns,
				     .came_ns = g->now,
				     .correlation = record->correlation,
				     .cbid = a.cbid,
				     .result = a.result,
				     .api = (uint8_t)api,
				     .bad = bad != XSP_GPU_TIMED};
	if (th->record_count == 0 && is_due(g, th, &r, 0))
		return match_record(g, th, &r, 0);
	if (XSP_APPEND(th->records, th->record_capacity, th->record_count, r) < 0)
		return -ENOMEM;
	return match_records(g, th, false);
}

/* ---- spans ---- */

static int drop_first(struct xsp_gpu *g, struct gpu_thread *th)
{
	struct held *h = &th->held[th->held_from];
	int rc = h->done ? 0 : finish_held(g, h, NULL);

	th->held_from++;
	if (th->held_from > 64 && th->held_from * 2 > th->held_count) {
		th->held_count -= th->held_from;
		memmove(th->held, th->held + th->held_from, th->held_count * sizeof(*th->held));
		th->held_from = 0;
	}
	return rc;
}

int xsp_gpu_span(struct xsp_gpu *g, const struct xsp_span *span, enum xsp_cuda_api api)
{
	struct gpu_thread *th = thread_of(g, span->pid, span->tid);
	int rc = th == NULL ? -ENOMEM : 0;

	if (rc == 0 && th->held_count - th->held_from >= XSP_MAX_HELD)
		rc = drop_first(g, th);
	if (rc == 0 && xsp_grow(&th->held, &th->held_capacity, th->held_count + 1) < 0)
		rc = -ENOMEM;
	if (rc < 0)
		return rc;
	struct held *h = &th->held[th->held_count++];
	*h = (struct held){.span = *span, .api = (uint8_t)api};
	h->span.ancestors = NULL; /* it was valid during the call only */
	xsp_details_ref(h->span.details);
	if (span->end_ns > th->closed_ns)
		th->closed_ns = span->end_ns;
	return th->record_count > 0 ? match_records(g, th, false) : 0;
}

static bool is_old(const struct xsp_gpu *g, const struct held *h)
{
	uint64_t age = g->now > h->span.end_ns ? g->now - h->span.end_ns : 0;

	return age > (h->done ? XSP_DONE_NS : XSP_HELD_NS);
}

int xsp_gpu_sweep_calls(struct xsp_gpu *g, bool all)
{
	int rc = 0;

	for (size_t i = 0; i < g->threads.count && rc == 0; i++) {
		struct gpu_thread *th = &g->threads.rows[i];
		if (th->record_count > 0)
			rc = match_records(g, th, all);
		while (rc == 0 && th->held_from < th->held_count &&
		       (all || is_old(g, &th->held[th->held_from])))
			rc = drop_first(g, th);
	}
	return rc;
}

void xsp_gpu_calls_free(struct xsp_gpu *g)
{
	for (size_t i = 0; i < g->threads.count; i++) {
		struct gpu_thread *th = &g->threads.rows[i];
		for (size_t k = th->held_from; k < th->held_count; k++)
			xsp_details_unref(th->held[k].span.details);
		free(th->held);
		free(th->records);
	}
	xsp_tally_free(&g->threads);
	xsp_u64map_free(&g->tids);
}
