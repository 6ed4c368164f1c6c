/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/summary_waits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/u64map.h"
#include "base/units.h"
#include "catalog/wait_reasons.h"

#define MAX_LOCKS 65536U
#define MAX_PEOPLE 262144U /* holders and wakers of locks */
#define MAX_SPOTS 262144U
#define SPOT_THREADS 8 /* of which it is said where they waited */
#define SPOTS_SHOWN 2 /* of each */
#define SPOT_SHARE 20 /* of less than this part of a thread's time nothing is said */
#define GAP_SPOTS 4
#define LOCKS_SHOWN 3 /* of those with a holder, and of the others */
#define GAPS_SHOWN 3
#define LEAST_GAP_NS 1000000U /* shorter ones are nobody's question */

/* Where threads waited: struct xsp_wait. */
struct spot {
	uint32_t owner; /* index of a member, or of a lock */
	bool of_lock;
	uint8_t why;
	uint32_t place, inside;
	uint64_t ns, times;
};

/* A thread, and its time since a span was open on it. */
struct member {
	uint32_t pid, tid;
	uint64_t spans;
	uint64_t span_end_ns; /* of the last outermost one; 0: there was none */
	uint64_t blocked_ns[XSP_WAIT_CLASSES]; /* since then; RUNNABLE: all it was runnable */
	struct spot spots[GAP_SPOTS]; /* since then, the first ones */
};

struct gap {
	uint32_t tid;
	uint64_t start_ns, end_ns;
	uint64_t blocked_ns[XSP_WAIT_CLASSES];
	struct spot spot; /* where it waited longest; place 0: not known */
};

struct lock {
	uint64_t address;
	uint32_t pid;
	bool owned; /* its holder was known at least once */
	uint64_t waits, ns;
};

/* Who held a lock while others waited, or let them go on. */
struct person {
	uint32_t lock, tid;
	bool holder;
	uint64_t ns, times;
};

struct xsp_summary_waits {
	struct xsp_timeline *timeline;
	struct member *members;
	size_t member_count, member_capacity;
	struct xsp_u64map member_of;
	struct gap gaps[GAPS_SHOWN]; /* the longest first */
	size_t gap_count;
	struct lock *locks;
	size_t lock_count, lock_capacity;
	struct xsp_u64map lock_of;
	struct person *people;
	size_t people_count, people_capacity;
	struct xsp_u64map person_of;
	struct spot *spots;
	size_t spot_count, spot_capacity;
	struct xsp_u64map spot_of;
};

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
	const uint32_t *at = xsp_u64map_get(&w->member_of, key);

	if (at == NULL) {
		if (xsp_grow(&w->members, &w->member_capacity, w->member_count + 1) < 0 ||
		    xsp_u64map_set(&w->member_of, key, (uint32_t)w->member_count) < 0)
			return -ENOMEM;
		w->members[w->member_count++] = (struct member){.pid = pid, .tid = tid};
		*out = &w->members[w->member_count - 1];
		return 0;
	}
	*out = &w->members[*at];
	return 0;
}

static void take_gap(struct xsp_summary_waits *w, const struct member *m, uint64_t end_ns)
{
	struct gap gap = {.tid = m->tid, .start_ns = m->span_end_ns, .end_ns = end_ns};
	size_t at = w->gap_count;

	if (m->span_end_ns == 0 || end_ns < m->span_end_ns + LEAST_GAP_NS)
		return;
	while (at > 0 && w->gaps[at - 1].end_ns - w->gaps[at - 1].start_ns < end_ns - gap.start_ns)
		at--;
	if (at == GAPS_SHOWN)
		return;
	memcpy(gap.blocked_ns, m->blocked_ns, sizeof(gap.blocked_ns));
	for (size_t i = 0; i < GAP_SPOTS; i++)
		if (m->spots[i].ns > gap.spot.ns)
			gap.spot = m->spots[i];
	if (w->gap_count < GAPS_SHOWN)
		w->gap_count++;
	memmove(&w->gaps[at + 1], &w->gaps[at], (w->gap_count - at - 1) * sizeof(*w->gaps));
	w->gaps[at] = gap;
}

