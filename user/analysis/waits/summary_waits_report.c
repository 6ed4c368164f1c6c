/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_waits_report.c - threads and where they spent their time, locks and gaps, in reports. */
#include "analysis/waits/summary_waits_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/search.h"
#include "base/rows/order.h"
#include "base/units.h"
#include "catalog/wait_reasons.h"

#define FULL_LOCKS 100 /* in a full report: to find a lock's holder, all holders are searched */
#define PLACES_SHOWN 10 /* places of a thread or a lock in JSON */
#define PEOPLE_SHOWN 10 /* holders and wakers of a lock in JSON */
#define SPOT_THREADS 8 /* threads whose places are listed */
#define SPOTS_SHOWN 2 /* places of each */
#define SPOT_SHARE 20 /* a place with less than 1/20 of the thread's time is not listed */
#define LOCKS_SHOWN 3 /* locks with a holder, and as many others */
/* If nobody asked for waits, only the notable is shown. A thread is notable if it waited for this
 * share of its time. So are gaps and locks with a holder that took this share of all time. */
#define NOTABLE_SHARE 0.2
#define NOTABLE_LOCK_SHARE 0.05
#define NOTABLE_THREADS 5U

/* ---- threads ---- */

/* If it is, reasons get a line of their own. */
static bool is_narrow(const struct xsp_report *report)
{
	const int width = xsp_report_how(report)->width;

	return width > 0 && width < 100;
}

/* Reasons that say less than the kernel function does. */
#define TELLS_LITTLE                                                                               \
	(1U << XSP_WAIT_OTHER | 1U << XSP_WAIT_FILE | 1U << XSP_WAIT_DISK | 1U << XSP_WAIT_FAULT | \
	 1U << XSP_WAIT_MEMORY | 1U << XSP_WAIT_DEVICE)

/* " at train.py:21 train_step (in connection.py:948 wait), folio_wait_bit_common_[k]" */
static void print_spot(const struct xsp_summary_waits *w, FILE *f, const struct spot *s)
{
	char place[96], inside[96];

	xsp_printable(place, sizeof(place), xsp_timeline_name(w->timeline, s->place - 1), 60);
	fprintf(f, " at %s", place);
	if (s->inside != s->place) {
		xsp_printable(inside, sizeof(inside), xsp_timeline_name(w->timeline, s->inside - 1),
			      60);
		fprintf(f, " (in %s)", inside);
	}
	if (s->kernel != 0 && (TELLS_LITTLE >> s->why & 1)) {
		xsp_printable(inside, sizeof(inside), xsp_timeline_name(w->timeline, s->kernel - 1),
			      60);
		fprintf(f, ", %s", inside);
	}
}

static XSP_ORDER_POINTERS(by_cpu, struct xsp_thread_times,
			  XSP_COMPARE(y->running_ns + y->runnable_ns,
				      x->running_ns + x->runnable_ns)
				  ?: XSP_RISING(thread->tid));

/* A thread that waits without a span has nothing to do. */
static bool is_notable(const struct xsp_summary_waits *w, const struct xsp_thread_times *t)
{
	const double least = NOTABLE_SHARE * (double)(t->until_ns - t->since_ns);

	return (double)t->runnable_ns > least ||
	       (xsp_waits_spans(w, t->thread) > 0 &&
		(double)(t->runnable_ns + xsp_thread_blocked_ns(t)) > least);
}

/* Prints after the figures what a narrow terminal has no column for: reasons, and faults. */
static void print_rest(FILE *f, const struct xsp_thread_times *t, bool narrow)
{
	const uint64_t all_faults = t->minor_faults + t->major_faults;
	char reasons[256], faults[XSP_UNITS_SIZE];

	xsp_waits_reasons(t->blocked_ns, t->waits, 4, reasons, sizeof(reasons));
	if (narrow && reasons[0] != '\0')
		fprintf(f, "\n    in %s", reasons);
	if (narrow && all_faults > 0)
		fprintf(f, "\n    page faults: %s", xsp_format_count(faults, all_faults));
	if (t->major_faults > 0)
		fprintf(f, "%s%s page fault%s read from disk",
			narrow		     ? ", "
			: reasons[0] != '\0' ? "; "
					     : "",
			xsp_format_count(faults, t->major_faults), t->major_faults == 1 ? "" : "s");
}

