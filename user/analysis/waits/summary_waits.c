/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/waits/summary_waits_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/text.h"
#include "base/u64map.h"
#include "base/units.h"
#include "catalog/wait_reasons.h"

#define MAX_LOCKS 65536U
#define MAX_PEOPLE 262144U /* holders and wakers of locks */
#define MAX_SPOTS 262144U
#define LEAST_GAP_NS 1000000U /* shorter ones are nobody's question */

int xsp_summary_waits_new(struct xsp_timeline *t, struct xsp_summary_waits **out)
{
	*out = NULL;
	if (!xsp_timeline_has_waits(t))
		return 0;
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = t;
	return 0;
}

void xsp_summary_waits_free(struct xsp_summary_waits *w)
{
	if (w == NULL)
		return;
	xsp_u64map_free(&w->member_of);
	xsp_u64map_free(&w->lock_of);
	xsp_u64map_free(&w->person_of);
	xsp_u64map_free(&w->spot_of);
	free(w->spots);
	free(w->members);
	free(w->locks);
	free(w->people);
	free(w);
}

/* ---- collecting ---- */

static int member_of(struct xsp_summary_waits *w, uint32_t pid, uint32_t tid, struct member **out)
{
	const uint64_t key = (uint64_t)pid << 32 | tid;
	const long at = xsp_u64map_index(&w->member_of, key, &w->members, &w->member_capacity,
					 w->member_count);

	if (at < 0)
		return -ENOMEM;
	*out = &w->members[at];
	if ((size_t)at == w->member_count) {
		w->member_count++;
		**out = (struct member){.pid = pid, .tid = tid};
	}
	return 0;
}

static void put_gap(struct xsp_summary_waits *w, const struct gap *gap)
{
	const uint64_t ns = gap->end_ns - gap->start_ns;
	size_t at = w->gap_count;

	while (at > 0 && w->gaps[at - 1].end_ns - w->gaps[at - 1].start_ns < ns)
		at--;
	if (ns < LEAST_GAP_NS || at == GAPS_KEPT)
		return;
	if (w->gap_count < GAPS_KEPT)
		w->gap_count++;
	memmove(&w->gaps[at + 1], &w->gaps[at], (w->gap_count - at - 1) * sizeof(*w->gaps));
	w->gaps[at] = *gap;
}

static void add_gap(struct xsp_summary_waits *w, struct member *m, uint64_t end_ns)
{
	struct gap gap = {.tid = m->tid,
			  .start_ns = m->span_end_ns,
			  .end_ns = end_ns,
			  .waited_ns = m->waited_ns};
	const uint64_t until_ns = xsp_timeline_waits_until_ns(w->timeline);

	if (m->span_end_ns == 0 || end_ns < m->span_end_ns + LEAST_GAP_NS)
		return;
	/* of what it did then nothing is known; or no span would have been */
	if ((until_ns != 0 && end_ns > until_ns) || m->waited_ns > end_ns ||
	    !xsp_timeline_recorded(w->timeline, m->span_end_ns, end_ns))
		return;
	memcpy(gap.blocked_ns, m->blocked_ns, sizeof(gap.blocked_ns));
	for (size_t i = 0; i < GAP_SPOTS; i++)
		if (m->spots[i].ns > gap.spot.ns)
			gap.spot = m->spots[i];
	m->gap_end_ns = end_ns;
	put_gap(w, &gap);
}

/* A span of another stack was open, or began or ended, in what looked like a gap: it ends where that began, if what it waited
 * until then is known, or it is none. */
static void cut_gaps(struct xsp_summary_waits *w, const struct xsp_span *span)
{
	for (size_t i = w->gap_count; i-- > 0;) {
		struct gap gap = w->gaps[i];
		if (gap.tid != span->tid || span->start_ns >= gap.end_ns ||
		    span->end_ns <= gap.start_ns)
			continue;
		w->gap_count--;
		memmove(&w->gaps[i], &w->gaps[i + 1], (w->gap_count - i) * sizeof(*w->gaps));
		gap.end_ns = span->start_ns;
		if (span->start_ns > gap.start_ns && gap.waited_ns <= span->start_ns)
			put_gap(w, &gap); /* shorter: behind this one, where all has been seen */
	}
}