int xsp_summary_waits_span(struct xsp_summary_waits *w, const struct xsp_span *span)
{
	struct member *m;
	int rc = w == NULL ? 0 : member_of(w, span->pid, span->tid, &m);

	if (w == NULL || rc < 0)
		return rc;
	m->spans++;
	if (span->depth > 0 || span->row > 0 || span->end_ns < m->span_end_ns)
		return 0;
	take_gap(w, m, span->start_ns);
	m->span_end_ns = span->end_ns;
	memset(m->blocked_ns, 0, sizeof(m->blocked_ns));
	memset(m->spots, 0, sizeof(m->spots));
	return 0;
}

static int take_spot(struct xsp_summary_waits *w, uint32_t owner, bool of_lock,
		     const struct xsp_wait *wait, uint64_t ns)
{
	const uint64_t key = xsp_u64_mix((uint64_t)wait->place << 32 | wait->inside) ^
			     ((uint64_t)owner << 8 | (uint64_t)of_lock << 7 | wait->why);
	const uint32_t *at = xsp_u64map_get(&w->spot_of, key);

	if (wait->place == 0 || (at == NULL && w->spot_count >= MAX_SPOTS))
		return 0;
	const size_t index = at != NULL ? *at : w->spot_count;
	if (at == NULL) {
		if (xsp_grow(&w->spots, &w->spot_capacity, index + 1) < 0 ||
		    xsp_u64map_set(&w->spot_of, key, (uint32_t)index) < 0)
			return -ENOMEM;
		w->spots[index] = (struct spot){.owner = owner,
						.of_lock = of_lock,
						.why = (uint8_t)wait->why,
						.place = wait->place,
						.inside = wait->inside};
		w->spot_count++;
	}
	w->spots[index].ns += ns;
	w->spots[index].times++;
	return 0;
}

/* Since the last span. */
static void take_gap_spot(struct member *m, const struct xsp_wait *wait, uint64_t ns)
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

static int take_person(struct xsp_summary_waits *w, uint32_t lock, uint32_t tid, bool holder,
		       uint64_t ns)
{
	const uint64_t key = ((uint64_t)lock << 1 | holder) << 32 | tid;
	const uint32_t *at = xsp_u64map_get(&w->person_of, key);

	if (tid == 0 || (at == NULL && w->people_count >= MAX_PEOPLE))
		return 0;
	const size_t index = at != NULL ? *at : w->people_count;
	if (at == NULL) {
		if (xsp_grow(&w->people, &w->people_capacity, index + 1) < 0 ||
		    xsp_u64map_set(&w->person_of, key, (uint32_t)index) < 0)
			return -ENOMEM;
		w->people[index] = (struct person){.lock = lock, .tid = tid, .holder = holder};
		w->people_count++;
	}
	w->people[index].ns += ns;
	w->people[index].times++;
	return 0;
}

static int take_lock(struct xsp_summary_waits *w, const struct xsp_wait *wait)
{
	const uint64_t key = xsp_u64_mix(wait->argument) ^ wait->pid;
	const uint32_t *at = xsp_u64map_get(&w->lock_of, key);
	const uint64_t ns = wait->woken_ns - wait->left_ns;

	if (at == NULL && w->lock_count >= MAX_LOCKS)
		return 0;
	const uint32_t index = at != NULL ? *at : (uint32_t)w->lock_count;
	if (at == NULL) {
		if (xsp_grow(&w->locks, &w->lock_capacity, w->lock_count + 1) < 0 ||
		    xsp_u64map_set(&w->lock_of, key, index) < 0)
			return -ENOMEM;
		w->locks[index] = (struct lock){.address = wait->argument, .pid = wait->pid};
		w->lock_count++;
	}
	struct lock *lock = &w->locks[index];
	lock->waits++;
	lock->ns += ns;
	lock->owned = lock->owned || wait->owner != 0;
	int rc = take_person(w, index, wait->owner, true, ns);
	if (rc == 0)
		rc = take_person(w, index, wait->waker, false, ns);
	return rc < 0 ? rc : take_spot(w, index, true, wait, ns);
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
	rc = take_spot(w, (uint32_t)(m - w->members), false, wait, ns);
	if (rc < 0)
		return rc;
	if (!wait->in_span) {
		take_gap_spot(m, wait, ns);
		m->blocked_ns[wait->why] += wait->woken_ns - wait->left_ns;
		m->blocked_ns[XSP_WAIT_RUNNABLE] += wait->back_ns - wait->woken_ns;
	}
	return wait->why == XSP_WAIT_LOCK ? take_lock(w, wait) : 0;
}

