/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_locks.c - threads that block each other at a lock, or at Python's own: --waits. */
#include "analysis/rules/rules_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/names/hot_code.h"
#include "analysis/waits/summary_waits_private.h"
#include "base/rows/u64map.h"

#define LOCKS_LOOKED_AT 100 /* the locks with the longest waits */

/* ---- locks ---- */

/* How long threads waited while the holder was known. */
static uint64_t held_ns(const struct xsp_summary_waits *w, const struct lock *lock)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < w->people.count; i++)
		if (&w->locks.rows[w->people.rows[i].lock] == lock &&
		    w->people.rows[i].role == HOLDER)
			ns += w->people.rows[i].ns;
	return ns;
}

/* The time that a thread's waits are a share of. For a short-lived thread it is all of the time. */
static uint64_t time_compared(const struct xsp_rule_context *c, uint32_t tid, bool *its_own)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(c->timeline, &times);
	uint64_t own = 0;

	for (size_t i = 0; i < count; i++)
		if (times[i].thread->tid == tid)
			own += times[i].until_ns - times[i].since_ns;
	*its_own = xsp_rule_was_there(c, own);
	return *its_own ? own : xsp_rule_waits_ns(c);
}

/* The holder of one of Python's locks is not known, but the thread that wakes the next waiter
 * has held it. */