static void print_spots(const struct xsp_summary_waits *w, FILE *f,
			const struct xsp_thread_times *t)
{
	const struct spot *s;
	const size_t count = xsp_waits_thread_spots(w, t->thread, &s);

	for (size_t i = 0, shown = 0, runnable = 0; i < count && shown < SPOTS_SHOWN; i++, s++) {
		char time[XSP_UNITS_SIZE];
		if (s->ns < (t->until_ns - t->since_ns) / SPOT_SHARE)
			return;
		/* A busy machine lacks CPUs everywhere: one such place is enough, or places of
		 * waits would not show. */
		if (s->why == XSP_WAIT_RUNNABLE && runnable++ > 0)
			continue;
		shown++;
		fprintf(f, "    %s %s", xsp_wait_class_name(s->why), xsp_format_ns(time, s->ns));
		print_spot(w, f, s);
		fputc('\n', f);
	}
}

/* Waits cover only the beginning. */
static void print_until(const struct xsp_summary_waits *w, FILE *f)
{
	const uint64_t first_ns =
		xsp_timeline_first_ns(w->timeline, xsp_timeline_waits_until_ns(w->timeline));
	char time[XSP_UNITS_SIZE];

	if (first_ns > 0)
		fprintf(f, "of the first %s:\n", xsp_format_ns(time, first_ns));
}

/* Places, for JSON. */
static void put_places(struct xsp_report_table *t, const struct xsp_summary_waits *w,
		       const struct spot *spots, size_t count)
{
	xsp_report_rows(xsp_list_in_row(t, &xsp_waits_places), w, spots, sizeof(*spots),
			count < PLACES_SHOWN ? count : PLACES_SHOWN);
}

/* Reasons, for JSON: "blocked_ns.lock". */
static void put_reasons(struct xsp_report_table *t, const char *key, const uint64_t *ns)
{
	char path[64];

	snprintf(path, sizeof(path), "%s.", key);
	xsp_list_row_member(t, path, xsp_cell_absent());
	for (unsigned i = XSP_WAIT_RUNNABLE + 1; i < XSP_WAIT_CLASSES; i++) {
		snprintf(path, sizeof(path), "%s.%s", key, xsp_wait_class_name(i));
		if (ns[i] > 0)
			xsp_list_row_member(t, path, xsp_cell_integer(ns[i]));
	}
}

static void put_thread(const struct xsp_summary_waits *w, struct xsp_report *report,
		       struct xsp_report_table *table, const struct xsp_thread_times *t,
		       bool with_spots)
{
	const struct spot *spots = NULL;
	const size_t count = xsp_waits_thread_spots(w, t->thread, &spots);

	xsp_report_add(table, w, t);
	if (xsp_report_form(report) == XSP_FORM_JSON) {
		put_reasons(table, "blocked_ns", t->blocked_ns);
		put_reasons(table, "waits", t->waits);
		put_places(table, w, spots, count);
	}
	if (xsp_list_in_line(report) != NULL)
		print_rest(xsp_list_in_line(report), t, is_narrow(report));
	if (xsp_list_in_line(report) != NULL && with_spots)
		print_spots(w, xsp_list_below(report), t);
}

/* `more`: threads that are not shown. */
static void print_left_out(const struct xsp_summary_waits *w, FILE *f, size_t more, bool notable)
{
	char least[XSP_UNITS_SIZE];

	if (more > 0)
		fprintf(f, "... and %zu more thread%s%s\n", more, more == 1 ? "" : "s",
			notable ? ", and what all of them waited for: --rows all" : "");
	if (xsp_timeline_wait_least_ns(w->timeline) > 0)
		fprintf(f, "waits of less than %s %s\n",
			xsp_format_ns(least, xsp_timeline_wait_least_ns(w->timeline)),
			xsp_timeline_cut_text(w->timeline) != NULL
				? "count as on CPU in a cut: the kernel's sums are of the whole recording"
				: "are in these sums, and not among those below");
	fputc('\n', f);
}

