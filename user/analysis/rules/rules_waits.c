/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_waits.c - locks, processors that were busy, and pages that were not there: --waits. */
#include "analysis/rules/rules_private.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names/hot_code.h"
#include "analysis/compare/statistics.h"
#include "analysis/summary_report.h"
#include "analysis/waits/summary_waits_private.h"
#include "base/text.h"
#include "base/u64map.h"
#include "base/units.h"

#define LOCKS_LOOKED_AT 100 /* those that were waited for longest */

static const struct xsp_summary_waits *waits_of(const struct xsp_rule_context *c)
{
	const struct xsp_summary_analysis *a = xsp_rule_state(c, "summary");

	return a->summary->waits;
}

/* ---- locks ---- */

/* How long threads waited while it was known who held it. */
static uint64_t held_ns(const struct xsp_summary_waits *w, const struct lock *lock)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < w->people.count; i++)
		if (&w->locks.rows[w->people.rows[i].lock] == lock &&
		    w->people.rows[i].role == HOLDER)
			ns += w->people.rows[i].ns;
	return ns;
}

static uint64_t time_of(const struct xsp_rule_context *c, uint32_t tid)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(c->timeline, &times);
	uint64_t ns = 0;

	for (size_t i = 0; i < count; i++)
		if (times[i].thread->tid == tid)
			ns += times[i].until_ns - times[i].since_ns;
	return ns;
}

/* What a thread's waits are a share of: a thread that was there for a moment only is compared with all of the time. */
static uint64_t time_compared(const struct xsp_rule_context *c, uint32_t tid, bool *its_own)
{
	const uint64_t own = time_of(c, tid), all = xsp_rule_waits_ns(c);

	*its_own = xsp_rule_was_there(c, own);
	return *its_own ? own : all;
}

/* Of a lock of Python's nobody can say who holds it; but who wakes the next one has had it. */
static void find_lock(const struct xsp_rule_context *c, const struct lock *lock,
		      const struct person *waiter, double share, bool its_own)
{
	const struct xsp_summary_waits *w = waits_of(c);
	const struct person *holder = xsp_waits_person(w, lock, lock->owned ? HOLDER : WAKER);
	const struct spot *spots;
	const bool placed = xsp_waits_spots(w, (uint32_t)(lock - w->locks.rows), true, &spots) > 0;
	char who[128], by[128], place[420], title[900], advice[900], address[40];
	char doubt[XSP_DOUBT_SIZE];

	xsp_waits_thread(w, waiter->tid, who, sizeof(who));
	xsp_waits_thread(w, holder->tid, by, sizeof(by));
	snprintf(address, sizeof(address), "lock 0x%" PRIx64, lock->address);
	snprintf(place, sizeof(place), "%.400s",
		 placed ? xsp_timeline_name(c->timeline, spots[0].place - 1) : address);
	snprintf(title, sizeof(title),
		 "%s waits %.1f %% of %s time for a lock that others hold%s%s", who, 100 * share,
		 its_own ? "its" : "the recorded", placed ? ", at " : "", placed ? place : "");
	snprintf(advice, sizeof(advice),
		 "hold %s%s for less time, split it, or share less: %s %s it most%s",
		 placed ? "the lock of " : "", place, by, lock->owned ? "holds" : "lets go of",
		 placed ? "" : " (--wait-stacks shows where)");
	struct xsp_report_section *f = xsp_rule_found(
		c,
		(struct xsp_report_finding){
			.subject = placed ? place : NULL,
			.title = title,
			.advice = advice,
			.uncertain = xsp_rule_doubt(
				c, XSP_DOUBT_LOST | XSP_DOUBT_WAITS | XSP_DOUBT_LOCKS, doubt),
			.share = share,
			.from_ns = lock->longest_left_ns,
			.to_ns = lock->longest_left_ns + lock->longest_ns},
		true);
	xsp_report_value(f, "thread_ns", "it waited", XSP_UNIT_NS, xsp_cell_integer(waiter->ns));
	xsp_report_value(f, "total_ns", "all threads", XSP_UNIT_NS, xsp_cell_integer(lock->ns));
	xsp_report_value(f, "waits", "waits", XSP_UNIT_COUNT, xsp_cell_integer(lock->waits));
	xsp_report_value(f, "max_ns", "longest", XSP_UNIT_NS, xsp_cell_integer(lock->longest_ns));
	xsp_report_value(f, "holder", lock->owned ? "held most by" : "let go of most by",
			 XSP_UNIT_TEXT, xsp_cell_text(by));
	if (placed && spots[0].inside != spots[0].place)
		xsp_report_value(
			f, "inside", "in", XSP_UNIT_TEXT,
			xsp_cell_text(xsp_timeline_name(c->timeline, spots[0].inside - 1)));
	xsp_report_value(f, "address", "address", XSP_UNIT_TEXT, xsp_cell_text(address + 5));
}

