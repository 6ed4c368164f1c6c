/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_locks.c - threads that block each other at a lock, or at Python's (GIL). */
#include "analysis/rules/account_part.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/names/hot_code.h"
#include "analysis/waits/summary_waits_private.h"
#include "catalog/dear_calls.h"

#define IDLE_MOST 0.3

/* Is it idle for a good part of its time? Then without the lock it would wait for work instead, and gain nothing. */
static bool is_idle(const struct xsp_rule_context *c, const struct xsp_account_family *f)
{
	const int64_t ns = xsp_part_waited_ns(c, f, XSP_WAIT_LOCK) +
			   xsp_part_waited_ns(c, f, XSP_WAIT_POLL) +
			   xsp_part_waited_ns(c, f, XSP_ACCOUNT_CLIENT);

	return (double)ns > IDLE_MOST * (double)xsp_part_wanted_ns(f);
}

/* The lock that threads waited longest for, at the place if that is known; NULL: there is none. */
static const struct lock *lock_at(const struct xsp_summary_waits *w,
				  const struct xsp_account_place *p)
{
	const struct lock *longest = NULL;

	for (size_t i = 0; p == NULL && i < w->locks.count; i++)
		if (w->locks.rows[i].owned &&
		    (longest == NULL || w->locks.rows[i].ns > longest->ns))
			longest = &w->locks.rows[i];
	for (size_t i = 0; p != NULL && i < w->spots.count; i++) {
		const struct spot *s = &w->spots.rows[i];
		bool here = false;
		for (size_t k = 0; s->of_lock && !here && k < p->count; k++)
			here = p->rows[k].place == s->place;
		if (here && (longest == NULL || w->locks.rows[s->owner].ns > longest->ns))
			longest = &w->locks.rows[s->owner];
	}
	return longest;
}

/* At a lock of Python's, or another one whose holder is not known: who lets it go has held it. */
struct lock_texts { /* the finding has them until it is finished */
	char who[128], address[40];
};
static void put_holder(const struct xsp_rule_context *c, struct xsp_part_finding *f,
		       const struct xsp_account_part *p, struct lock_texts *t)
{
	const struct xsp_summary_waits *w = xsp_rule_summary(c)->waits;
	const struct lock *lock = w != NULL ? lock_at(w, p->place) : NULL;
	const struct person *holder =
		lock != NULL ? xsp_waits_person(w, lock, lock->owned ? HOLDER : WAKER, 0) : NULL;

	if (lock == NULL)
		return;
	snprintf(t->address, sizeof(t->address), "0x%" PRIx64, lock->address);
	xsp_finding_count(&f->finding, "waits", "waits", lock->waits);
	xsp_finding_ns(&f->finding, "max_ns", "longest", lock->longest_ns);
	xsp_finding_text(&f->finding, "address", "address", t->address);
	f->finding.at_ns = lock->longest_left_ns;
	f->finding.for_ns = lock->longest_ns;
	if (holder == NULL)
		return;
	xsp_waits_thread(c->timeline, holder->tid, t->who, sizeof(t->who));
	xsp_finding_text(&f->finding, "holder", lock->owned ? "held most by" : "released most by",
			 t->who);
	xsp_finding_flag(&f->finding, "owned", lock->owned);
}

static void find_lock(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	struct xsp_part_finding f;
	struct lock_texts texts;

	if ((p->row == NULL || p->row->why != XSP_WAIT_LOCK) && is_idle(c, p->family))
		return;
	xsp_part_begin(c, p, &f);
	put_holder(c, &f, p, &texts);
	xsp_part_finish(c, &f);
}

/* A worker of concurrent/futures/thread.py that waits for work: one that has some may wake the next. */
static bool asks_for_work(const char *place)
{
	return xsp_is_python_function(place, "thread.py _worker");
}

/* Do threads at that place block each other at a lock of Python's? */
static bool fights_for(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		       const struct xsp_account_row *row, unsigned why)
{
	const struct xsp_summary_waits *w = xsp_rule_summary(c)->waits;

	if (row->place == 0 || !xsp_part_waits(c, f, row, why) ||
	    asks_for_work(xsp_timeline_name(c->timeline, row->place - 1)))
		return false;
	for (size_t i = 0; i < w->spots.count; i++) {
		const struct spot *s = &w->spots.rows[i];
		const struct lock *lock = s->of_lock ? &w->locks.rows[s->owner] : NULL;
		if (lock != NULL && s->place == row->place && lock->python_ns > 0 &&
		    xsp_rule_is_fought_for(w, lock))
			return true;
	}
	return false;
}

