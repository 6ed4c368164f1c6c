/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bad.c - records whose times cannot be true. CUPTI writes 0 where it could not take a time
 * (cupti_activity.h). Other times are wrong where its clock is another one, or was set wrongly.
 */
#include "timeline/gpu/gpu_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/search.h"
#include "base/text.h"
#include "base/units.h"
#include "timeline/gpu_category.h"

/* Work may go on that long after its launch, or have begun before the recording. */
#define OUTSIDE_NS (60 * 1000000000ULL)
/* Records come after what they describe; the clocks of host and GPU disagree by less. */
#define FUTURE_NS 1000000000ULL
/* The host's clock and the GPU's disagree by microseconds. */
#define DISAGREE_NS 20000U
/* Two activities of a stream may touch by so much: the GPU's clock is coarse, and traces round. */
#define TOUCH_NS 2000U
#define STREAMS_MOST 4096U
#define TIMES_MOST 512U /* of a stream; the older half goes */
/* From this compute capability on, a kernel may begin before the one before it has ended. */
#define PROGRAMMATIC_LAUNCH 9U

/* ---- one record by itself ---- */

void xsp_gpu_bad_begin(struct xsp_gpu *g)
{
	uint64_t from, to;

	xsp_capture_window(g->t->reader, &from, &to);
	g->from_ns = from > OUTSIDE_NS ? from - OUTSIDE_NS : 0;
	g->to_ns = to > from && to < UINT64_MAX - OUTSIDE_NS ? to + OUTSIDE_NS : UINT64_MAX;
	/* an imported record stands where it begins */
	g->imported = xsp_capture_info(g->t->reader, "read from") != NULL;
}

enum xsp_gpu_bad xsp_gpu_bad_times(const struct xsp_gpu *g, uint64_t start_ns, uint64_t end_ns,
				   uint64_t came_ns)
{
	if (start_ns == 0 || end_ns == 0)
		return XSP_GPU_NO_TIME;
	if (start_ns > INT64_MAX || end_ns > INT64_MAX || start_ns < g->from_ns ||
	    start_ns > g->to_ns || end_ns > g->to_ns ||
	    (!g->imported && end_ns > came_ns && end_ns - came_ns > FUTURE_NS))
		return XSP_GPU_OTHER_CLOCK;
	return end_ns < start_ns ? XSP_GPU_BACKWARDS : XSP_GPU_TIMED;
}

/* ---- with its call, and the others of its stream ---- */

struct times {
	uint64_t start_ns, end_ns;
	bool kernel;
};

struct stream_times {
	uint32_t pid, device, context, stream;
	struct times *list; /* by start; none of them is bad */
	size_t count, capacity;
	uint64_t complete_ns; /* earlier ones are no longer there */
};

/* NULL: none, for lack of memory or because there are too many. */
static struct stream_times *stream_of(struct xsp_gpu *g, const struct xsp_gpu_activity *a)
{
	const struct stream_times key = {a->pid, a->device, a->context, a->stream, NULL, 0, 0, 0};
	uint64_t hash = xsp_u64_mix((uint64_t)a->pid << 32 | a->stream) ^
			((uint64_t)a->context << 32 | a->device);
	struct stream_times *s;

	for (; (s = xsp_tally_find(&g->streams, hash)) != NULL; hash++)
		if (s->pid == a->pid && s->device == a->device && s->context == a->context &&
		    s->stream == a->stream)
			return s;
	return g->streams.count < STREAMS_MOST ? xsp_tally_row(&g->streams, hash, &key) : NULL;
}

static bool overlap(const struct times *x, const struct times *y)
{
	const uint64_t from = xsp_max_u64(x->start_ns, y->start_ns);
	const uint64_t to = x->end_ns < y->end_ns ? x->end_ns : y->end_ns;

	return to > from && to - from > TOUCH_NS;
}

/* By programmatic launch a kernel begins before the last one ends, and ends after it. */
static bool may_overlap(const struct xsp_gpu_activity *a, const struct times *x,
			const struct times *y)
{
	const uint32_t major = a->on != NULL ? a->on->device.compute_major : 0;

	return x->kernel && y->kernel && (major == 0 || major >= PROGRAMMATIC_LAUNCH) &&
	       x->start_ns != y->start_ns && x->end_ns != y->end_ns &&
	       (x->start_ns < y->start_ns) == (x->end_ns < y->end_ns);
}