static void find_lock(const struct xsp_rule_context *c, const struct lock *lock,
		      const struct person *waiter, double share, bool its_own)
{
	const struct xsp_summary_waits *w = xsp_rule_summary(c)->waits;
	const struct person *holder = xsp_waits_person(w, lock, lock->owned ? HOLDER : WAKER);
	const struct spot *spot;
	const bool placed = xsp_waits_spots(w, (uint32_t)(lock - w->locks.rows), true, &spot) > 0;
	char who[128], by[128], place[420], address[40];
	struct xsp_rule_finding f = {.subject = placed ? place : NULL,
				     .part.share = share,
				     .at_ns = lock->longest_left_ns,
				     .for_ns = lock->longest_ns};

	xsp_waits_thread(w, waiter->tid, who, sizeof(who));
	xsp_waits_thread(w, holder->tid, by, sizeof(by));
	snprintf(address, sizeof(address), "0x%" PRIx64, lock->address);
	snprintf(place, sizeof(place), "%.400s",
		 placed ? xsp_timeline_name(c->timeline, spot->place - 1) : "");
	xsp_finding_ns(&f, "thread_ns", "it waited", waiter->ns);
	xsp_finding_ns(&f, "total_ns", "all threads", lock->ns);
	xsp_finding_count(&f, "waits", "waits", lock->waits);
	xsp_finding_ns(&f, "max_ns", "longest", lock->longest_ns);
	xsp_finding_text(&f, "holder", lock->owned ? "held most by" : "let go of most by", by);
	if (placed && spot->inside != spot->place)
		xsp_finding_text(&f, "inside", "in",
				 xsp_timeline_name(c->timeline, spot->inside - 1));
	xsp_finding_text(&f, "address", "address", address);
	xsp_finding_text(&f, "who", NULL, who);
	xsp_finding_text(&f, "whose", NULL, its_own ? "its" : "the recorded");
	xsp_finding_flag(&f, "owned", lock->owned);
	xsp_rule_found(c, &f);
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

static bool is_contended(const struct xsp_summary_waits *w, const struct lock *lock)
{
	return lock->owned ? 2 * held_ns(w, lock) > lock->ns
			   : lock->python_ns > 0 && xsp_rule_is_fought_for(w, lock);
}

/* A thread that waits without a holder has nothing to do: a condition variable, a queue. */
int xsp_rule_lock(const struct xsp_rule_context *c)
{
	const struct xsp_summary_waits *w = xsp_rule_summary(c)->waits;
	const struct lock **locks = w != NULL ? xsp_waits_locks(w) : NULL;

	if (w == NULL || locks == NULL)
		return w == NULL ? XSP_RULE_NO_DATA : -ENOMEM;
	for (size_t i = 0; i < w->locks.count && i < LOCKS_LOOKED_AT; i++) {
		const struct person *waiter = xsp_waits_person(w, locks[i], WAITER);
		bool its_own = true;
		const double share =
			waiter != NULL ? xsp_rule_share(waiter->ns,
							time_compared(c, waiter->tid, &its_own))
				       : 0;
		if (share > 0 && share >= c->threshold && is_contended(w, locks[i]))
			find_lock(c, locks[i], waiter, share, its_own);
	}
	free(locks);
	return 0;
}

/* ---- Python's lock ---- */

struct waiters {
	uint64_t threads, ns, time_ns;
	bool their_own; /* the time */
	uint32_t first; /* the thread that waited longest */
	uint64_t most_ns;
};

#define GIL_WAITS 20 /* the holder gives the GIL away every 5 ms: fewer waits are chance */

/* The threads whose waits, without the longest one, take such a share of their time. Others are
 * idle or rarely blocked. */
static struct waiters waiters_of(const struct xsp_rule_context *c, const struct lock *lock)
{
	const struct xsp_summary_waits *w = xsp_rule_summary(c)->waits;
	struct waiters sum = {.their_own = true};

	for (size_t i = 0; i < w->people.count; i++) {
		const struct person *p = &w->people.rows[i];
		if (&w->locks.rows[p->lock] != lock || p->role != WAITER)
			continue;
		bool its_own;
		const uint64_t time = time_compared(c, p->tid, &its_own);
		if (p->times < GIL_WAITS ||
		    xsp_rule_share(p->ns - p->longest_ns, time) < c->threshold)
			continue;
		sum.threads++;
		sum.ns += p->ns;
		sum.time_ns += time;
		sum.their_own = sum.their_own && its_own;
		if (p->ns > sum.most_ns) {
			sum.most_ns = p->ns;
			sum.first = p->tid;
		}
	}
	return sum;
}

#define HOLDER_TEXT 480
/* The thread that wakes the next one has held the lock: "worker (4243) in 35 % of the waits,
 * most at fight.py:7 count". */
static bool holder_of(const struct xsp_rule_context *c, const struct lock *lock,
		      char out[HOLDER_TEXT])
{
	const struct xsp_summary_waits *w = xsp_rule_summary(c)->waits;
	const struct person *holder = xsp_waits_person(w, lock, WAKER);
	const struct xsp_hot_code *h = xsp_rule_state(c, "hot_code");
	const char *line = holder != NULL && h != NULL ? xsp_hot_line_of(h, holder->tid) : NULL;
	uint64_t all = 0;
	char who[128];

	if (holder == NULL)
		return false;
	for (size_t i = 0; i < w->people.count; i++)
		if (w->people.rows[i].lock == holder->lock && w->people.rows[i].role == WAKER)
			all += w->people.rows[i].times;
	xsp_waits_thread(w, holder->tid, who, sizeof(who));
	snprintf(out, HOLDER_TEXT, "%s, %.0f %% of the times%s%.280s", who,
		 100 * xsp_rule_share(holder->times, all), line != NULL ? "; it runs most at " : "",
		 line != NULL ? line : "");
	return true;
}

/* Were the process's threads runnable without a CPU for longer than they ran? */
static bool is_starved(const struct xsp_rule_context *c, uint32_t pid)
{
	uint64_t running, runnable;

	xsp_rule_cpu_of(c, pid, &running, &runnable);
	return runnable > running;
}

static void find_gil(const struct xsp_rule_context *c, const struct lock *lock,
		     const struct waiters *sum)
{
	const struct xsp_timeline_thread *process = xsp_timeline_thread(c->timeline, lock->pid);
	char who[128], holder[HOLDER_TEXT], doubt[XSP_DOUBT_SIZE];
	struct xsp_rule_finding f = {.subject = process != NULL ? process->comm : "the process",
				     .part.share = xsp_rule_share(sum->ns, sum->time_ns),
				     .uncertain = xsp_rule_doubt(c, c->rule->doubts, doubt),
				     .at_ns = lock->longest_left_ns,
				     .for_ns = lock->longest_ns};

	if (f.uncertain == NULL && is_starved(c, lock->pid))
		f.uncertain =
			"its threads could run and had no CPU for longer than they had one: who had the lock may have waited for that";
	xsp_waits_thread(xsp_rule_summary(c)->waits, sum->first, who, sizeof(who));
	xsp_finding_ns(&f, "total_ns", "they waited", sum->ns);
	xsp_finding_count(&f, "threads", "threads", sum->threads);
	xsp_finding_text(&f, "thread", "longest", who);
	xsp_finding_ns(&f, "thread_ns", "which waited", sum->most_ns);
	xsp_finding_text(&f, "holder", "let go of most by",
			 holder_of(c, lock, holder) ? holder : NULL);
	xsp_finding_flag(&f, "one", sum->threads == 1);
	xsp_finding_text(&f, "whose", NULL,
			 !sum->their_own     ? "the recorded"
			 : sum->threads == 1 ? "its"
					     : "their");
	xsp_rule_found(c, &f);
}

int xsp_rule_gil(const struct xsp_rule_context *c)
{
	const struct xsp_summary_waits *w = xsp_rule_summary(c)->waits;
	const struct xsp_capture_process *processes;
	const size_t count = xsp_capture_processes(c->reader, &processes);
	struct xsp_python_lock gil;
	bool known = false;

	for (size_t i = 0; w != NULL && i < count; i++)
		known = known || xsp_timeline_python_lock(c->timeline, processes[i].pid, &gil);
	for (size_t i = 0; w != NULL && i < w->locks.count; i++) {
		if (w->locks.rows[i].python == 0)
			continue;
		const struct waiters sum = waiters_of(c, &w->locks.rows[i]);
		if (sum.ns > 0)
			find_gil(c, &w->locks.rows[i], &sum);
	}
	return known ? 0 : XSP_RULE_NO_DATA;
}