#define PYTHON_LOCK_PART 0.9

/* Where one thread always waits and another always wakes, the second gives the first its work. */
bool xsp_rule_is_fought_for(const struct xsp_summary_waits *w, const struct lock *lock)
{
	uint64_t both = 0, all = 0;

	if ((double)lock->python_ns < PYTHON_LOCK_PART * (double)lock->placed_ns)
		return false;
	for (size_t i = 0; i < w->people.count; i++) {
		const struct person *p = &w->people.rows[i];
		if (&w->locks.rows[p->lock] != lock || p->role != WAKER)
			continue;
		all += p->times;
		const uint64_t waits = xsp_waits_person_key(p->lock, WAITER, p->tid);
		both += xsp_tally_find(&w->people, waits) != NULL ? p->times : 0;
	}
	return 2 * both > all;
}

static bool is_blocked(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		       const struct xsp_account_row *row, unsigned why)
{
	return xsp_part_waits(c, f, row, why) || xsp_part_waits(c, f, row, XSP_ACCOUNT_MONITOR);
}

int xsp_rule_lock(const struct xsp_rule_context *c)
{
	const struct xsp_summary_waits *w = xsp_rule_summary(c)->waits;
	int rc = xsp_part_find(c, is_blocked, XSP_ACCOUNT_MUTEX, c->threshold, find_lock);
	bool python = false;

	for (size_t i = 0; w != NULL && i < w->locks.count; i++)
		python |= w->locks.rows[i].python_ns > 0;
	if (rc == 0 && python)
		rc = xsp_part_find(c, fights_for, XSP_WAIT_LOCK, c->threshold, find_lock);
	return rc;
}

/* Does the thread that gives them their results share its work with others? */
static bool is_one_of_many(const struct xsp_rule_context *c, const struct xsp_account_family *of)
{
	const struct xsp_account_family *f;
	const size_t count = xsp_rule_families(c, &f);

	for (size_t i = 0; i < count; i++)
		if (f[i].pid == of->pid && f[i].tid == of->server)
			return f[i].members != 1;
	return true;
}

static void find_server(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	struct xsp_part_finding f;
	char who[128];

	xsp_part_begin(c, p, &f);
	xsp_waits_thread(c->timeline, p->family->server, who, sizeof(who));
	f.finding.title =
		"[subject|{subject:400} waits][!subject|threads wait] for results that one thread gives to all of them, {server}: {share} of {of}";
	f.finding.advice =
		"have several threads do that work (max_workers, a pool), or less of it: {server} does it for one after the other";
	xsp_finding_text(&f.finding, "server", "results of", who);
	xsp_part_finish(c, &f);
}

#define POOL_MEMBERS 3U
#define PASSED 0.8

/* They wait for something that others of them have, one after the other: a pool of connections, a semaphore. Who waits for work
 * is woken by others than its own kind, and who stands at a barrier together with all. */
static void find_pool(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	const struct xsp_account_family *f = p->family;
	const char *name =
		p->place != NULL ? xsp_timeline_name(c->timeline, p->place->name - 1) : NULL;

	if (f->members > 1 && f->server != 0 && !is_one_of_many(c, f)) {
		find_server(c, p);
		return;
	}
	if (f->members >= POOL_MEMBERS && 2 * f->woken_ns > (uint64_t)p->ns &&
	    (double)f->passed_ns >= PASSED * (double)f->woken_ns &&
	    !xsp_rule_has_found(c->report, "lock", name))
		xsp_part_found(c, p);
}

int xsp_rule_pool(const struct xsp_rule_context *c)
{
	return xsp_part_find(c, xsp_part_waits, XSP_WAIT_LOCK, c->threshold, find_pool);
}

#define HELPER_MOST 0.1

static bool has_place(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		      const char *const *files, size_t count)
{
	for (size_t i = 0; i < f->count; i++)
		for (size_t k = 0; f->places[i].name != 0 && k < count; k++)
			if (strncmp(xsp_timeline_name(c->timeline, f->places[i].name - 1), files[k],
				    strlen(files[k])) == 0)
				return true;
	return false;
}

