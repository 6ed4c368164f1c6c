/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * snapshot.c - writes what is kept as a capture. Events before its start are dropped, waits that began before it are
 * marked as such, and sums since the recording's beginning become sums since the start.
 */
#include "capture/kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/order.h"
#include "capture/sums.h"
#include "xsptrace/gpu.h"

#define SLICE_NS 20000000ULL /* rings are written in turn, so much time of each */
#define FLUSH_SLICES 50

struct cursor {
	size_t chunk, at; /* the ring's next event; chunk: of recent->chunks */
};

struct snapshot {
	struct xsp_recent *recent;
	struct xsp_capture_writer *to;
	const struct xsp_recent_now *now;
	uint64_t start_ns;
	struct xsp_capture_stats stats; /* at the start */
	XSP_TALLY(uint64_t)
	gpu_first; /* number of a window's first record here, by process and window */
	struct xsp_u64map base_at; /* thread → where its TIMES are in the mark's state */
	const unsigned char *base; /* the mark's state, or NULL */
	size_t base_size;
	unsigned windows; /* written */
	unsigned ring_mask; /* of events that come from no ring */
	struct cursor cursors[XSP_RECENT_RINGS];
};

/* ---- definitions ---- */

static XSP_ORDER(by_key, struct kept, XSP_RISING(key));

/* Counters of the recording so far become those since the start. */
static int put_stats(struct snapshot *s, const struct xsp_record *record)
{
	struct xsp_capture_stats stats;

	memcpy(&stats, record + 1, sizeof(stats));
	xsp_stats_take(&stats, &s->stats);
	stats.lost_names += s->recent->names_lost;
	return xsp_capture_put_stats(s->to, &stats);
}

static int put_one(struct snapshot *s, const struct xsp_record *record)
{
	struct xsp_capture_window w;

	if (record->type == XSP_RECORD_STATS)
		return put_stats(s, record);
	if (record->type != XSP_RECORD_WINDOW)
		return xsp_capture_put_record(s->to, record);
	memcpy(&w, record + 1, sizeof(w));
	if (w.end_ns <= s->start_ns)
		return 0;
	s->windows++;
	w.start_ns = w.start_ns < s->start_ns ? s->start_ns : w.start_ns;
	return xsp_capture_put_window(s->to, &w);
}

/* What others refer to comes before them. */
static const uint8_t order[] = {
	XSP_RECORD_INFO,   XSP_RECORD_PROCESS, XSP_RECORD_ENVIRONMENT, XSP_RECORD_THREAD,
	XSP_RECORD_MODULE, XSP_RECORD_MAPPING, XSP_RECORD_PROBE,       XSP_RECORD_CLOCK,
	XSP_RECORD_STATS,  XSP_RECORD_LOST,    XSP_RECORD_OPERATOR,    XSP_RECORD_WINDOW,
	XSP_RECORD_LET_GO, XSP_RECORD_NAME,    XSP_RECORD_PYTHON,      XSP_RECORD_STATS_BEFORE,
};
static_assert(sizeof(order) == XSP_RECORD_TYPES - 1, "each type once");

static int put_definitions(struct snapshot *s)
{
	int rc = 0;

	for (size_t t = 0; t < sizeof(order) && rc == 0; t++) {
		const struct kept *rows = s->recent->kept.of[order[t]].rows;
		const size_t count = s->recent->kept.of[order[t]].count;
		if (order[t] != XSP_RECORD_NAME && count > 0)
			xsp_tally_sort(&s->recent->kept.of[order[t]], by_key);
		for (size_t i = 0; i < count && rc == 0; i++)
			rc = put_one(s, rows[i].record);
	}
	const uint64_t end = s->now->end_ns,
		       from = s->now->window_ns != 0 ? s->now->window_ns : end;
	/* in a pause an empty one: that there are none means that all was on */
	if (rc < 0 || !s->now->windows || (from == end && s->windows > 0))
		return rc;
	return xsp_capture_put_window(
		s->to, &(struct xsp_capture_window){
			       .start_ns = from < s->start_ns ? s->start_ns : from, .end_ns = end});
}

/* ---- sums ---- */

static int find_base(struct snapshot *s)
{
	const struct xsp_event *e;
	int rc = 0;

	for (size_t at = 0; rc == 0 && (e = xsp_chunk_event(s->base, s->base_size, at)) != NULL;
	     at += e->size)
		if (e->kind == XSP_EVENT_TIMES)
			rc = xsp_u64map_set(&s->base_at, xsp_u64_pair(e->tgid, e->tid),
					    (uint32_t)at);
	return rc;
}