#define PYTHON_LOCK_PART 0.9

/*
 * Is it a lock of Python's for which threads are in each other's way? They want it, wherever that is known, and most often one
 * that has waited for it itself lets it go. (Where one thread waits and another wakes, one gives the other something to do.)
 */
static bool is_fought_for(const struct xsp_summary_waits *w, const struct lock *lock)
{
	uint64_t both = 0, all = 0;

	if ((double)lock->python_ns < PYTHON_LOCK_PART * (double)lock->placed_ns)
		return false;
	for (size_t i = 0; i < w->people.count; i++) {
		const struct person *p = &w->people.rows[i];
		if (&w->locks.rows[p->lock] != lock || p->role != WAKER)
			continue;
		all += p->times;
		for (size_t j = 0; j < w->people.count; j++)
			if (w->people.rows[j].lock == p->lock && w->people.rows[j].role == WAITER &&
			    w->people.rows[j].tid == p->tid)
				both += p->times;
	}
	return 2 * both > all;
}

static bool is_contended(const struct xsp_summary_waits *w, const struct lock *lock)
{
	return lock->owned ? 2 * held_ns(w, lock) > lock->ns
			   : lock->python_ns > 0 && is_fought_for(w, lock);
}

/* A thread that waits where nobody holds anything has nothing to do: a condition variable, a queue. */
int xsp_rule_lock(const struct xsp_rule_context *c)
{
	const struct xsp_summary_waits *w = waits_of(c);
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
	bool their_own; /* time */
	uint32_t first; /* the one that waited longest */
	uint64_t most_ns;
};

#define GIL_WAITS 20 /* who has it gives it away each 5 ms: fewer waits are an accident */

/* Threads that wait for it for so much of their time, without the longest wait; the others are idle, or seldom in its
 * way. */