/* Is it a thread that a pool of processes keeps for itself? It waits in Python's library, and so do others of the pool's. */
static bool is_of_pool(const struct xsp_rule_context *c, const struct xsp_account_family *of)
{
	static const char *const files[] = {"pool.py:", "connection.py:", "selectors.py:"};
	const struct xsp_account_family *f;
	const size_t count = xsp_rule_families(c, &f);
	bool pool = false;

	for (size_t i = 0; i < count; i++)
		pool = pool || (f[i].pid == of->pid && has_place(c, &f[i], files, 2));
	return pool && has_place(c, of, files, 3);
}

/* Does it mostly wait for what comes from outside of the process, but for Python's lock? Who sent that waits for an answer. What
 * comes to a pool's own threads by pipes is from its workers. */
static bool is_asked(const struct xsp_rule_context *c, const struct xsp_account_family *f)
{
	static const unsigned outside[] = {XSP_WAIT_NETWORK, XSP_ACCOUNT_CLIENT, XSP_WAIT_POLL,
					   XSP_WAIT_PIPE};
	const size_t count = is_of_pool(c, f) ? 2 : sizeof(outside) / sizeof(outside[0]);
	const int64_t others = (int64_t)f->wait_ns - xsp_part_waited_ns(c, f, XSP_ACCOUNT_GIL);
	int64_t ns = 0;

	for (size_t i = 0; i < count; i++)
		ns += xsp_part_waited_ns(c, f, outside[i]);
	return ns > 0 && 2 * ns > others;
}

/* A thread that does little beside others (of a queue, of a pool) holds nobody up, unless it is asked from outside. */
static bool is_helper(const struct xsp_rule_context *c, const struct xsp_account_family *f)
{
	return f->pid != f->tid && f != xsp_part_shown(c) &&
	       (double)f->cpu_ns < HELPER_MOST * (double)xsp_part_wanted_ns(f) && !is_asked(c, f);
}

/* Has another family of the process waited for a greater part of its time? That one is reported. */
static bool others_wait_more(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	const struct xsp_account_family *f;
	const size_t count = xsp_rule_families(c, &f);

	for (size_t i = 0; i < count; i++) {
		const struct xsp_account_part other =
			xsp_part_of(c, &f[i], xsp_part_waits, XSP_ACCOUNT_GIL);
		if (f[i].pid == p->family->pid && !is_helper(c, &f[i]) &&
		    xsp_part_share(&other) > xsp_part_share(p))
			return true;
	}
	return false;
}

/* The thread that wakes the next one has held Python's lock. */
static void find_gil(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	const struct xsp_summary_waits *w = xsp_rule_summary(c)->waits;
	const struct xsp_hot_code *h = xsp_rule_state(c, "hot_code");
	const struct person *holder = NULL;
	/* it wakes others, too, but does not wait for itself */
	const uint32_t waiter = p->family->members == 1 ? p->family->tid : 0;
	char who[128], its[128];
	struct xsp_part_finding f;

	if (others_wait_more(c, p) || is_helper(c, p->family))
		return;
	xsp_part_begin(c, p, &f);
	if (waiter != 0) {
		xsp_waits_thread(c->timeline, waiter, its, sizeof(its));
		xsp_finding_text(&f.finding, "thread", "thread", its);
	}
	for (size_t i = 0; w != NULL && i < w->locks.count && holder == NULL; i++)
		if (w->locks.rows[i].python != 0 && w->locks.rows[i].pid == p->family->pid)
			holder = xsp_waits_person(w, &w->locks.rows[i], WAKER, waiter);
	if (holder != NULL) {
		xsp_waits_thread(c->timeline, holder->tid, who, sizeof(who));
		xsp_finding_text(&f.finding, "holder", "released most by", who);
		xsp_finding_text(&f.finding, "holds_at", "which runs most at",
				 h != NULL ? xsp_hot_line_of(h, holder->tid) : NULL);
	}
	xsp_part_finish(c, &f);
}

int xsp_rule_gil(const struct xsp_rule_context *c)
{
	const struct xsp_capture_process *processes;
	const size_t count = xsp_capture_processes(c->reader, &processes);
	struct xsp_python_lock gil;
	bool known = false;

	for (size_t i = 0; i < count; i++)
		known = known || xsp_timeline_python_lock(c->timeline, processes[i].pid, &gil);
	return known ? xsp_part_find(c, xsp_part_waits, XSP_ACCOUNT_GIL, c->threshold, find_gil)
		     : XSP_RULE_NO_DATA;
}