/* ---- what is said of threads ---- */

#define THREAD_COLUMNS 26

/* "comm (tid)" as the process sees it. */
static size_t thread_text(const struct xsp_timeline_thread *t, uint32_t tid, char *out, size_t size)
{
	char name[64];

	xsp_printable(name, sizeof(name), t != NULL ? t->comm : "", 0);
	snprintf(out, size, "%s%s(%" PRIu32 ")", name, name[0] != '\0' ? " " : "",
		 t != NULL ? t->ns_tid : tid);
	return xsp_printable(NULL, 0, out, 0);
}

static void text_of(const struct xsp_summary_waits *w, uint32_t tid, char *out, size_t size)
{
	thread_text(xsp_timeline_thread(w->timeline, tid), tid, out, size);
}

/* "poll 2.91 s (30), lock 12 ms (4)": what took most first, at most `most` of them. `counts` may be NULL. */
static void reasons_text(const uint64_t *ns, const uint64_t *counts, size_t most, char *out,
			 size_t size)
{
	bool told[XSP_WAIT_CLASSES] = {[XSP_WAIT_RUNNABLE] = true};
	size_t at = 0;

	out[0] = '\0';
	for (size_t n = 0; n < most && at < size; n++) {
		char time[XSP_UNITS_SIZE], count[XSP_UNITS_SIZE];
		unsigned best = XSP_WAIT_RUNNABLE;
		for (unsigned i = 0; i < XSP_WAIT_CLASSES; i++)
			if (!told[i] && ns[i] > 0 && (told[best] || ns[i] > ns[best]))
				best = i;
		if (told[best])
			return;
		told[best] = true;
		at += (size_t)snprintf(out + at, size - at, "%s%s %s", at > 0 ? ", " : "",
				       xsp_wait_class_name(best), xsp_format_ns(time, ns[best]));
		if (counts != NULL && at < size)
			at += (size_t)snprintf(out + at, size - at, " (%s)",
					       xsp_format_count(count, counts[best]));
	}
}

/* " at train.py:21 train_step (in connection.py:948 wait)" */
static void print_spot(const struct xsp_summary_waits *w, FILE *f, const struct spot *s)
{
	char place[96], inside[96];

	xsp_printable(place, sizeof(place), xsp_timeline_name(w->timeline, s->place - 1), 60);
	if (s->inside == s->place) {
		fprintf(f, " at %s", place);
		return;
	}
	xsp_printable(inside, sizeof(inside), xsp_timeline_name(w->timeline, s->inside - 1), 60);
	fprintf(f, " at %s (in %s)", place, inside);
}

/* Where it waited longest, but for those that took `below` ns or more; NULL: nowhere. */
static const struct spot *spot_below(const struct xsp_summary_waits *w, size_t owner, bool of_lock,
				     const struct spot *below)
{
	const struct spot *most = NULL;

	for (size_t i = 0; i < w->spot_count; i++) {
		const struct spot *s = &w->spots[i];
		if (s->owner != owner || s->of_lock != of_lock ||
		    (below != NULL && (s->ns > below->ns || (s->ns == below->ns && s >= below))))
			continue;
		if (most == NULL || s->ns > most->ns || (s->ns == most->ns && s > most))
			most = s;
	}
	return most;
}

static uint64_t blocked_of(const struct xsp_thread_times *t)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < XSP_WAIT_CLASSES; i++)
		sum += t->blocked_ns[i];
	return sum;
}

/* ---- the table ---- */

static int by_cpu(const void *a, const void *b)
{
	const struct xsp_thread_times *const *x = a, *const *y = b;
	const uint64_t p = (*x)->running_ns + (*x)->runnable_ns,
		       q = (*y)->running_ns + (*y)->runnable_ns;

	if (p != q)
		return p > q ? -1 : 1;
	return (*x)->thread->tid < (*y)->thread->tid ? -1 : (*x)->thread->tid > (*y)->thread->tid;
}

static uint64_t spans_of(const struct xsp_summary_waits *w, const struct xsp_timeline_thread *t)
{
	const uint32_t *at = xsp_u64map_get(&w->member_of, (uint64_t)t->pid << 32 | t->tid);

	return at != NULL ? w->members[*at].spans : 0;
}