/* -ENOMEM costs the check, nothing else. */
static void keep(struct stream_times *s, size_t at, const struct times *new)
{
	if (s->count >= TIMES_MOST) {
		const size_t half = s->count / 2;
		s->complete_ns = s->list[half - 1].end_ns;
		s->count -= half;
		memmove(s->list, s->list + half, s->count * sizeof(*s->list));
		at = at > half ? at - half : 0;
	}
	if (xsp_grow(&s->list, &s->capacity, s->count + 1) < 0)
		return;
	memmove(s->list + at + 1, s->list + at, (s->count - at) * sizeof(*s->list));
	s->list[at] = *new;
	s->count++;
}

/* Branches of a graph run beside each other, and only calls of CUDA's say that a stream is one. */
static bool is_in_order(const struct waiting *w, const struct xsp_gpu_activity *a)
{
	const uint32_t graph = a->kind == XSP_GPU_IS_KERNEL   ? w->record.kernel.graph
			       : a->kind == XSP_GPU_IS_MEMCPY ? w->record.memcpy.graph
			       : a->kind == XSP_GPU_IS_MEMSET ? w->record.memset.graph
							      : 1;

	return graph == 0 && a->stream != XSP_GPU_NO_ID;
}

static bool is_at_once(struct xsp_gpu *g, const struct waiting *w, const struct xsp_gpu_activity *a)
{
	struct stream_times *s = is_in_order(w, a) ? stream_of(g, a) : NULL;
	const struct times new = {a->start_ns, a->end_ns, a->kind == XSP_GPU_IS_KERNEL};
	size_t at = 0;

	if (s == NULL || new.start_ns < s->complete_ns)
		return false;
	XSP_LOWER_BOUND(at, s->count, i, s->list[i].start_ns < new.start_ns);
	for (size_t i = at; i > 0 && overlap(&s->list[i - 1], &new); i--)
		if (!may_overlap(a, &s->list[i - 1], &new))
			return true;
	for (size_t i = at; i < s->count && overlap(&s->list[i], &new); i++)
		if (!may_overlap(a, &s->list[i], &new))
			return true;
	keep(s, at, &new);
	return false;
}

enum xsp_gpu_bad xsp_gpu_bad_activity(struct xsp_gpu *g, const struct waiting *w,
				      const struct call *c, const struct xsp_gpu_activity *a)
{
	const enum xsp_gpu_bad bad = xsp_gpu_bad_times(g, a->start_ns, a->end_ns, w->came_ns);

	if (bad != XSP_GPU_TIMED || c == NULL || !xsp_gpu_is_work(a->kind))
		return bad;
	if (a->start_ns < c->start_ns && c->start_ns - a->start_ns > DISAGREE_NS)
		return XSP_GPU_BEFORE_CALL;
	g->counts.early += a->start_ns < c->start_ns;
	return is_at_once(g, w, a) ? XSP_GPU_AT_ONCE : XSP_GPU_TIMED;
}

void xsp_gpu_bad_free(struct xsp_gpu *g)
{
	for (size_t i = 0; i < g->streams.count; i++)
		free(g->streams.rows[i].list);
	xsp_tally_free(&g->streams);
}

/* ---- what is said ---- */

uint64_t xsp_gpu_bad_count(const struct xsp_gpu_counts *c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < XSP_GPU_BADS; i++)
		sum += c->bad[i];
	return sum;
}

const char *xsp_gpu_bad_text(const struct xsp_gpu_counts *c, char out[XSP_GPU_BAD_TEXT])
{
	static const char *const words[XSP_GPU_BADS] = {
		[XSP_GPU_NO_TIME] = "without a time (CUPTI could not take it)",
		[XSP_GPU_BACKWARDS] = "that end before they begin",
		[XSP_GPU_OTHER_CLOCK] = "outside of the recording (another clock)",
		[XSP_GPU_BEFORE_CALL] = "that begin before their launch",
		[XSP_GPU_AT_ONCE] = "at the same time as another one of their stream",
	};
	const uint64_t all = xsp_gpu_bad_count(c);
	char count[XSP_UNITS_SIZE];

	if (all == 0)
		return NULL;
	snprintf(out, XSP_GPU_BAD_TEXT,
		 "the times of %s GPU record%s cannot be true, and are in no total:",
		 xsp_format_count(count, all), all == 1 ? "" : "s");
	for (unsigned i = 0, said = 0; i < XSP_GPU_BADS; i++)
		if (c->bad[i] > 0)
			xsp_join(out, XSP_GPU_BAD_TEXT, said++ > 0 ? ", " : " ", "%s %s",
				 xsp_format_count(count, c->bad[i]), words[i]);
	return out;
}
