/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/gpu/gpu_host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/search.h"
#include "base/text.h"
#include "base/u64map.h"

/* A span or a wait that has ended. */
struct held {
	uint64_t start_ns, end_ns;
	uint32_t use;
	uint32_t depth; /* of a span, or one of these: */
};
#define DEPTH_WAIT UINT32_MAX
#define DEPTH_UNKNOWN (1U << 31) /* bit: when the span ended is not known */

/* Idle time up to a moment; between two points it grows evenly. */
struct point {
	uint64_t ns, sum_ns;
};

/* Of one device, because this thread was late. */
struct gaps {
	uint32_t device;
	struct point *points;
	size_t count, capacity;
};

struct host_thread {
	uint32_t tid;
	bool launches;
	struct held *held; /* from `from` on */
	size_t from, count, capacity;
	uint64_t forgotten; /* spans and waits, before it launched; the last one ended then: */
	uint64_t forgotten_ns;
	struct gaps *gaps;
	size_t gap_count, gap_capacity;
	/* by depth: idle time in spans that have ended, until the one around them does */
	uint64_t *inside_ns;
	size_t inside_count, inside_capacity;
};

struct xsp_gpu_host {
	const struct xsp_timeline *timeline;
	struct host_thread **threads;
	size_t thread_count, thread_capacity;
	struct xsp_u64map thread_of;
	struct host_thread *last;
	struct xsp_gpu_host_use *uses;
	size_t use_count, use_capacity;
	struct xsp_u64map use_of;
	xsp_name_id *row_of; /* by name id: of names that only number the first one */
	size_t row_of_count, row_of_capacity;
	struct xsp_u64map numbered; /* hash of what such names have in common → the first one */
	struct xsp_u64map several; /* of those, the ones that are not alone */
	size_t held; /* of threads that launch */
	size_t before; /* of those that have not launched yet */
	uint64_t early, idle_ns, span_ns;
};

int xsp_gpu_host_new(const struct xsp_timeline *t, struct xsp_gpu_host **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = t;
	return 0;
}

static void free_thread(struct host_thread *th)
{
	for (size_t i = 0; i < th->gap_count; i++)
		free(th->gaps[i].points);
	free(th->gaps);
	free(th->held);
	free(th->inside_ns);
	free(th);
}

void xsp_gpu_host_free(struct xsp_gpu_host *h)
{
	if (h == NULL)
		return;
	for (size_t i = 0; i < h->thread_count; i++)
		free_thread(h->threads[i]);
	free(h->threads);
	free(h->uses);
	free(h->row_of);
	xsp_u64map_free(&h->numbered);
	xsp_u64map_free(&h->several);
	xsp_u64map_free(&h->thread_of);
	xsp_u64map_free(&h->use_of);
	free(h);
}

static int thread_of(struct xsp_gpu_host *h, uint32_t tid, struct host_thread **out)
{
	if (h->last != NULL && h->last->tid == tid) {
		*out = h->last;
		return 0;
	}
	const uint32_t *at = xsp_u64map_get(&h->thread_of, tid);
	if (at != NULL) {
		*out = h->last = h->threads[*at];
		return 0;
	}
	struct host_thread *th = calloc(1, sizeof(*th));
	if (th == NULL || xsp_grow(&h->threads, &h->thread_capacity, h->thread_count + 1) < 0 ||
	    xsp_u64map_set(&h->thread_of, tid, (uint32_t)h->thread_count) < 0) {
		free(th);
		return -ENOMEM;
	}
	th->tid = tid;
	h->threads[h->thread_count++] = th;
	*out = h->last = th;
	return 0;
}

/* ---- threads begin to launch ---- */

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

/* What was forgotten before the thread launched is missed only if a device was idle at that time because of it. */
static void count_forgotten(struct xsp_gpu_host *h, struct host_thread *th, uint64_t idle_from_ns)
{
	if (idle_from_ns >= th->forgotten_ns)
		return;
	h->early += th->forgotten;
	th->forgotten = th->forgotten_ns = 0;
}

/* ---- idle time ---- */

/* Every second point of the older half goes: what lies between its neighbours is then spread over all of that. */
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
	if (xsp_grow(&g->points, &g->capacity, g->count + 1) < 0)
		return -ENOMEM;
	g->points[g->count++] = (struct point){ns, sum_ns};
	return 0;
}