static int put_threads(const struct xsp_summary_waits *w, struct xsp_report_section *section,
		       struct xsp_report *report, bool notable)
{
	const struct xsp_thread_times *times;
	const size_t all = xsp_timeline_times(w->timeline, &times);
	const struct xsp_thread_times **sorted = calloc(all + 1, sizeof(void *));
	const bool text = xsp_report_form(report) == XSP_FORM_TEXT;
	size_t count = 0;

	if (sorted == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++)
		if (!notable || is_notable(w, &times[i]))
			sorted[count++] = &times[i];
	size_t shown_count = xsp_list_most(report, xsp_report_how(report)->top, count);
	shown_count = notable && shown_count > NOTABLE_THREADS ? NOTABLE_THREADS : shown_count;
	if (text && shown_count > 0) {
		qsort(sorted, count, sizeof(*sorted), by_cpu);
		print_until(w, xsp_list_below(report));
	}
	struct xsp_report_table *t = xsp_list_table(
		section, is_narrow(report) ? &xsp_waits_threads_narrow : &xsp_waits_threads);
	for (size_t i = 0; i < shown_count; i++)
		put_thread(w, report, t, sorted[i], i < SPOT_THREADS);
	free(sorted);
	if (text && shown_count > 0)
		print_left_out(w, xsp_list_below(report), all - shown_count, notable);
	return 0;
}

/* ---- locks, gaps ---- */

static void print_lock(const struct xsp_summary_waits *w, FILE *f, const struct lock *lock)
{
	const size_t index = (size_t)(lock - w->locks.rows);
	const struct person *holder = xsp_waits_person(w, lock, HOLDER, 0),
			    *waker = xsp_waits_person(w, lock, WAKER, 0);
	char time[XSP_UNITS_SIZE], count[XSP_UNITS_SIZE], who[128];

	fprintf(f, "%s 0x%" PRIx64 ": %s in %s wait%s",
		lock->python != 0 ? "Python's lock (GIL)"
		: lock->owned	  ? "lock"
				  : "futex",
		lock->address, xsp_format_ns(time, lock->ns), xsp_format_count(count, lock->waits),
		lock->waits == 1 ? "" : "s");
	if (holder != NULL) {
		xsp_waits_thread(w->timeline, holder->tid, who, sizeof(who));
		fprintf(f, ", held by %s in %s of it", who, xsp_format_ns(time, holder->ns));
	} else if (lock->python == 0) {
		fputs(", whose holder it does not tell (condition variables, semaphores, joins)",
		      f);
	}
	if (waker != NULL) {
		xsp_waits_thread(w->timeline, waker->tid, who, sizeof(who));
		fprintf(f, "; %s by %s %s time%s", lock->python != 0 ? "let go of" : "woken", who,
			xsp_format_count(count, waker->times), waker->times == 1 ? "" : "s");
	}
	const struct spot *s;
	if (xsp_waits_spots(w, (uint32_t)index, true, &s) > 0) {
		fputs("; waited for", f);
		print_spot(w, f, s);
	}
	fputc('\n', f);
}

static void print_locks(const struct xsp_summary_waits *w, FILE *f, const struct lock **sorted,
			bool all, uint64_t least_ns, bool *any)
{
	size_t shown_count[2] = {0, 0};

	for (size_t i = 0; i < w->locks.count; i++) {
		if (least_ns > 0 && (!sorted[i]->owned || sorted[i]->ns < least_ns))
			continue;
		if (shown_count[sorted[i]->owned]++ < LOCKS_SHOWN || all)
			print_lock(w, f, sorted[i]);
		*any = true;
	}
	static const char *const kinds[] = {"futex", "lock"};
	for (size_t k = 0; k < 2; k++)
		if (shown_count[k] > LOCKS_SHOWN && !all)
			fprintf(f, "... and %zu more %s%s\n", shown_count[k] - LOCKS_SHOWN,
				kinds[k],
				shown_count[k] - LOCKS_SHOWN == 1 ? ""
				: k == 0			  ? "es"
								  : "s");
}

