/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/waits/summary_waits_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/search.h"
#include "base/rows/order.h"
#include "base/text.h"
#include "base/units.h"
#include "catalog/wait_reasons.h"

#define MAX_LOCKS 65536U
#define MAX_PEOPLE 262144U /* holders and wakers of locks */
#define MAX_SPOTS 262144U
#define LEAST_GAP_NS 1000000U /* shorter gaps are not of interest */

int xsp_summary_waits_new(struct xsp_timeline *t, struct xsp_summary_waits **out)
{
	*out = NULL;
	if (!xsp_timeline_has_waits(t))
		return 0;
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = t;
	(*out)->locks.tally.most = MAX_LOCKS;
	(*out)->people.tally.most = MAX_PEOPLE;
	(*out)->spots.tally.most = MAX_SPOTS;
	return 0;
}

void xsp_summary_waits_free(struct xsp_summary_waits *w)
{
	if (w == NULL)
		return;
	xsp_tally_free(&w->members);
	xsp_tally_free(&w->locks);
	xsp_tally_free(&w->people);
	xsp_tally_free(&w->spots);
	free(w);
}

/* ---- collecting ---- */

/* Returns NULL if out of memory. */
static struct member *member_of(struct xsp_summary_waits *w, uint32_t pid, uint32_t tid)
{
	return xsp_tally_row(&w->members, (uint64_t)pid << 32 | tid,
			     &(struct member){.pid = pid, .tid = tid});
}

static uint64_t length(const struct gap *gap)
{
	return gap->end_ns - gap->start_ns;
}

static XSP_ORDER(by_length, struct gap, XSP_COMPARE(length(y), length(x)));

static void put_gap(struct xsp_summary_waits *w, const struct gap *gap)
{
	if (length(gap) >= LEAST_GAP_NS)
		XSP_RANK(w->gaps, &w->gap_count, GAPS_KEPT, gap, by_length);
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
	/* Not known what it did then, or whether it had spans then: no gap. */
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

/* A span of another stack overlaps what looked like a gap. The gap then ends where the span began,
 * if its waits up to then are known. Otherwise it is dropped. */
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
			/* Shorter now, so it goes after i, where all gaps have been seen. */
			put_gap(w, &gap);
	}
}

int xsp_summary_waits_span(struct xsp_summary_waits *w, const struct xsp_span *span)
{
	struct member *m = w != NULL ? member_of(w, span->pid, span->tid) : NULL;

	if (m == NULL)
		return w == NULL ? 0 : -ENOMEM;
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

	if (wait->place == 0)
		return 0;
	struct spot *spot = xsp_tally_row(&w->spots, key,
					  &(struct spot){.owner = owner,
							 .of_lock = of_lock,
							 .why = (uint8_t)wait->why,
							 .place = wait->place,
							 .inside = wait->inside,
							 .kernel = wait->kernel});
	if (spot == NULL)
		return w->spots.tally.error;
	spot->ns += ns;
	spot->times++;
	return 0;
}

/* Notes a place where the thread waited since its last span. */
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
	const uint64_t key = xsp_waits_person_key(lock, role, tid);

	if (tid == 0)
		return 0;
	struct person *p = xsp_tally_row(&w->people, key,
					 &(struct person){.lock = lock, .tid = tid, .role = role});
	if (p == NULL)
		return w->people.tally.error;
	p->ns += ns;
	p->times++;
	p->longest_ns = ns > p->longest_ns ? ns : p->longest_ns;
	return 0;
}

/* All parts of Python's lock count as one lock. NULL: over the limit, or out of memory. */
static struct lock *lock_of(struct xsp_summary_waits *w, const struct xsp_wait *wait)
{
	const uint64_t key = xsp_pair_hash(wait->pid, wait->argument);
	struct lock first = {.address = wait->argument, .pid = wait->pid};
	struct lock *lock = xsp_tally_find(&w->locks, key);
	struct xsp_python_lock gil;

	if (lock != NULL)
		return lock;
	if (xsp_timeline_python_lock(w->timeline, wait->pid, &gil) &&
	    wait->argument - gil.address < gil.bytes) {
		first.address = gil.address;
		first.python = gil.condition_bytes;
	}
	lock = xsp_tally_row(&w->locks, xsp_pair_hash(first.pid, first.address), &first);
	if (lock != NULL && first.address != wait->argument &&
	    xsp_tally_alias(&w->locks, key, lock) < 0)
		return NULL;
	return lock;
}

static int add_people(struct xsp_summary_waits *w, uint32_t index, const struct xsp_wait *wait,
		      uint64_t ns)
{
	const struct lock *lock = &w->locks.rows[index];
	/* The parts of Python's lock are held on their own only for moments. */
	int rc = lock->python == 0 ? add_person(w, index, wait->owner, HOLDER, ns) : 0;

	if (rc == 0 && (lock->python == 0 || wait->argument - lock->address < lock->python))
		rc = add_person(w, index, wait->waker, WAKER, ns);
	return rc < 0 ? rc : add_person(w, index, wait->tid, WAITER, ns);
}