/* What it was doing then counted as if it had ended: it may have turned out a little different. */
static void make_even(struct xsp_event_times *e)
{
	const uint64_t all = e->head.time_ns - e->since_ns;
	uint64_t sum = e->running_ns + e->runnable_ns;

	for (size_t i = 0; i < XSP_WAIT_CLASSES; i++)
		sum += e->blocked_ns[i];
	e->running_ns += sum < all ? all - sum : 0;
	uint64_t more = sum > all ? sum - all : 0;
	more -= xsp_take(&e->runnable_ns, more);
	for (size_t i = 0; i < XSP_WAIT_CLASSES; i++)
		more -= xsp_take(&e->blocked_ns[i], more);
	xsp_take(&e->running_ns, more);
}

/* It was asked for a little later than the start: what the thread was doing then it had been doing. */
static void take_later(const struct snapshot *s, struct xsp_event_times *then)
{
	const uint64_t later =
		then->head.time_ns > s->start_ns ? then->head.time_ns - s->start_ns : 0;
	const uint32_t why = then->now - XSP_NOW_WAITS;

	if (then->now < XSP_NOW_WAITS)
		xsp_take(&then->running_ns, later);
	else if (why == XSP_WAIT_RUNNABLE || why >= XSP_WAIT_CLASSES)
		xsp_take(&then->runnable_ns, later);
	else
		xsp_take(&then->blocked_ns[why], later);
}

/* The thread's time since the start. False: not known. */
static bool take_base(const struct snapshot *s, struct xsp_event_times *e)
{
	const uint32_t *at = xsp_u64map_get(&s->base_at, xsp_u64_pair(e->head.tgid, e->head.tid));
	struct xsp_event_times then;

	if (e->since_ns >= s->start_ns)
		return true;
	if (at == NULL)
		return false;
	memcpy(&then, s->base + *at, sizeof(then));
	if (then.since_ns != e->since_ns || then.head.time_ns > e->head.time_ns)
		return false;
	take_later(s, &then);
	e->since_ns = s->start_ns;
	xsp_times_take(e, &then);
	make_even(e);
	/* nobody has counted the page faults until then */
	e->head.flags &= (uint8_t)~XSP_EVENT_SECTIONS;
	e->head.size = sizeof(*e);
	return true;
}

/* ---- events ---- */

static int put_times(struct snapshot *s, unsigned ring, const struct xsp_event *e)
{
	union {
		struct xsp_event_times times;
		uint64_t bytes[64];
	} copy;

	if (e->size < sizeof(copy.times) || e->size > sizeof(copy))
		return 0;
	memcpy(&copy, e, e->size);
	return take_base(s, &copy.times)
		       ? xsp_capture_put_event(s->to, ring, &copy, copy.times.head.size)
		       : 0;
}

/* It began before the start. */
static int put_wait(struct snapshot *s, unsigned ring, const struct xsp_event *e)
{
	uint64_t copy[UINT16_MAX / 8 + 1];
	struct xsp_event_wait *w = (void *)copy;

	memcpy(copy, e, e->size);
	w->left_ns = s->start_ns;
	if (w->woken_ns != 0 && w->woken_ns < s->start_ns)
		w->woken_ns = s->start_ns;
	w->short_ns = 0;
	w->flags |= XSP_WAIT_BEFORE;
	return xsp_capture_put_event(s->to, ring, w, e->size);
}

/* Agents number their records, and what came before the start is not lost. */
static int put_gpu(struct snapshot *s, unsigned ring, const struct xsp_event *e)
{
	uint64_t copy[UINT16_MAX / 8 + 1];
	struct xsp_event_gpu *batch = (void *)copy;
	struct xsp_gpu_batch_head *h = (void *)(batch + 1), head;

	if (!s->recent->cut || e->size < sizeof(*batch) + sizeof(*h) ||
	    ((const struct xsp_event_gpu *)(const void *)e)->bytes > e->size - sizeof(*batch))
		return xsp_capture_put_event(s->to, ring, e, e->size);
	memcpy(copy, e, e->size);
	if (h->head.type != XSP_GPU_BATCH_HEAD || h->head.size != sizeof(*h))
		return xsp_capture_put_event(s->to, ring, e, e->size);
	memcpy(&head, h, sizeof(head));
	const uint64_t window = xsp_u64_mix(head.window_ns ^ xsp_u64_mix(head.pid)),
		       *first = xsp_tally_row(&s->gpu_first, window, &(uint64_t){head.first});
	if (first == NULL)
		return -ENOMEM;
	if (head.window_first < *first)
		h->window_first = *first;
	return xsp_capture_put_event(s->to, ring, copy, e->size);
}

static int put_event(struct snapshot *s, unsigned ring, const struct xsp_event *e)
{
	if (e->time_ns < s->start_ns)
		return 0;
	if (e->kind == XSP_EVENT_GPU)
		return put_gpu(s, ring, e);
	if (e->kind == XSP_EVENT_TIMES)
		return put_times(s, ring, e);
	if (e->kind == XSP_EVENT_WAIT && e->size >= sizeof(struct xsp_event_wait) &&
	    ((const struct xsp_event_wait *)(const void *)e)->left_ns < s->start_ns)
		return put_wait(s, ring, e);
	return xsp_capture_put_event(s->to, ring, e, e->size);
}