static int gaps_of(struct host_thread *th, uint32_t device, struct gaps **out)
{
	for (size_t i = 0; i < th->gap_count; i++) {
		*out = &th->gaps[i];
		if ((*out)->device == device)
			return 0;
	}
	if (xsp_grow(&th->gaps, &th->gap_capacity, th->gap_count + 1) < 0)
		return -ENOMEM;
	*out = &th->gaps[th->gap_count++];
	**out = (struct gaps){.device = device};
	return 0;
}

int xsp_gpu_host_gap(struct xsp_gpu_host *h, uint32_t tid, uint32_t device, uint64_t from_ns,
		     uint64_t to_ns)
{
	struct host_thread *th;
	struct gaps *g = NULL;
	int rc = thread_of(h, tid, &th);

	if (rc == 0)
		rc = gaps_of(th, device, &g);
	if (rc < 0)
		return rc;
	has_launched(h, th);
	count_forgotten(h, th, from_ns);
	const uint64_t sum = g->count > 0 ? g->points[g->count - 1].sum_ns : 0;
	rc = add_point(g, from_ns, sum);
	if (rc == 0)
		rc = add_point(g, to_ns, sum + (to_ns - from_ns));
	h->idle_ns += to_ns - from_ns;
	return rc;
}

static uint64_t idle_until(const struct gaps *g, uint64_t ns)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, g->count, i, g->points[i].ns <= ns); /* the first point behind it */
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

/* ---- what was held gets its part ---- */

static int add_span(struct xsp_gpu_host *h, struct host_thread *th, const struct held *s)
{
	const uint32_t depth = s->depth & ~DEPTH_UNKNOWN;

	if (xsp_grow(&th->inside_ns, &th->inside_capacity, (size_t)depth + 2) < 0)
		return -ENOMEM;
	while (th->inside_count < (size_t)depth + 2)
		th->inside_ns[th->inside_count++] = 0;
	const uint64_t inside = th->inside_ns[depth + 1];
	uint64_t all = inside;
	if (!(s->depth & DEPTH_UNKNOWN)) {
		all = idle_between(th, s->start_ns, s->end_ns);
		h->uses[s->use].idle_ns += all > inside ? all - inside : 0;
		all = all > inside ? all : inside;
	}
	th->inside_ns[depth + 1] = 0;
	if (depth > 0)
		th->inside_ns[depth] += all;
	else
		h->span_ns += all;
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
	h->uses[s.use].idle_ns += idle_between(th, s.start_ns, s.end_ns);
	return 0;
}

/* No device was idle until then because of a thread that has not launched. */
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

	for (size_t i = 0; i < h->thread_count; i++) {
		struct host_thread *th = h->threads[i];
		if (!th->launches)
			forget_until(h, th, ns);
		while (rc == 0 && th->from < th->count && th->held[th->from].end_ns <= ns)
			rc = add_first(h, th);
	}
	return rc;
}

/* Too much is held of threads that have not launched, and perhaps never will: of each the older half goes, so that none
 * takes the room of the others. */
static void forget_older(struct xsp_gpu_host *h)
{
	for (size_t i = 0; i < h->thread_count; i++) {
		struct host_thread *th = h->threads[i];
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
		h->early++;
		rc = add_first(h, th);
	}
	if (rc == 0)
		rc = xsp_grow(&th->held, &th->capacity, th->count + 1);
	if (rc < 0)
		return rc;
	th->held[th->count++] = *s;
	(*(th->launches ? &h->held : &h->before))++;
	return 0;
}

/* ---- names ---- */

static int find_row(struct xsp_gpu_host *h, xsp_name_id id, xsp_name_id *row)
{
	const char *name = xsp_timeline_name(h->timeline, id);
	const size_t stem = xsp_timeline_step_stem(h->timeline, name);
	const uint64_t hash = xsp_text_hash(name, stem);
	const uint32_t *first = stem > 0 ? xsp_u64map_get(&h->numbered, hash) : NULL;

	*row = first != NULL ? *first : id;
	if (stem == 0)
		return 0;
	return first == NULL ? xsp_u64map_set(&h->numbered, hash, id)
			     : xsp_u64map_set(&h->several, *first, 1);
}

