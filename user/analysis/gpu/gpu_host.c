/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/gpu/gpu_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/search.h"
#include "base/rows/tally.h"

/* A span or a wait that has ended. */
struct held {
	uint64_t start_ns, end_ns;
	uint32_t use;
	uint32_t depth; /* depth of the span, or one of these values: */
};
#define DEPTH_WAIT UINT32_MAX
#define DEPTH_UNKNOWN (1U << 31) /* bit: the end of the span is not known */

/* Idle time up to a moment; it grows evenly between two points. */
struct point {
	uint64_t ns, sum_ns;
};

/* Idle time of one device for which this thread launched too late. */
struct gaps {
	uint32_t device;
	struct point *points;
	size_t count, capacity;
};

struct host_thread {
	uint32_t tid;
	bool launches;
	struct held *held; /* the entries from index `from` on are in use */
	size_t from, count, capacity;
	/* spans and waits dropped before the first launch; the end of the last one: */
	uint64_t forgotten;
	uint64_t forgotten_ns;
	struct gaps *gaps;
	size_t gap_count, gap_capacity;
	/* By depth: idle time in spans that have ended, until the span around them ends. */
	uint64_t *inside_ns;
	size_t inside_capacity;
};

struct xsp_gpu_host {
	const struct xsp_timeline *timeline;
	XSP_TALLY(struct host_thread) threads; /* by tid */
	uint32_t last; /* index of the thread looked up last */
	/* by name, parent and line; waits by place and reason */
	XSP_TALLY(struct xsp_gpu_host_use) uses;
	struct xsp_name_rows row_of;
	size_t held; /* entries of threads that launch */
	size_t before; /* entries of threads that have not launched yet */
	struct xsp_gpu_host_sums sums;
};

int xsp_gpu_host_new(const struct xsp_timeline *t, struct xsp_gpu_host **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = (*out)->row_of.timeline = t;
	return 0;
}

static void free_thread(struct host_thread *th)
{
	for (size_t i = 0; i < th->gap_count; i++)
		free(th->gaps[i].points);
	free(th->gaps);
	free(th->held);
	free(th->inside_ns);
}

void xsp_gpu_host_free(struct xsp_gpu_host *h)
{
	if (h == NULL)
		return;
	for (size_t i = 0; i < h->threads.count; i++)
		free_thread(&h->threads.rows[i]);
	xsp_tally_free(&h->threads);
	xsp_tally_free(&h->uses);
	xsp_name_rows_free(&h->row_of);
	free(h);
}

/* Returns NULL if out of memory. */
static struct host_thread *thread_of(struct xsp_gpu_host *h, uint32_t tid)
{
	if (h->last < h->threads.count && h->threads.rows[h->last].tid == tid)
		return &h->threads.rows[h->last];
	struct host_thread *th = xsp_tally_row(&h->threads, tid, &(struct host_thread){.tid = tid});
	h->last = th != NULL ? xsp_tally_index(&h->threads, th) : 0;
	return th;
}

/* ---- first launches ---- */

static size_t held_of(const struct host_thread *th)
{
	return th->count - th->from;
}

static void has_launched(struct xsp_gpu_host *h, struct host_thread *th)
{
	if (th->launches)
		return;
	th->launches = true;
	h->before -= held_of(th);
	h->held += held_of(th);
}

/* Dropped entries count only if a device was idle during their time because of this thread. */
static void count_forgotten(struct xsp_gpu_host *h, struct host_thread *th, uint64_t idle_from_ns)
{
	if (idle_from_ns >= th->forgotten_ns)
		return;
	h->sums.early += th->forgotten;
	th->forgotten = th->forgotten_ns = 0;
}

/* ---- idle time ---- */

/* Drops every second point of the older half. The idle time between two points is then spread
 * evenly over a longer stretch. */
static void thin_out(struct gaps *g)
{
	const size_t half = g->count / 2;
	size_t kept = 0;

	for (size_t i = 0; i < g->count; i++)
		if (i >= half || i % 2 == 0)
			g->points[kept++] = g->points[i];
	g->count = kept;
}

static int add_point(struct gaps *g, uint64_t ns, uint64_t sum_ns)
{
	if (g->count >= XSP_GPU_HOST_POINTS_MOST)
		thin_out(g);
	return XSP_APPEND(g->points, g->capacity, g->count, (struct point){ns, sum_ns});
}