/* By lock; for each, threads with the longest time first. */
static XSP_ORDER_POINTERS(by_lock, struct person, XSP_RISING(lock) ?: XSP_FALLING(ns));

/* For JSON: who held the lock, who woke waiters, and where these waited. */
static void put_lock_rows(struct xsp_report_table *t, const struct xsp_summary_waits *w,
			  const struct lock *lock, const struct person *const *people)
{
	const uint32_t index = (uint32_t)(lock - w->locks.rows);
	const struct spot *spots;
	const size_t places = xsp_waits_spots(w, index, true, &spots);
	size_t first = 0;

	XSP_LOWER_BOUND(first, w->people.count, i, people[i]->lock < index);
	for (enum role role = HOLDER; role <= WAKER; role++) {
		struct xsp_report_table *in = xsp_list_in_row(t, &xsp_waits_people[role]);
		size_t shown_count = 0;
		for (size_t i = first; i < w->people.count && people[i]->lock == index; i++)
			if (people[i]->role == role && shown_count++ < PEOPLE_SHOWN)
				xsp_report_add(in, w, people[i]);
	}
	put_places(t, w, spots, places);
}

static int put_locks(const struct xsp_summary_waits *w, struct xsp_report_section *section,
		     const struct lock **locks, enum xsp_report_form form)
{
	const bool cut = form == XSP_FORM_FULL && w->locks.count > FULL_LOCKS;
	const struct person **people =
		form == XSP_FORM_JSON ? xsp_sorted(w->people.rows, w->people.count, by_lock) : NULL;
	struct xsp_report_table *t = xsp_list_table(section, &xsp_waits_lock_list);
	char text[XSP_WAITS_LEFT_OUT];

	if (form == XSP_FORM_JSON && people == NULL)
		return -ENOMEM;
	for (size_t i = 0; t != NULL && i < (cut ? FULL_LOCKS : w->locks.count); i++) {
		xsp_report_add(t, w, locks[i]);
		if (people != NULL)
			put_lock_rows(t, w, locks[i], people);
	}
	free(people);
	if (cut)
		xsp_report_notef(section, "of %zu locks those are shown that took longest",
				 w->locks.count);
	if (xsp_waits_left_out(w, text))
		xsp_report_note(section, text);
	return 0;
}

static void put_gaps(const struct xsp_summary_waits *w, struct xsp_report_section *section)
{
	struct xsp_report_table *t = xsp_list_table(section, &xsp_waits_gaps);

	for (size_t i = 0; t != NULL && i < w->gap_count; i++) {
		xsp_report_add(t, w, &w->gaps[i]);
		put_reasons(t, "blocked_ns", w->gaps[i].blocked_ns);
	}
}

static void put_members(const struct xsp_summary_waits *w, struct xsp_report *report)
{
	const struct {
		const char *key;
		uint64_t value;
	} members[] = {
		{"waits_until_ns", xsp_timeline_waits_until_ns(w->timeline)},
		{"lock_waits_left_out", w->locks.tally.left_out},
		{"lock_people_left_out", w->people.tally.left_out},
		{"wait_places_left_out", w->spots.tally.left_out},
	};

	xsp_list_member(report, "least_wait_ns",
			xsp_cell_integer(xsp_timeline_wait_least_ns(w->timeline)));
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (members[i].value > 0)
			xsp_list_member(report, members[i].key, xsp_cell_integer(members[i].value));
}

