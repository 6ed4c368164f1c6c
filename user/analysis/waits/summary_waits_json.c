/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_waits_json.c - threads, locks and gaps for programs: nothing is left out but short lists' ends. */
#include "analysis/waits/summary_waits_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/search.h"
#include "catalog/wait_reasons.h"

#define PLACES_SHOWN 10 /* of a thread, of a lock */
#define PEOPLE_SHOWN 10 /* holders of a lock, and wakers */

static void put_thread(struct xsp_json_writer *j, const struct xsp_summary_waits *w, uint32_t tid)
{
	const struct xsp_timeline_thread *t = xsp_timeline_thread(w->timeline, tid);

	xsp_json_text(j, "name", t != NULL ? t->comm : NULL);
	xsp_json_number(j, "tid", t != NULL ? t->ns_tid : tid);
}

static void put_reasons(struct xsp_json_writer *j, const char *key, const uint64_t *ns)
{
	xsp_json_begin(j, key, '{');
	for (unsigned i = XSP_WAIT_RUNNABLE + 1; i < XSP_WAIT_CLASSES; i++)
		if (ns[i] > 0)
			xsp_json_number(j, xsp_wait_class_name(i), ns[i]);
	xsp_json_end(j, '{');
}

static void put_places(struct xsp_json_writer *j, const struct xsp_summary_waits *w,
		       const struct spot *s, size_t count)
{
	xsp_list_json_rows(j, "places", &xsp_waits_spot_list, "in at inside kernel? ns waits", w, s,
			   sizeof(*s), count < PLACES_SHOWN ? count : PLACES_SHOWN);
}

static void put_threads(struct xsp_json_writer *j, const struct xsp_summary_waits *w)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(w->timeline, &times);

	xsp_json_begin(j, "threads", '[');
	for (size_t i = 0; i < count; i++) {
		const struct xsp_thread_times *t = &times[i];
		const struct spot *spots = NULL;
		uint32_t at;
		const bool known = xsp_waits_member(w, t->thread, &at);
		const size_t n = known ? xsp_waits_spots(w, at, false, &spots) : 0;
		xsp_json_begin(j, NULL, '{');
		xsp_list_json(j, &xsp_waits_thread_list,
			      "name pid tid ended spans time_ns running_ns runnable_ns "
			      "minor_faults? major_faults?",
			      w, t);
		put_reasons(j, "blocked_ns", t->blocked_ns);
		put_reasons(j, "waits", t->waits);
		put_places(j, w, spots, n);
		xsp_json_end(j, '{');
	}
	xsp_json_end(j, '[');
}

static void put_people(struct xsp_json_writer *j, const struct xsp_summary_waits *w,
		       const struct person *const *people, size_t count, enum role role)
{
	size_t shown_count = 0;

	xsp_json_begin(j, role == HOLDER ? "holders" : "wakers", '[');
	for (size_t i = 0; i < count && shown_count < PEOPLE_SHOWN; i++) {
		if (people[i]->role != role)
			continue;
		xsp_json_begin(j, NULL, '{');
		put_thread(j, w, people[i]->tid);
		xsp_json_number(j, "ns", people[i]->ns);
		xsp_json_number(j, "waits", people[i]->times);
		xsp_json_end(j, '{');
		shown_count++;
	}
	xsp_json_end(j, '[');
}

/* By lock; of each those who did most first. */
static int by_lock(const void *a, const void *b)
{
	const struct person *const *x = a, *const *y = b;

	if ((*x)->lock != (*y)->lock)
		return (*x)->lock < (*y)->lock ? -1 : 1;
	return (*x)->ns > (*y)->ns ? -1 : (*x)->ns < (*y)->ns;
}

static const struct person **sort_people(const struct xsp_summary_waits *w)
{
	const struct person **sorted = calloc(w->people.count + 1, sizeof(void *));

	for (size_t i = 0; sorted != NULL && i < w->people.count; i++)
		sorted[i] = &w->people.rows[i];
	if (sorted != NULL)
		qsort(sorted, w->people.count, sizeof(*sorted), by_lock);
	return sorted;
}