/* Returns NULL if out of memory. */
static struct gaps *gaps_of(struct host_thread *th, uint32_t device)
{
	for (size_t i = 0; i < th->gap_count; i++)
		if (th->gaps[i].device == device)
			return &th->gaps[i];
	return XSP_APPEND(th->gaps, th->gap_capacity, th->gap_count,
			  (struct gaps){.device = device}) < 0
		       ? NULL
		       : &th->gaps[th->gap_count - 1];
}

int xsp_gpu_host_gap(struct xsp_gpu_host *h, uint32_t tid, uint32_t device, uint64_t from_ns,
		     uint64_t to_ns)
{
	struct host_thread *th = thread_of(h, tid);
	struct gaps *g = th != NULL ? gaps_of(th, device) : NULL;

	if (g == NULL)
		return -ENOMEM;
	has_launched(h, th);
	count_forgotten(h, th, from_ns);
	const uint64_t sum = g->count > 0 ? g->points[g->count - 1].sum_ns : 0;
	int rc = add_point(g, from_ns, sum);
	if (rc == 0)
		rc = add_point(g, to_ns, sum + (to_ns - from_ns));
	h->sums.idle_ns += to_ns - from_ns;
	return rc;
}

static uint64_t idle_until(const struct gaps *g, uint64_t ns)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, g->count, i, g->points[i].ns <= ns); /* the first point after ns */
	if (low == 0 || low == g->count)
		return low == 0 ? 0 : g->points[low - 1].sum_ns;
	const struct point *a = &g->points[low - 1], *b = &g->points[low];
	return a->sum_ns + (uint64_t)((unsigned __int128)(b->sum_ns - a->sum_ns) * (ns - a->ns) /
				      (b->ns - a->ns));
}

static uint64_t idle_between(const struct host_thread *th, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < th->gap_count; i++)
		sum += idle_until(&th->gaps[i], to_ns) - idle_until(&th->gaps[i], from_ns);
	return sum;
}

/* ---- shares of what was held ---- */

static int add_span(struct xsp_gpu_host *h, struct host_thread *th, const struct held *s)
{
	const uint32_t depth = s->depth & ~DEPTH_UNKNOWN;

	if (xsp_grow_zeroed(&th->inside_ns, &th->inside_capacity, (size_t)depth + 2) < 0)
		return -ENOMEM;
	const uint64_t inside = th->inside_ns[depth + 1];
	uint64_t all = inside;
	if (!(s->depth & DEPTH_UNKNOWN)) {
		all = idle_between(th, s->start_ns, s->end_ns);
		h->uses.rows[s->use].idle_ns += all > inside ? all - inside : 0;
		all = all > inside ? all : inside;
	}
	th->inside_ns[depth + 1] = 0;
	if (depth > 0)
		th->inside_ns[depth] += all;
	else
		h->sums.span_ns += all;
	return 0;
}

static void remove_first(struct xsp_gpu_host *h, struct host_thread *th, size_t count)
{
	*(th->launches ? &h->held : &h->before) -= count;
	th->from += count;
	if (th->from > 64 && th->from * 2 > th->count) {
		th->count -= th->from;
		memmove(th->held, th->held + th->from, th->count * sizeof(*th->held));
		th->from = 0;
	}
}

static int add_first(struct xsp_gpu_host *h, struct host_thread *th)
{
	const struct held s = th->held[th->from];

	remove_first(h, th, 1);
	if (s.depth != DEPTH_WAIT)
		return add_span(h, th, &s);
	h->uses.rows[s.use].idle_ns += idle_between(th, s.start_ns, s.end_ns);
	return 0;
}

/* Up to then no device was idle because of a thread that has not launched: drops its entries. */
static void forget_until(struct xsp_gpu_host *h, struct host_thread *th, uint64_t ns)
{
	size_t n = 0;

	while (n < held_of(th) && th->held[th->from + n].end_ns <= ns)
		n++;
	remove_first(h, th, n);
	if (th->forgotten_ns <= ns)
		th->forgotten = th->forgotten_ns = 0;
}

int xsp_gpu_host_pass(struct xsp_gpu_host *h, uint64_t ns)
{
	int rc = 0;

	for (size_t i = 0; i < h->threads.count; i++) {
		struct host_thread *th = &h->threads.rows[i];
		if (!th->launches)
			forget_until(h, th, ns);
		while (rc == 0 && th->from < th->count && th->held[th->from].end_ns <= ns)
			rc = add_first(h, th);
	}
	return rc;
}

/* Threads that have not launched, and perhaps never will, hold too much. Each loses its older half,
 * so that no thread takes the room of the others. */