int xsp_gpu_host_row(struct xsp_gpu_host *h, xsp_name_id id, xsp_name_id *row)
{
	int rc = 0;

	if (id >= h->row_of_count && xsp_grow(&h->row_of, &h->row_of_capacity, (size_t)id + 1) < 0)
		return -ENOMEM;
	for (; rc == 0 && h->row_of_count <= id; h->row_of_count++)
		rc = find_row(h, (xsp_name_id)h->row_of_count, &h->row_of[h->row_of_count]);
	*row = rc == 0 ? h->row_of[id] : 0;
	return rc;
}

const char *xsp_gpu_host_name(const struct xsp_gpu_host *h, xsp_name_id id,
			      char out[XSP_GPU_HOST_NAME_MAX])
{
	const char *name = xsp_timeline_name(h->timeline, id);
	const size_t stem = xsp_timeline_step_stem(h->timeline, name);

	if (stem > XSP_NAME_MAX || xsp_u64map_get(&h->several, id) == NULL)
		return name;
	snprintf(out, XSP_GPU_HOST_NAME_MAX, "%.*s*", (int)stem, name);
	return out;
}

/* ---- spans and waits ---- */

static int use_of(struct xsp_gpu_host *h, uint64_t key, const struct xsp_gpu_host_use *what,
		  uint32_t *out)
{
	const long at = xsp_u64map_index(&h->use_of, key, &h->uses, &h->use_capacity, h->use_count);

	if (at < 0)
		return -ENOMEM;
	if ((size_t)at == h->use_count)
		h->uses[h->use_count++] = *what;
	*out = (uint32_t)at;
	return 0;
}

int xsp_gpu_host_launches(struct xsp_gpu_host *h, uint32_t tid)
{
	struct host_thread *th;
	const int rc = thread_of(h, tid, &th);

	if (rc == 0)
		has_launched(h, th);
	return rc;
}

/* Only the thread's own stack: depths of others are no depths of that. */
int xsp_gpu_host_span(struct xsp_gpu_host *h, const struct xsp_span *span)
{
	struct xsp_gpu_host_use use = {.name = 0};
	struct held s = {span->start_ns, span->end_ns, 0, span->depth};
	struct host_thread *th;
	int rc = thread_of(h, span->tid, &th);

	if (rc < 0)
		return rc;
	if (!th->launches && xsp_timeline_cuda(h->timeline, span->probe) != NULL)
		has_launched(h, th);
	if (span->row != 0 || span->depth >= DEPTH_UNKNOWN - 2)
		return 0;
	rc = xsp_gpu_host_row(h, span->name, &use.name);
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
	rc = use_of(h,
		    xsp_u64_mix((uint64_t)use.parent << 32 | use.name) +
			    (use.line != NULL ? use.line->name : 0),
		    &use, &s.use);
	return rc < 0 ? rc : hold(h, th, &s);
}

int xsp_gpu_host_wait(struct xsp_gpu_host *h, const struct xsp_wait *wait)
{
	const struct xsp_gpu_host_use use = {
		.wait = true, .why = (uint32_t)wait->why, .place = wait->place};
	struct held s = {wait->left_ns, wait->back_ns, 0, DEPTH_WAIT};
	struct host_thread *th;
	int rc = thread_of(h, wait->tid, &th);

	if (rc < 0 || wait->flags & XSP_WAIT_SHORT)
		return rc;
	rc = use_of(h, ~xsp_u64_mix((uint64_t)use.place << 32 | use.why), &use, &s.use);
	return rc < 0 ? rc : hold(h, th, &s);
}

/* ---- results ---- */

size_t xsp_gpu_host_uses(const struct xsp_gpu_host *h, const struct xsp_gpu_host_use **out)
{
	*out = h->uses;
	return h->use_count;
}

uint64_t xsp_gpu_host_idle_ns(const struct xsp_gpu_host *h)
{
	return h->idle_ns;
}

uint64_t xsp_gpu_host_span_ns(const struct xsp_gpu_host *h)
{
	return h->span_ns;
}

uint64_t xsp_gpu_host_early(const struct xsp_gpu_host *h)
{
	return h->early;
}
