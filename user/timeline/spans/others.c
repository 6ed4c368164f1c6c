/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * others.c - a bound on threads. So many have rows of their own. What others do goes to a few rows, `other threads`: a
 * thread has one of them from its first event until nothing is open on its stacks any more.
 */
#include "timeline/spans/spans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "timeline/others.h"

#define EVENT_MOST 65536 /* bytes: its size has 16 bits */

struct xsp_others {
	struct xsp_u64map lane_of; /* pid and tid → row */
	uint32_t *free; /* rows that nobody has */
	size_t free_count, free_room;
	uint32_t made;
	uint64_t copy[EVENT_MOST / 8]; /* the event with the numbers of its row */
};

static int begin_others(struct xsp_timeline *t)
{
	if (t->others == NULL)
		t->others = calloc(1, sizeof(*t->others));
	return t->others != NULL ? 0 : -ENOMEM;
}

void xsp_others_free(struct xsp_timeline *t)
{
	if (t->others == NULL)
		return;
	xsp_u64map_free(&t->others->lane_of);
	free(t->others->free);
	free(t->others);
}

static bool has_own_row(const struct xsp_timeline *t, const struct xsp_event *e)
{
	const struct thread *last = t->last;

	if (t->record_count < XSP_THREADS_MOST)
		return true;
	if (last != NULL && last->tid == e->tid && last->pid == e->tgid)
		return true;
	const uint32_t *at = xsp_u64map_get(&t->record_of, e->tid);
	return at != NULL && t->records[*at]->thread_info.pid == e->tgid;
}

/* 1, or 0: all are taken. */
static int take_lane(struct xsp_timeline *t, uint64_t key, uint32_t *lane)
{
	struct xsp_others *o = t->others;
	const uint32_t *at = xsp_u64map_get(&o->lane_of, key);

	if (at != NULL) {
		*lane = *at;
		return 1;
	}
	if (o->free_count == 0 && o->made == XSP_OTHER_ROWS_MOST)
		return 0;
	*lane = o->free_count > 0 ? o->free[--o->free_count] : o->made++;
	t->counts.other_threads++;
	return xsp_u64map_set(&o->lane_of, key, *lane) < 0 ? -ENOMEM : 1;
}

int xsp_others_event(struct xsp_timeline *t, const struct xsp_event **event)
{
	const struct xsp_event *e = *event;
	const uint64_t key = xsp_u64_pair(e->tgid, e->tid);
	uint32_t lane;

	if (has_own_row(t, e))
		return 0;
	if (begin_others(t) < 0)
		return -ENOMEM;
	/* of its life only the end counts, and its sums are of one thread */
	if (e->kind == XSP_EVENT_TIMES ||
	    (e->kind == XSP_EVENT_TASK && xsp_u64map_get(&t->others->lane_of, key) == NULL))
		return XSP_OTHERS_DROP;
	int rc = take_lane(t, key, &lane);
	if (rc == 0)
		t->counts.other_dropped++;
	if (rc <= 0)
		return rc < 0 ? rc : XSP_OTHERS_DROP;
	memcpy(t->others->copy, e, e->size);
	struct xsp_event *copy = (void *)t->others->copy;
	copy->tgid = XSP_OTHERS_PID;
	copy->tid = XSP_OTHERS_PID + lane;
	*event = copy;
	return XSP_OTHERS_ROW;
}

int xsp_others_done(struct xsp_timeline *t, const struct xsp_event *e)
{
	struct xsp_others *o = t->others;
	const uint64_t key = xsp_u64_pair(e->tgid, e->tid);
	const uint32_t *lane = xsp_u64map_get(&o->lane_of, key);
	const uint32_t row = *lane;
	int rc = xsp_threads_end_idle(t, XSP_OTHERS_PID + row, e->time_ns);

	if (rc <= 0)
		return rc;
	xsp_u64map_remove(&o->lane_of, key);
	if (xsp_grow(&o->free, &o->free_room, o->free_count + 1) < 0)
		return -ENOMEM;
	o->free[o->free_count++] = row;
	return 0;
}