int xsp_summary_waits_span(struct xsp_summary_waits *w, const struct xsp_span *span)
{
	struct member *m;
	int rc = w == NULL ? 0 : member_of(w, span->pid, span->tid, &m);

	if (w == NULL || rc < 0)
		return rc;
	m->spans++;
	if (span->start_ns < m->gap_end_ns)
		cut_gaps(w, span);
	if (span->depth > 0 || span->end_ns < m->span_end_ns)
		return 0;
	add_gap(w, m, span->start_ns);
	m->span_end_ns = span->end_ns;
	m->waited_ns = 0;
	memset(m->blocked_ns, 0, sizeof(m->blocked_ns));
	memset(m->spots, 0, sizeof(m->spots));
	return 0;
}

static int add_spot(struct xsp_summary_waits *w, uint32_t owner, bool of_lock,
		    const struct xsp_wait *wait, uint64_t ns)
{
	const uint64_t key = xsp_u64_mix((uint64_t)wait->place << 32 | wait->inside) ^
			     xsp_u64_mix(wait->kernel) ^
			     ((uint64_t)owner << 8 | (uint64_t)of_lock << 7 | wait->why);
	const uint32_t *at = xsp_u64map_get(&w->spot_of, key);

	if (wait->place == 0 || (at == NULL && w->spot_count >= MAX_SPOTS)) {
		w->spots_left_out += wait->place != 0;
		return 0;
	}
	const size_t index = at != NULL ? *at : w->spot_count;
	if (at == NULL) {
		if (xsp_grow(&w->spots, &w->spot_capacity, index + 1) < 0 ||
		    xsp_u64map_set(&w->spot_of, key, (uint32_t)index) < 0)
			return -ENOMEM;
		w->spots[index] = (struct spot){.owner = owner,
						.of_lock = of_lock,
						.why = (uint8_t)wait->why,
						.place = wait->place,
						.inside = wait->inside,
						.kernel = wait->kernel};
		w->spot_count++;
	}
	w->spots[index].ns += ns;
	w->spots[index].times++;
	return 0;
}

/* Since the last span. */
static void add_gap_spot(struct member *m, const struct xsp_wait *wait, uint64_t ns)
{
	size_t i = 0;

	while (i < GAP_SPOTS && m->spots[i].ns > 0 &&
	       (m->spots[i].place != wait->place || m->spots[i].inside != wait->inside))
		i++;
	if (i == GAP_SPOTS || wait->place == 0)
		return;
	m->spots[i].place = wait->place;
	m->spots[i].inside = wait->inside;
	m->spots[i].ns += ns;
}

static int add_person(struct xsp_summary_waits *w, uint32_t lock, uint32_t tid, enum role role,
		      uint64_t ns)
{
	const uint64_t key = ((uint64_t)lock << 2 | role) << 32 | tid;
	const uint32_t *at = xsp_u64map_get(&w->person_of, key);

	if (tid == 0 || (at == NULL && w->people_count >= MAX_PEOPLE)) {
		w->people_left_out += tid != 0;
		return 0;
	}
	const size_t index = at != NULL ? *at : w->people_count;
	if (at == NULL) {
		if (xsp_grow(&w->people, &w->people_capacity, index + 1) < 0 ||
		    xsp_u64map_set(&w->person_of, key, (uint32_t)index) < 0)
			return -ENOMEM;
		w->people[index] = (struct person){.lock = lock, .tid = tid, .role = role};
		w->people_count++;
	}
	w->people[index].ns += ns;
	w->people[index].times++;
	if (ns > w->people[index].longest_ns)
		w->people[index].longest_ns = ns;
	return 0;
}