static struct waiters waiters_of(const struct xsp_rule_context *c, const struct lock *lock)
{
	const struct xsp_summary_waits *w = waits_of(c);
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
/* Who lets go of it has had it: "worker (4243) in 35 % of the waits, most at fight.py:7 count". */
static bool holder_of(const struct xsp_rule_context *c, const struct lock *lock,
		      char out[HOLDER_TEXT])
{
	const struct xsp_summary_waits *w = waits_of(c);
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

/* Did the process's threads wait for CPUs for longer than they had any? */
static bool is_starved(const struct xsp_rule_context *c, uint32_t pid)
{
	uint64_t running, runnable;

	xsp_rule_cpu_of(c, pid, &running, &runnable);
	return runnable > running;
}

static void find_gil(const struct xsp_rule_context *c, const struct lock *lock,
		     const struct waiters *sum)
{
	const double share = xsp_rule_share(sum->ns, sum->time_ns);
	const struct xsp_timeline_thread *process = xsp_timeline_thread(c->timeline, lock->pid);
	char title[400], who[128], holder[HOLDER_TEXT], doubt[XSP_DOUBT_SIZE];
	const char *comm = process != NULL ? process->comm : "the process";

	const char *uncertain =
		xsp_rule_doubt(c, XSP_DOUBT_LOST | XSP_DOUBT_WAITS | XSP_DOUBT_LOCKS, doubt);

	if (uncertain == NULL && is_starved(c, lock->pid))
		uncertain =
			"its threads could run and had no CPU for longer than they had one: who "
			"had the lock may have waited for that";
	xsp_waits_thread(waits_of(c), sum->first, who, sizeof(who));
	snprintf(title, sizeof(title),
		 "%" PRIu64 " thread%s of %.64s wait%s %.1f %% of %s time for Python's lock (GIL)",
		 sum->threads, sum->threads == 1 ? "" : "s", comm, sum->threads == 1 ? "s" : "",
		 100 * share,
		 !sum->their_own     ? "the recorded"
		 : sum->threads == 1 ? "its"
				     : "their");
	struct xsp_report_section *f = xsp_rule_found(
		c,
		(struct xsp_report_finding){
			.subject = comm,
			.title = title,
			.advice =
				"one thread at a time runs Python: put the work into processes "
				"(multiprocessing, ProcessPoolExecutor), into calls that let go of "
				"the lock (NumPy, PyTorch, I/O), or into fewer threads; a thread "
				"that must answer soon waits for up to sys.getswitchinterval() "
				"each time",
			.uncertain = uncertain,
			.share = share,
			.from_ns = lock->longest_left_ns,
			.to_ns = lock->longest_left_ns + lock->longest_ns},
		true);
	xsp_report_value(f, "total_ns", "they waited", XSP_UNIT_NS, xsp_cell_integer(sum->ns));
	xsp_report_value(f, "threads", "threads", XSP_UNIT_COUNT, xsp_cell_integer(sum->threads));
	xsp_report_value(f, "thread", "longest", XSP_UNIT_TEXT, xsp_cell_text(who));
	xsp_report_value(f, "thread_ns", "which waited", XSP_UNIT_NS,
			 xsp_cell_integer(sum->most_ns));
	if (holder_of(c, lock, holder))
		xsp_report_value(f, "holder", "let go of most by", XSP_UNIT_TEXT,
				 xsp_cell_text(holder));
}

int xsp_rule_gil(const struct xsp_rule_context *c)
{
	const struct xsp_summary_waits *w = waits_of(c);
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

/* ---- what threads of one name did not get ---- */

#define FAMILY_SIZE 80

struct group {
	char name[FAMILY_SIZE];
	uint32_t first; /* one of them, as the process sees it */
	uint64_t threads, time_ns, ns, running_ns;
};

/* "worker-*" of "worker-12", "w*" of "w3": where threads of a pool are numbered. */
static void family_of(const char *name, char out[FAMILY_SIZE])
{
	size_t end = strlen(name);

	while (end > 0 && isdigit((unsigned char)name[end - 1]))
		end--;
	const bool numbered = end > 0 && name[end] != '\0';
	snprintf(out, FAMILY_SIZE, "%.*s%s", numbered ? (int)end : FAMILY_SIZE - 1, name,
		 numbered ? "*" : "");
}

/* By name: threads that come and go are one, and so are those of a pool. The caller's to free; NULL: out of memory. */
static struct group *group(const struct xsp_rule_context *c,
			   uint64_t (*of)(const struct xsp_thread_times *), size_t *count)
{
	const struct xsp_thread_times *times;
	const size_t n = xsp_timeline_times(c->timeline, &times);
	struct group *groups = calloc(n + 1, sizeof(*groups));
	struct xsp_u64map index = {0};

	*count = 0;
	for (size_t i = 0; groups != NULL && i < n; i++) {
		char family[FAMILY_SIZE];
		family_of(times[i].thread->comm, family);
		const uint64_t hash = xsp_u64_mix(xsp_text_hash(family, strlen(family)));
		const uint32_t *known = xsp_u64map_get(&index, hash);
		const size_t at = known != NULL ? *known : *count;
		if (known == NULL && xsp_u64map_set(&index, hash, (uint32_t)at) < 0) {
			free(groups);
			groups = NULL;
			break;
		}
		*count += known == NULL;
		/* python3 is a name of many threads as well */
		if (groups[at].threads == 0)
			snprintf(groups[at].name, FAMILY_SIZE, "%s", times[i].thread->comm);
		else if (strcmp(groups[at].name, times[i].thread->comm) != 0)
			snprintf(groups[at].name, FAMILY_SIZE, "%s", family);
		groups[at].first = times[i].thread->ns_tid;
		groups[at].threads++;
		groups[at].time_ns += times[i].until_ns - times[i].since_ns;
		groups[at].running_ns += times[i].running_ns;
		groups[at].ns += of(&times[i]);
	}
	xsp_u64map_free(&index);
	return groups;
}

/* A rule of threads: `found` is told of each group that the share is reached in. */
static int find_groups(const struct xsp_rule_context *c,
		       uint64_t (*of)(const struct xsp_thread_times *),
		       void (*found)(const struct xsp_rule_context *, const struct group *, double))
{
	size_t count = 0;
	struct group *groups = waits_of(c) != NULL ? group(c, of, &count) : NULL;
	const uint64_t watched = xsp_rule_waits_ns(c);

	if (groups == NULL)
		return waits_of(c) == NULL ? XSP_RULE_NO_DATA : -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct group *g = &groups[i];
		/* threads that were there for a moment only are compared with all of the time */
		const uint64_t time = g->time_ns > watched ? g->time_ns : watched;
		const double share = xsp_rule_share(g->ns, time);
		if (share > 0 && share >= c->threshold)
			found(c, g, share);
	}
	free(groups);
	return 0;
}

static uint64_t runnable_ns(const struct xsp_thread_times *t)
{
	return t->runnable_ns;
}

static uint64_t fault_ns(const struct xsp_thread_times *t)
{
	return t->blocked_ns[XSP_WAIT_FAULT];
}

static uint64_t disk_ns(const struct xsp_thread_times *t)
{
	return t->blocked_ns[XSP_WAIT_DISK];
}

static void threads_text(const struct group *g, char out[160])
{
	if (g->threads == 1)
		snprintf(out, 160, "thread %.64s", g->name);
	else
		snprintf(out, 160, "%" PRIu64 " threads %.64s", g->threads, g->name);
}

static struct xsp_report_section *find_group(const struct xsp_rule_context *c,
					     const struct group *g, double share, const char *title,
					     const char *advice)
{
	char doubt[XSP_DOUBT_SIZE];
	struct xsp_report_section *f = xsp_rule_found(
		c,
		(struct xsp_report_finding){.subject = g->name,
					    .title = title,
					    .advice = advice,
					    .uncertain = xsp_rule_doubt(c, XSP_DOUBT_WAITS, doubt),
					    .share = share},
		true);

	xsp_report_value(f, "total_ns", "in all", XSP_UNIT_NS, xsp_cell_integer(g->ns));
	xsp_report_value(f, "running_ns", "on CPU", XSP_UNIT_NS, xsp_cell_integer(g->running_ns));
	xsp_report_value(f, "threads", "threads", XSP_UNIT_COUNT, xsp_cell_integer(g->threads));
	return f;
}

/* Where one of them waited so for longest. */
static void add_place(const struct xsp_rule_context *c, const struct group *g,
		      enum xsp_wait_class why, struct xsp_report_section *f)
{
	const struct xsp_summary_waits *w = waits_of(c);
	const struct spot *longest = NULL;
	char family[FAMILY_SIZE], other[FAMILY_SIZE];

	family_of(g->name, family);
	for (size_t i = 0; i < w->spots.count; i++) {
		const struct spot *s = &w->spots.rows[i];
		if (s->of_lock || s->why != why || (longest != NULL && s->ns <= longest->ns))
			continue;
		const struct xsp_timeline_thread *t =
			xsp_timeline_thread(c->timeline, w->members.rows[s->owner].tid);
		family_of(t != NULL ? t->comm : "", other);
		if (strcmp(family, other) == 0)
			longest = s;
	}
	if (longest != NULL)
		xsp_report_value(f, "place", "longest at", XSP_UNIT_TEXT,
				 xsp_cell_text(xsp_timeline_name(c->timeline, longest->place - 1)));
}

/* How many CPUs what is recorded took together. */
static double cpus_of(const struct xsp_rule_context *c)
{
	const struct xsp_thread_times *times;
	const size_t n = xsp_timeline_times(c->timeline, &times);
	uint64_t ns = 0, time_ns = xsp_rule_waits_ns(c);

	for (size_t i = 0; i < n; i++) {
		const uint64_t there = times[i].until_ns - times[i].since_ns;
		ns += times[i].running_ns;
		time_ns = there > time_ns ? there : time_ns;
	}
	return xsp_rule_share(ns, time_ns);
}

/* Who took less than one is held back by others, or by what it may use. */
#define ONE_CPU 0.9

static void found_runnable(const struct xsp_rule_context *c, const struct group *g, double share)
{
	char who[160], title[320], advice[400];
	const double cpus = cpus_of(c);

	threads_text(g, who);
	snprintf(title, sizeof(title), "%s could run and had no CPU for %.1f %% of the time", who,
		 100 * share);
	if (cpus < ONE_CPU)
		snprintf(advice, sizeof(advice),
			 "all that is recorded took %.2f CPUs together: other programs had the "
			 "rest, "
			 "or it may not use more: keep those off these CPUs, and look at its "
			 "affinity (taskset -pc %" PRIu32 ") and the container's CPU limit%s",
			 cpus, g->first,
			 g->threads > 1
				 ? "; threads that may use few CPUs only are in each other's way"
				 : "");
	else
		snprintf(advice, sizeof(advice),
			 "there is more to run than CPUs (what is recorded took %.2f together): "
			 "start fewer threads (OMP_NUM_THREADS, num_workers, intra-op threads), "
			 "lift the container's CPU limit, or keep other programs off these CPUs",
			 cpus);
	find_group(c, g, share, title, advice);
}

static void found_waiting(const struct xsp_rule_context *c, const struct group *g, double share,
			  enum xsp_wait_class why, const char *what, const char *advice)
{
	char who[160], title[320];

	threads_text(g, who);
	snprintf(title, sizeof(title), "%s %s for %s for %.1f %% of the time", who,
		 g->threads == 1 ? "waits" : "wait", what, 100 * share);
	add_place(c, g, why, find_group(c, g, share, title, advice));
}

static void found_faults(const struct xsp_rule_context *c, const struct group *g, double share)
{
	found_waiting(c, g, share, XSP_WAIT_FAULT, "pages of memory",
		      "pages come from disk or swap, or memory is cleared again and again: keep "
		      "and reuse buffers, read files ahead, use huge pages, or give the machine "
		      "more memory");
}

static void found_disk(const struct xsp_rule_context *c, const struct group *g, double share)
{
	found_waiting(c, g, share, XSP_WAIT_DISK, "the disk",
		      "make fewer and larger reads and writes, fewer fsync (one for many "
		      "records), keep files open and what was read, or leave it to a thread that "
		      "nobody waits for");
}

int xsp_rule_disk(const struct xsp_rule_context *c)
{
	return find_groups(c, disk_ns, found_disk);
}

int xsp_rule_runnable(const struct xsp_rule_context *c)
{
	return find_groups(c, runnable_ns, found_runnable);
}

/* What needs no disk does not wait: the kernel finds and clears the page on the thread's own time. */
static void find_storm(const struct xsp_rule_context *c, const struct xsp_fault_samples *s)
{
	const double share = xsp_rule_share(s->ns, s->all_ns);
	/* what a process that hardly runs does on its CPU is no loss of time */
	const uint64_t time_ns = xsp_rule_samples_ns(c);
	const double whole = s->all_ns > time_ns ? 1 : xsp_rule_share(s->all_ns, time_ns);
	char title[500], doubt[XSP_DOUBT_SIZE];
	double low, high;

	if (s->function == NULL || s->samples < XSP_SAMPLES_LEAST)
		return;
	xsp_share_interval(share, (double)s->samples, &low, &high);
	if (low * whole < c->threshold)
		return;
	snprintf(title, sizeof(title),
		 "page faults take %.1f %% of the time on CPUs, most of it in %.300s", 100 * share,
		 s->function);
	struct xsp_report_section *f = xsp_rule_found(
		c,
		(struct xsp_report_finding){
			.severity = xsp_rule_severity(low * whole),
			.subject = s->function,
			.title = title,
			.advice =
				"the same memory is taken from the kernel and given back again and "
				"again (mmap and munmap, large mallocs, fork), or more and more is "
				"taken: keep and reuse buffers, raise malloc's M_MMAP_THRESHOLD "
				"and M_TRIM_THRESHOLD, or use huge pages",
			.uncertain = xsp_rule_doubt(c, XSP_DOUBT_SAMPLES, doubt),
			.share = share * whole},
		false);
	xsp_report_value(f, "total_ns", "in all", XSP_UNIT_NS, xsp_cell_integer(s->ns));
	xsp_report_value(f, "running_ns", "on CPU", XSP_UNIT_NS, xsp_cell_integer(s->all_ns));
}

int xsp_rule_page_faults(const struct xsp_rule_context *c)
{
	const struct xsp_summary_analysis *a = xsp_rule_state(c, "summary");
	const struct xsp_fault_samples faults = xsp_summary_samples_faults(a->summary->samples);

	find_storm(c, &faults);
	const int rc = find_groups(c, fault_ns, found_faults);
	return rc == XSP_RULE_NO_DATA && faults.all_ns > 0 ? 0 : rc;
}