static void print_gap(const struct xsp_summary_waits *w, FILE *f, const struct gap *g)
{
	char who[128], time[XSP_UNITS_SIZE], cpu[XSP_UNITS_SIZE], runnable[XSP_UNITS_SIZE];
	char reasons[256];

	xsp_waits_thread(w->timeline, g->tid, who, sizeof(who));
	xsp_waits_reasons(g->blocked_ns, NULL, 4, reasons, sizeof(reasons));
	fprintf(f, "without a span: %s for %s from %.3f s on: on CPU %s, runnable %s%s%s", who,
		xsp_format_ns(time, g->end_ns - g->start_ns),
		g->start_ns > w->start_ns ? (double)(g->start_ns - w->start_ns) * 1e-9 : 0.0,
		xsp_format_ns(cpu, xsp_waits_gap_running(g)),
		xsp_format_ns(runnable, g->blocked_ns[XSP_WAIT_RUNNABLE]),
		reasons[0] != '\0' ? ", " : "", reasons);
	if (g->spot.place != 0) {
		fputs("; waited", f);
		print_spot(w, f, &g->spot);
	}
	fputc('\n', f);
}

/* A wait that began before the recording has no stack and no holder here. */
static void print_stuck(const struct xsp_summary_waits *w, FILE *f)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(w->timeline, &times);

	for (size_t i = 0; i < count; i++)
		if (times[i].running_ns + times[i].runnable_ns > 0)
			return;
	if (count > 0)
		fprintf(f,
			"no thread ran: if it hangs, xsptrace dump -p %" PRIu32
			" tells where each one stands, and who holds what it waits for\n",
			times[0].thread->pid);
}

/* The lines below the table of threads. */
static void print_lines(const struct xsp_summary_waits *w, struct xsp_report *report,
			const struct lock **locks, bool notable)
{
	FILE *f = xsp_list_below(report);
	const double all = notable ? (double)xsp_timeline_watched_ns(
					     w->timeline, xsp_timeline_waits_until_ns(w->timeline))
				   : 0;
	char left_out[XSP_WAITS_LEFT_OUT];
	bool any = false;

	print_locks(w, f, locks, xsp_report_how(report)->top == 0,
		    (uint64_t)(NOTABLE_LOCK_SHARE * all), &any);
	for (size_t i = 0; i < w->gap_count; i++) {
		if ((double)(w->gaps[i].end_ns - w->gaps[i].start_ns) < NOTABLE_SHARE * all)
			continue;
		print_gap(w, f, &w->gaps[i]);
		any = true;
	}
	if (xsp_waits_left_out(w, left_out)) {
		fprintf(f, "%s\n", left_out);
		any = true;
	}
	print_stuck(w, f);
	if (any)
		fputc('\n', f);
}

int xsp_summary_waits_report(struct xsp_summary_waits *w, struct xsp_capture_reader *r,
			     struct xsp_report *report)
{
	const char *stacks = xsp_capture_info(r, "wait stacks");
	const enum xsp_report_form form = xsp_report_form(report);
	const bool notable = form == XSP_FORM_TEXT && xsp_report_how(report)->top > 0 &&
			     xsp_capture_by_default(r, "waits");
	uint64_t end;

	if (w == NULL)
		return 0;
	struct xsp_report_section *section =
		xsp_report_section(report, "threads", "Threads and what they waited for");
	if (stacks == NULL || strcmp(stacks, "off") == 0)
		xsp_report_note(section, "where they waited was not recorded: --wait-stacks does");
	xsp_waits_end(w);
	xsp_capture_window(r, &w->start_ns, &end);
	const struct lock **locks = xsp_waits_locks(w);
	if (locks == NULL)
		return -ENOMEM;
	put_members(w, report);
	int rc = put_threads(w, section, report, notable);
	if (rc == 0)
		rc = put_locks(w, section, locks, form);
	put_gaps(w, section);
	if (rc == 0 && form == XSP_FORM_TEXT)
		print_lines(w, report, locks, notable);
	free(locks);
	return rc;
}