/* Python's lock is one, whichever of its parts is waited at. -ENOMEM, or its index. */
static long new_lock(struct xsp_summary_waits *w, const struct xsp_wait *wait)
{
	struct xsp_python_lock gil;
	struct lock first = {.address = wait->argument, .pid = wait->pid};

	if (xsp_timeline_python_lock(w->timeline, wait->pid, &gil) &&
	    wait->argument - gil.address < gil.bytes) {
		first.address = gil.address;
		first.python = gil.condition_bytes;
	}
	const struct lock *lock =
		xsp_u64map_element(&w->lock_of, xsp_pair_hash(first.pid, first.address), &w->locks,
				   &w->lock_capacity, &w->lock_count, &first);
	const long index = lock != NULL ? lock - w->locks : -ENOMEM;
	if (index >= 0 && first.address != wait->argument &&
	    xsp_u64map_set(&w->lock_of, xsp_pair_hash(wait->pid, wait->argument), (uint32_t)index) <
		    0)
		return -ENOMEM;
	return index;
}

static int add_people(struct xsp_summary_waits *w, uint32_t index, const struct xsp_wait *wait,
		      uint64_t ns)
{
	const struct lock *lock = &w->locks[index];
	/* the parts of Python's lock have holders of their own, for moments */
	int rc = lock->python == 0 ? add_person(w, index, wait->owner, HOLDER, ns) : 0;

	if (rc == 0 && (lock->python == 0 || wait->argument - lock->address < lock->python))
		rc = add_person(w, index, wait->waker, WAKER, ns);
	return rc < 0 ? rc : add_person(w, index, wait->tid, WAITER, ns);
}

static int add_lock(struct xsp_summary_waits *w, const struct xsp_wait *wait)
{
	const uint32_t *at = xsp_u64map_get(&w->lock_of, xsp_pair_hash(wait->pid, wait->argument));
	const uint64_t ns = wait->woken_ns - wait->left_ns;

	if (at == NULL && w->lock_count >= MAX_LOCKS) {
		w->locks_left_out++;
		w->locks_left_out_ns += ns;
		return 0;
	}
	const long index = at != NULL ? (long)*at : new_lock(w, wait);
	if (index < 0)
		return -ENOMEM;
	struct lock *lock = &w->locks[index];
	lock->waits++;
	lock->ns += ns;
	lock->placed_ns += wait->place != 0 ? ns : 0;
	lock->python_ns += wait->python_lock ? ns : 0;
	lock->owned = lock->python == 0 && (lock->owned || wait->owner != 0);
	if (ns > lock->longest_ns) {
		lock->longest_ns = ns;
		lock->longest_left_ns = wait->left_ns;
	}
	int rc = add_people(w, (uint32_t)index, wait, ns);
	return rc < 0 ? rc : add_spot(w, (uint32_t)index, true, wait, ns);
}

int xsp_summary_waits_wait(struct xsp_summary_waits *w, const struct xsp_wait *wait)
{
	struct member *m;
	int rc = w == NULL || (wait->flags & XSP_WAIT_SHORT)
			 ? 0
			 : member_of(w, wait->pid, wait->tid, &m);

	if (w == NULL || rc < 0 || (wait->flags & XSP_WAIT_SHORT))
		return rc;
	const uint64_t ns =
		(wait->why == XSP_WAIT_RUNNABLE ? wait->back_ns : wait->woken_ns) - wait->left_ns;
	rc = add_spot(w, (uint32_t)(m - w->members), false, wait, ns);
	if (rc < 0)
		return rc;
	if (!wait->in_span) {
		m->waited_ns = wait->back_ns;
		add_gap_spot(m, wait, ns);
		m->blocked_ns[wait->why] += wait->woken_ns - wait->left_ns;
		m->blocked_ns[XSP_WAIT_RUNNABLE] += wait->back_ns - wait->woken_ns;
	}
	return wait->why == XSP_WAIT_LOCK ? add_lock(w, wait) : 0;
}

/* ---- for who tells of them ---- */