static void forget_older(struct xsp_gpu_host *h)
{
	for (size_t i = 0; i < h->threads.count; i++) {
		struct host_thread *th = &h->threads.rows[i];
		const size_t n = (held_of(th) + 1) / 2;
		if (th->launches || n == 0)
			continue;
		th->forgotten += n;
		th->forgotten_ns = th->held[th->from + n - 1].end_ns;
		remove_first(h, th, n);
	}
}

static int hold(struct xsp_gpu_host *h, struct host_thread *th, const struct held *s)
{
	int rc = 0;

	if (!th->launches && h->before >= XSP_GPU_HOST_BEFORE_MOST)
		forget_older(h);
	if (th->launches && h->held >= XSP_GPU_HOST_HELD_MOST && th->from < th->count) {
		h->sums.early++;
		rc = add_first(h, th);
	}
	if (rc == 0)
		rc = XSP_APPEND(th->held, th->capacity, th->count, *s);
	if (rc < 0)
		return rc;
	(*(th->launches ? &h->held : &h->before))++;
	return 0;
}

/* ---- names ---- */

int xsp_gpu_host_row(struct xsp_gpu_host *h, xsp_name_id id, xsp_name_id *row)
{
	return xsp_name_rows_of(&h->row_of, id, row);
}

const char *xsp_gpu_host_name(const struct xsp_gpu_host *h, xsp_name_id id,
			      char out[XSP_GPU_HOST_NAME_MAX])
{
	return xsp_name_rows_text(&h->row_of, id, out);
}

/* ---- spans and waits ---- */

static int hold_use(struct xsp_gpu_host *h, struct host_thread *th, struct held *s, uint64_t key,
		    const struct xsp_gpu_host_use *what)
{
	const struct xsp_gpu_host_use *use = xsp_tally_row(&h->uses, key, what);

	if (use == NULL)
		return -ENOMEM;
	s->use = xsp_tally_index(&h->uses, use);
	return hold(h, th, s);
}

int xsp_gpu_host_launches(struct xsp_gpu_host *h, uint32_t tid)
{
	struct host_thread *th = thread_of(h, tid);

	if (th == NULL)
		return -ENOMEM;
	has_launched(h, th);
	return 0;
}

/* Only the thread's own stack counts: depths of other stacks mean something else. */
int xsp_gpu_host_span(struct xsp_gpu_host *h, const struct xsp_span *span)
{
	struct xsp_gpu_host_use use = {.name = 0};
	struct held s = {span->start_ns, span->end_ns, 0, span->depth};
	struct host_thread *th = thread_of(h, span->tid);

	if (th == NULL)
		return -ENOMEM;
	if (!th->launches && xsp_timeline_cuda(h->timeline, span->probe) != NULL)
		has_launched(h, th);
	if (span->row != 0 || span->depth >= DEPTH_UNKNOWN - 2)
		return 0;
	int rc = xsp_gpu_host_row(h, span->name, &use.name);
	if (rc == 0 && span->depth > 0) {
		rc = xsp_gpu_host_row(h, span->ancestors[span->depth - 1], &use.parent);
		use.parent++;
	}
	if (rc < 0)
		return rc;
	if (span->python != NULL && span->python_first < span->python->count)
		use.line = &span->python->frames[span->python_first];
	if (span->flags & (XSP_SPAN_EXIT_LOST | XSP_SPAN_POINT))
		s.depth |= DEPTH_UNKNOWN;
	return hold_use(h, th, &s,
			xsp_u64_mix((uint64_t)use.parent << 32 | use.name) +
				(use.line != NULL ? use.line->name : 0),
			&use);
}

int xsp_gpu_host_wait(struct xsp_gpu_host *h, const struct xsp_wait *wait)
{
	const struct xsp_gpu_host_use use = {
		.wait = true, .why = (uint32_t)wait->why, .place = wait->place};
	struct held s = {wait->left_ns, wait->back_ns, 0, DEPTH_WAIT};
	struct host_thread *th = thread_of(h, wait->tid);

	if (th == NULL)
		return -ENOMEM;
	return wait->flags & XSP_WAIT_SHORT
		       ? 0
		       : hold_use(h, th, &s, ~xsp_u64_mix((uint64_t)use.place << 32 | use.why),
				  &use);
}

/* ---- results ---- */

XSP_TALLY_ROWS(xsp_gpu_host_uses, xsp_gpu_host, xsp_gpu_host_use, uses);

const struct xsp_gpu_host_sums *xsp_gpu_host_sums(const struct xsp_gpu_host *h)
{
	return &h->sums;
}