static int add_lock(struct xsp_summary_waits *w, const struct xsp_wait *wait)
{
	const uint64_t ns = wait->woken_ns - wait->left_ns;
	struct lock *lock = lock_of(w, wait);

	if (lock == NULL) {
		w->locks_left_out_ns += ns;
		return w->locks.tally.error;
	}
	lock->waits++;
	lock->ns += ns;
	lock->placed_ns += wait->place != 0 ? ns : 0;
	lock->python_ns += wait->python_lock ? ns : 0;
	lock->owned = lock->python == 0 && (lock->owned || wait->owner != 0);
	if (ns > lock->longest_ns) {
		lock->longest_ns = ns;
		lock->longest_left_ns = wait->left_ns;
	}
	const uint32_t index = xsp_tally_index(&w->locks, lock);
	const int rc = add_people(w, index, wait, ns);
	return rc < 0 ? rc : add_spot(w, index, true, wait, ns);
}

int xsp_summary_waits_wait(struct xsp_summary_waits *w, const struct xsp_wait *wait)
{
	if (w == NULL || (wait->flags & XSP_WAIT_SHORT))
		return 0;
	struct member *m = member_of(w, wait->pid, wait->tid);
	if (m == NULL)
		return -ENOMEM;
	const uint64_t ns =
		(wait->why == XSP_WAIT_RUNNABLE ? wait->back_ns : wait->woken_ns) - wait->left_ns;
	const int rc = add_spot(w, xsp_tally_index(&w->members, m), false, wait, ns);
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

/* ---- for reports ---- */

bool xsp_waits_left_out(const struct xsp_summary_waits *w, char out[XSP_WAITS_LEFT_OUT])
{
	char count[XSP_UNITS_SIZE], time[XSP_UNITS_SIZE];

	out[0] = '\0';
	if (w->locks.tally.left_out > 0)
		xsp_join(out, XSP_WAITS_LEFT_OUT, "; ",
			 "%s waits (%s) were for more locks than are followed",
			 xsp_format_count(count, w->locks.tally.left_out),
			 xsp_format_ns(time, w->locks_left_out_ns));
	if (w->people.tally.left_out > 0)
		xsp_join(out, XSP_WAITS_LEFT_OUT, "; ",
			 "in %s waits there were more threads at locks than are followed",
			 xsp_format_count(count, w->people.tally.left_out));
	if (w->spots.tally.left_out > 0)
		xsp_join(out, XSP_WAITS_LEFT_OUT, "; ",
			 "%s waits were at more places than are followed",
			 xsp_format_count(count, w->spots.tally.left_out));
	return out[0] != '\0';
}

bool xsp_waits_member(const struct xsp_summary_waits *w, const struct xsp_timeline_thread *t,
		      uint32_t *out)
{
	const struct member *m = xsp_tally_find(&w->members, (uint64_t)t->pid << 32 | t->tid);

	if (m != NULL)
		*out = xsp_tally_index(&w->members, m);
	return m != NULL;
}

const struct person *xsp_waits_person(const struct xsp_summary_waits *w, const struct lock *lock,
				      enum role role, uint32_t but)
{
	const struct person *most = NULL;

	for (size_t i = 0; i < w->people.count; i++) {
		const struct person *p = &w->people.rows[i];
		if (&w->locks.rows[p->lock] == lock && p->role == role && p->tid != but &&
		    (most == NULL || p->ns > most->ns))
			most = p;
	}
	return most;
}

/* By owner; for each, the longest first. */
static XSP_ORDER(by_owner, struct spot, XSP_RISING(of_lock) ?: XSP_RISING(owner) ?: XSP_FALLING(ns));

size_t xsp_waits_spots(const struct xsp_summary_waits *w, uint32_t owner, bool of_lock,
		       const struct spot **spots)
{
	const struct spot wanted = {.owner = owner, .of_lock = of_lock, .ns = UINT64_MAX};
	size_t low = 0, n = 0;

	XSP_LOWER_BOUND(low, w->spots.count, i, by_owner(&w->spots.rows[i], &wanted) < 0);
	*spots = w->spots.rows + low;
	while (low + n < w->spots.count && (*spots)[n].owner == owner &&
	       (*spots)[n].of_lock == of_lock)
		n++;
	return n;
}

size_t xsp_waits_thread_spots(const struct xsp_summary_waits *w,
			      const struct xsp_timeline_thread *t, const struct spot **spots)
{
	uint32_t at;

	return xsp_waits_member(w, t, &at) ? xsp_waits_spots(w, at, false, spots) : 0;
}

/* Time after a thread's last span is a gap as well. */
static void add_last_gaps(struct xsp_summary_waits *w)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(w->timeline, &times);

	for (size_t i = 0; i < count; i++) {
		uint32_t at;
		if (!xsp_waits_member(w, times[i].thread, &at))
			continue;
		add_gap(w, &w->members.rows[at], times[i].until_ns);
		w->members.rows[at].span_end_ns = 0; /* only once */
	}
}

void xsp_waits_end(struct xsp_summary_waits *w)
{
	add_last_gaps(w);
	if (w->gap_count > GAPS_SHOWN)
		w->gap_count = GAPS_SHOWN;
	xsp_tally_sort(&w->spots, by_owner);
}

static XSP_ORDER_POINTERS(by_ns, struct lock, XSP_FALLING(owned) ?: XSP_FALLING(ns));

const struct lock **xsp_waits_locks(const struct xsp_summary_waits *w)
{
	return xsp_sorted(w->locks.rows, w->locks.count, by_ns);
}