static void print_row(const struct xsp_summary_waits *w, FILE *f, const struct xsp_thread_times *t)
{
	char whole[128], name[136], all[XSP_UNITS_SIZE], running[XSP_UNITS_SIZE];
	char runnable[XSP_UNITS_SIZE], blocked[XSP_UNITS_SIZE], spans[XSP_UNITS_SIZE];
	char reasons[256];

	thread_text(t->thread, 0, whole, sizeof(whole));
	size_t columns = xsp_printable(name, sizeof(name), whole, THREAD_COLUMNS);
	reasons_text(t->blocked_ns, t->waits, 4, reasons, sizeof(reasons));
	fprintf(f, "%s%*s  %8s  %8s  %8s  %8s  %9s  %s\n", name,
		(int)(columns < THREAD_COLUMNS ? THREAD_COLUMNS - columns : 0), "",
		xsp_format_ns(all, t->until_ns - t->since_ns),
		xsp_format_ns(running, t->running_ns), xsp_format_ns(runnable, t->runnable_ns),
		xsp_format_ns(blocked, blocked_of(t)),
		xsp_format_count(spans, spans_of(w, t->thread)), reasons);
}

static void print_spots(const struct xsp_summary_waits *w, FILE *f,
			const struct xsp_thread_times *t)
{
	const uint32_t *at =
		xsp_u64map_get(&w->member_of, (uint64_t)t->thread->pid << 32 | t->thread->tid);
	const struct spot *s = at != NULL ? spot_below(w, *at, false, NULL) : NULL;

	for (size_t i = 0; i < SPOTS_SHOWN && s != NULL; i++) {
		char time[XSP_UNITS_SIZE];
		if (s->ns < (t->until_ns - t->since_ns) / SPOT_SHARE)
			return;
		fprintf(f, "    %s %s", xsp_wait_class_name(s->why), xsp_format_ns(time, s->ns));
		print_spot(w, f, s);
		fputc('\n', f);
		s = spot_below(w, *at, false, s);
	}
}

static int print_table(const struct xsp_summary_waits *w, FILE *f,
		       const struct xsp_summary_print *how)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(w->timeline, &times);
	const size_t shown = how->limit > 0 && how->limit < count ? how->limit : count;
	const struct xsp_thread_times **sorted = calloc(count + 1, sizeof(void *));
	char least[XSP_UNITS_SIZE];

	if (sorted == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sorted[i] = &times[i];
	qsort(sorted, count, sizeof(*sorted), by_cpu);
	fprintf(f, "%s%-*s  %8s  %8s  %8s  %8s  %9s  %s%s\n", how->color ? "\033[1m" : "",
		THREAD_COLUMNS, "thread", "time", "on CPU", "runnable", "blocked", "spans", "in",
		how->color ? "\033[0m" : "");
	for (size_t i = 0; i < shown; i++) {
		print_row(w, f, sorted[i]);
		if (i < SPOT_THREADS)
			print_spots(w, f, sorted[i]);
	}
	free(sorted);
	if (shown < count)
		fprintf(f, "... and %zu more thread%s\n", count - shown,
			count - shown == 1 ? "" : "s");
	if (xsp_timeline_wait_least_ns(w->timeline) > 0)
		fprintf(f, "waits of less than %s are in these sums, and not among those below\n",
			xsp_format_ns(least, xsp_timeline_wait_least_ns(w->timeline)));
	fputc('\n', f);
	return 0;
}

/* ---- locks, gaps ---- */

static int by_ns(const void *a, const void *b)
{
	const struct lock *const *x = a, *const *y = b;

	if ((*x)->owned != (*y)->owned)
		return (*x)->owned ? -1 : 1;
	return (*x)->ns > (*y)->ns ? -1 : (*x)->ns < (*y)->ns;
}

static const struct person *most_of(const struct xsp_summary_waits *w, size_t lock, bool holder)
{
	const struct person *most = NULL;

	for (size_t i = 0; i < w->people_count; i++) {
		const struct person *p = &w->people[i];
		if (p->lock == lock && p->holder == holder && (most == NULL || p->ns > most->ns))
			most = p;
	}
	return most;
}