static void put_lock(struct xsp_json_writer *j, const struct xsp_summary_waits *w,
		     const struct lock *l, const struct person *const *people)
{
	const uint32_t index = (uint32_t)(l - w->locks.rows);
	const struct spot *spots;
	const size_t n = xsp_waits_spots(w, index, true, &spots);
	size_t first = 0, last;
	const struct xsp_timeline_thread *t = xsp_timeline_thread(w->timeline, l->pid);
	char address[24];

	XSP_LOWER_BOUND(first, w->people.count, i, people[i]->lock < index);
	for (last = first; last < w->people.count && people[last]->lock == index; last++)
		;
	snprintf(address, sizeof(address), "0x%" PRIx64, l->address);
	xsp_json_begin(j, NULL, '{');
	xsp_json_text(j, "address", address);
	xsp_json_number(j, "pid", t != NULL ? t->ns_pid : l->pid);
	xsp_json_number(j, "waits", l->waits);
	xsp_json_number(j, "ns", l->ns);
	put_people(j, w, people + first, last - first, HOLDER);
	put_people(j, w, people + first, last - first, WAKER);
	put_places(j, w, spots, n);
	xsp_json_end(j, '{');
}

static int put_locks(struct xsp_json_writer *j, const struct xsp_summary_waits *w)
{
	const struct lock **locks = xsp_waits_locks(w);
	const struct person **people = sort_people(w);

	xsp_json_begin(j, "locks", '[');
	for (size_t i = 0; locks != NULL && people != NULL && i < w->locks.count; i++)
		put_lock(j, w, locks[i], people);
	xsp_json_end(j, '[');
	if (w->locks.tally.left_out > 0)
		xsp_json_number(j, "lock_waits_left_out", w->locks.tally.left_out);
	if (w->people.tally.left_out > 0)
		xsp_json_number(j, "lock_people_left_out", w->people.tally.left_out);
	if (w->spots.tally.left_out > 0)
		xsp_json_number(j, "wait_places_left_out", w->spots.tally.left_out);
	free(locks);
	free(people);
	return locks != NULL && people != NULL ? 0 : -ENOMEM;
}

static void put_gaps(struct xsp_json_writer *j, const struct xsp_summary_waits *w,
		     uint64_t start_ns)
{
	xsp_json_begin(j, "gaps", '[');
	for (size_t i = 0; i < w->gap_count; i++) {
		const struct gap *g = &w->gaps[i];
		const uint64_t all = g->end_ns - g->start_ns;
		uint64_t off = 0;
		for (size_t k = 0; k < XSP_WAIT_CLASSES; k++)
			off += g->blocked_ns[k];
		xsp_json_begin(j, NULL, '{');
		put_thread(j, w, g->tid);
		xsp_json_number(j, "start_ns", g->start_ns > start_ns ? g->start_ns - start_ns : 0);
		xsp_json_number(j, "time_ns", all);
		xsp_json_number(j, "running_ns", all > off ? all - off : 0);
		xsp_json_number(j, "runnable_ns", g->blocked_ns[XSP_WAIT_RUNNABLE]);
		put_reasons(j, "blocked_ns", g->blocked_ns);
		if (g->spot.place != 0)
			xsp_list_json(j, &xsp_waits_spot_list, "at inside", w, &g->spot);
		xsp_json_end(j, '{');
	}
	xsp_json_end(j, '[');
}

int xsp_summary_waits_json(struct xsp_summary_waits *w, struct xsp_capture_reader *r,
			   struct xsp_json_writer *j)
{
	uint64_t start, end;

	if (w == NULL)
		return 0;
	xsp_waits_end(w);
	xsp_capture_window(r, &start, &end);
	xsp_json_number(j, "least_wait_ns", xsp_timeline_wait_least_ns(w->timeline));
	if (xsp_timeline_waits_until_ns(w->timeline) != 0)
		xsp_json_number(j, "waits_until_ns", xsp_timeline_waits_until_ns(w->timeline));
	put_threads(j, w);
	int rc = put_locks(j, w);
	put_gaps(j, w, start);
	return rc;
}