/* What somebody asked for in between, without page faults, is no thread's last. */
static bool is_between(const struct xsp_event *e)
{
	return e->kind == XSP_EVENT_TIMES && !(e->flags & XSP_EVENT_SECTIONS);
}

/* The next chunk of the ring from number `i` on. */
static size_t next_of(const struct snapshot *s, unsigned ring, size_t i)
{
	while (i < s->recent->count && s->recent->chunks[i].ring != ring)
		i++;
	return i;
}

/* Events of a ring that come before the first one from `until_ns` on. 0: none is left; 1; or a negative errno. */
static int put_slice(struct snapshot *s, unsigned ring, uint64_t until_ns)
{
	struct cursor *c = &s->cursors[ring];
	int rc = 0;

	while (rc == 0 && c->chunk < s->recent->count) {
		const struct xsp_recent_chunk *chunk = &s->recent->chunks[c->chunk];
		const struct xsp_event *e = xsp_chunk_event(chunk->data, chunk->used, c->at);
		if (e != NULL && e->time_ns >= until_ns)
			return 1;
		if (e != NULL) {
			c->at += e->size;
			rc = is_between(e) ? 0 : put_event(s, ring, e);
		} else {
			c->chunk = next_of(s, ring, c->chunk + 1);
			c->at = 0;
		}
	}
	return rc;
}

static int put_chunks(struct snapshot *s)
{
	uint64_t until = s->start_ns;
	unsigned slices = 0;
	int left = 1;

	for (unsigned ring = 0; ring < XSP_RECENT_RINGS; ring++)
		s->cursors[ring].chunk = next_of(s, ring, s->recent->first);
	while (left > 0) {
		/* a target may have made up the times of its agent's events */
		until = until <= s->now->end_ns ? until + SLICE_NS : UINT64_MAX;
		left = 0;
		for (unsigned ring = 0; ring < XSP_RECENT_RINGS && left >= 0; ring++) {
			const int rc = put_slice(s, ring, until);
			left = rc < 0 ? rc : left | rc;
		}
		left = until == UINT64_MAX && left > 0 ? 0 : left;
		/* as in a recording: rings are not further apart in the file */
		if (++slices % FLUSH_SLICES == 0)
			xsp_capture_flush(s->to);
	}
	return left;
}

/* How things stood at the start, `which` kind of events, or stand now. */
static int put_state(struct snapshot *s, const void *state, size_t size, bool at_start)
{
	uint64_t copy[UINT16_MAX / 8 + 1];
	struct xsp_event *e = (void *)copy;
	const struct xsp_event *from;
	int rc = 0;

	for (size_t at = 0; rc == 0 && (from = xsp_chunk_event(state, size, at)) != NULL;
	     at += from->size) {
		if (at_start && from->kind == XSP_EVENT_TIMES)
			continue;
		memcpy(copy, from, from->size);
		if (at_start)
			e->time_ns = s->start_ns;
		rc = put_event(s, e->tid & s->ring_mask, e);
	}
	return rc;
}

/* Rings are a power of two. */
static unsigned ring_mask(const struct xsp_recent *r)
{
	unsigned mask = 0;

	for (size_t i = r->first; i < r->count; i++)
		while (r->chunks[i].ring > mask)
			mask = 2 * mask + 1;
	return mask;
}

int xsp_recent_write(struct xsp_recent *r, struct xsp_capture_writer *from,
		     struct xsp_capture_writer *to, const struct xsp_recent_now *now,
		     uint64_t *start_ns)
{
	const uint64_t bytes = r->options.bytes;
	struct snapshot s = {.recent = r, .to = to, .now = now, .start_ns = now->start_ns};

	r->options.bytes = 0; /* what is there fits */
	xsp_capture_keep_rest(from);
	r->options.bytes = bytes;
	if (r->cut && r->mark_count > 0) {
		s.start_ns = r->marks[0].time_ns;
		s.stats = r->marks[0].stats;
		s.base = r->marks[0].state;
		s.base_size = r->marks[0].size;
	} else if (r->cut) { /* sums are not known */
		s.start_ns = r->dropped_ns + 1;
	}
	s.ring_mask = ring_mask(r);
	int rc = find_base(&s);
	if (rc == 0)
		rc = put_definitions(&s);
	if (rc == 0)
		rc = put_state(&s, s.base, s.base_size, true);
	if (rc == 0)
		rc = put_chunks(&s);
	if (rc == 0)
		rc = put_state(&s, now->state, now->size, false);
	xsp_u64map_free(&s.base_at);
	xsp_tally_free(&s.gpu_first);
	*start_ns = s.start_ns;
	return rc;
}