bool xsp_waits_left_out(const struct xsp_summary_waits *w, char out[XSP_WAITS_LEFT_OUT])
{
	char count[XSP_UNITS_SIZE], time[XSP_UNITS_SIZE];
	size_t used = 0;

	if (w->locks_left_out > 0)
		used += (size_t)snprintf(out, XSP_WAITS_LEFT_OUT,
					 "%s waits (%s) were for more locks than are followed",
					 xsp_format_count(count, w->locks_left_out),
					 xsp_format_ns(time, w->locks_left_out_ns));
	if (w->people_left_out > 0)
		used += (size_t)snprintf(out + used, XSP_WAITS_LEFT_OUT - used,
					 "%sin %s waits there were more threads at locks than are "
					 "followed",
					 used > 0 ? "; " : "",
					 xsp_format_count(count, w->people_left_out));
	if (w->spots_left_out > 0)
		used += (size_t)snprintf(out + used, XSP_WAITS_LEFT_OUT - used,
					 "%s%s waits were at more places than are followed",
					 used > 0 ? "; " : "",
					 xsp_format_count(count, w->spots_left_out));
	return used > 0;
}

bool xsp_waits_member(const struct xsp_summary_waits *w, const struct xsp_timeline_thread *t,
		      uint32_t *out)
{
	const uint32_t *at = xsp_u64map_get(&w->member_of, (uint64_t)t->pid << 32 | t->tid);

	if (at != NULL)
		*out = *at;
	return at != NULL;
}

const struct person *xsp_waits_person(const struct xsp_summary_waits *w, const struct lock *lock,
				      enum role role)
{
	const struct person *most = NULL;

	for (size_t i = 0; i < w->people_count; i++) {
		const struct person *p = &w->people[i];
		if (&w->locks[p->lock] == lock && p->role == role &&
		    (most == NULL || p->ns > most->ns))
			most = p;
	}
	return most;
}

/* By owner; of each the longest first. */
static int by_owner(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	if (x->of_lock != y->of_lock)
		return x->of_lock ? 1 : -1;
	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	return x->ns > y->ns ? -1 : x->ns < y->ns;
}

size_t xsp_waits_spots(const struct xsp_summary_waits *w, uint32_t owner, bool of_lock,
		       const struct spot **spots)
{
	const struct spot wanted = {.owner = owner, .of_lock = of_lock, .ns = UINT64_MAX};
	size_t low = 0, n = 0;

	XSP_LOWER_BOUND(low, w->spot_count, i, by_owner(&w->spots[i], &wanted) < 0);
	*spots = w->spots + low;
	while (low + n < w->spot_count && w->spots[low + n].owner == owner &&
	       w->spots[low + n].of_lock == of_lock)
		n++;
	return n;
}

size_t xsp_waits_thread_spots(const struct xsp_summary_waits *w,
			      const struct xsp_timeline_thread *t, const struct spot **spots)
{
	uint32_t at;

	return xsp_waits_member(w, t, &at) ? xsp_waits_spots(w, at, false, spots) : 0;
}

/* What came after the last span of each thread is a gap as well. */
static void add_last_gaps(struct xsp_summary_waits *w)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(w->timeline, &times);

	for (size_t i = 0; i < count; i++) {
		uint32_t at;
		if (!xsp_waits_member(w, times[i].thread, &at))
			continue;
		add_gap(w, &w->members[at], times[i].until_ns);
		w->members[at].span_end_ns = 0; /* once */
	}
}

void xsp_waits_end(struct xsp_summary_waits *w)
{
	add_last_gaps(w);
	if (w->gap_count > GAPS_SHOWN)
		w->gap_count = GAPS_SHOWN;
	if (w->spot_count > 0)
		qsort(w->spots, w->spot_count, sizeof(*w->spots), by_owner);
}

static int by_ns(const void *a, const void *b)
{
	const struct lock *const *x = a, *const *y = b;

	if ((*x)->owned != (*y)->owned)
		return (*x)->owned ? -1 : 1;
	return (*x)->ns > (*y)->ns ? -1 : (*x)->ns < (*y)->ns;
}

const struct lock **xsp_waits_locks(const struct xsp_summary_waits *w)
{
	return xsp_sorted(w->locks, sizeof(*w->locks), w->lock_count, by_ns);
}