static void print_lock(const struct xsp_summary_waits *w, FILE *f, const struct lock *lock)
{
	const size_t index = (size_t)(lock - w->locks);
	const struct person *holder = most_of(w, index, true), *waker = most_of(w, index, false);
	char time[XSP_UNITS_SIZE], count[XSP_UNITS_SIZE], who[128];

	fprintf(f, "%s 0x%" PRIx64 ": %s in %s wait%s", lock->owned ? "lock" : "futex",
		lock->address, xsp_format_ns(time, lock->ns), xsp_format_count(count, lock->waits),
		lock->waits == 1 ? "" : "s");
	if (holder != NULL) {
		text_of(w, holder->tid, who, sizeof(who));
		fprintf(f, ", held by %s in %s of it", who, xsp_format_ns(time, holder->ns));
	} else {
		fputs(", whose holder it does not tell (condition variables, semaphores, joins)",
		      f);
	}
	if (waker != NULL) {
		text_of(w, waker->tid, who, sizeof(who));
		fprintf(f, "; woken by %s %s time%s", who, xsp_format_count(count, waker->times),
			waker->times == 1 ? "" : "s");
	}
	const struct spot *s = spot_below(w, index, true, NULL);
	if (s != NULL) {
		fputs("; waited for", f);
		print_spot(w, f, s);
	}
	fputc('\n', f);
}

static int print_locks(const struct xsp_summary_waits *w, FILE *f)
{
	const struct lock **sorted = calloc(w->lock_count + 1, sizeof(void *));

	if (sorted == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < w->lock_count; i++)
		sorted[i] = &w->locks[i];
	qsort(sorted, w->lock_count, sizeof(*sorted), by_ns);
	size_t shown[2] = {0, 0};
	for (size_t i = 0; i < w->lock_count; i++)
		if (shown[sorted[i]->owned]++ < LOCKS_SHOWN)
			print_lock(w, f, sorted[i]);
	free(sorted);
	return 0;
}

static void print_gap(const struct xsp_summary_waits *w, FILE *f, const struct gap *g,
		      uint64_t start_ns)
{
	char who[128], time[XSP_UNITS_SIZE], cpu[XSP_UNITS_SIZE], runnable[XSP_UNITS_SIZE];
	char reasons[256];
	uint64_t off = 0, all = g->end_ns - g->start_ns;

	for (size_t i = 0; i < XSP_WAIT_CLASSES; i++)
		off += g->blocked_ns[i];
	text_of(w, g->tid, who, sizeof(who));
	reasons_text(g->blocked_ns, NULL, 4, reasons, sizeof(reasons));
	fprintf(f, "without a span: %s for %s from %.3f s on: on CPU %s, runnable %s%s%s", who,
		xsp_format_ns(time, all),
		g->start_ns > start_ns ? (double)(g->start_ns - start_ns) * 1e-9 : 0.0,
		xsp_format_ns(cpu, all > off ? all - off : 0),
		xsp_format_ns(runnable, g->blocked_ns[XSP_WAIT_RUNNABLE]),
		reasons[0] != '\0' ? ", " : "", reasons);
	if (g->spot.place != 0) {
		fputs("; waited", f);
		print_spot(w, f, &g->spot);
	}
	fputc('\n', f);
}

/* What came after the last span of each thread is a gap as well. */
static void take_last_gaps(struct xsp_summary_waits *w)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(w->timeline, &times);

	for (size_t i = 0; i < count; i++) {
		const struct xsp_timeline_thread *t = times[i].thread;
		const uint32_t *at = xsp_u64map_get(&w->member_of, (uint64_t)t->pid << 32 | t->tid);
		if (at == NULL)
			continue;
		take_gap(w, &w->members[*at], times[i].until_ns);
		w->members[*at].span_end_ns = 0; /* once */
	}
}

int xsp_summary_waits_write(struct xsp_summary_waits *w, struct xsp_capture_reader *r, FILE *f,
			    const struct xsp_summary_print *how)
{
	uint64_t start, end;
	int rc = w == NULL ? 0 : print_table(w, f, how);

	if (w == NULL || rc < 0)
		return rc;
	rc = print_locks(w, f);
	xsp_capture_window(r, &start, &end);
	take_last_gaps(w);
	for (size_t i = 0; i < w->gap_count; i++)
		print_gap(w, f, &w->gaps[i], start);
	if (w->lock_count + w->gap_count > 0)
		fputc('\n', f);
	return rc;
}
