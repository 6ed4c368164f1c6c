/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_waits_print.c - the table of threads, and the lines on locks and gaps. */
#include "analysis/waits/summary_waits_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "catalog/wait_reasons.h"

#define SPOT_THREADS 8 /* of which it is said where they waited */
#define SPOTS_SHOWN 2 /* of each */
#define SPOT_SHARE 20 /* of less than this part of a thread's time nothing is said */
#define LOCKS_SHOWN 3 /* of those with a holder, and of the others */
/* Where nobody asked for waits, only what says something is shown: threads that waited for so much of their time, and gaps
 * and locks with a holder that took so much of all of it. */
#define NOTABLE_SHARE 0.2
#define NOTABLE_LOCK_SHARE 0.05
#define NOTABLE_THREADS 5U

/* ---- what is said of threads ---- */

/* Then reasons stand in a line of their own. */
static bool is_narrow(const struct xsp_summary_print *how)
{
	return how->width > 0 && how->width < 100;
}

/* Reasons of which the kernel's function says what it was. */
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

/* One without a span that waits has nothing to do. */
static bool is_notable(const struct xsp_summary_waits *w, const struct xsp_thread_times *t)
{
	const double least = NOTABLE_SHARE * (double)(t->until_ns - t->since_ns);

	return (double)t->runnable_ns > least ||
	       (xsp_waits_spans(w, t->thread) > 0 &&
		(double)(t->runnable_ns + xsp_thread_blocked_ns(t)) > least);
}

/* Of a thread; `last`: the reasons, which a narrow terminal has below. */
#define FIGURES 6
static const struct xsp_list_column thread_row[FIGURES + 2] = {
	{.key = "shown", .width = -26},	   {.key = "time_ns", .width = 8},
	{.key = "running_ns", .width = 8}, {.key = "runnable_ns", .width = 8},
	{.key = "blocked_ns", .width = 8}, {.key = "spans", .width = 9},
	{.key = "faults", .width = 9},	   {.key = "reasons_shown"},
};

static void print_row(const struct xsp_summary_waits *w, FILE *f, const struct xsp_thread_times *t,
		      const struct xsp_list_text *text)
{
	const bool narrow = text->count == FIGURES;
	const uint64_t all_faults = t->minor_faults + t->major_faults;
	char reasons[256], faults[XSP_UNITS_SIZE];

	xsp_waits_reasons(t->blocked_ns, t->waits, 4, reasons, sizeof(reasons));
	xsp_list_row(text, f, w, t);
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
	fputc('\n', f);
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
		/* on a busy machine it lacks a CPU everywhere: where it waits would not be told */
		if (s->why == XSP_WAIT_RUNNABLE && runnable++ > 0)
			continue;
		shown++;
		fprintf(f, "    %s %s", xsp_wait_class_name(s->why), xsp_format_ns(time, s->ns));
		print_spot(w, f, s);
		fputc('\n', f);
	}
}

/* They are of the beginning only. */
static void print_until(const struct xsp_summary_waits *w, FILE *f)
{
	const uint64_t first_ns =
		xsp_timeline_first_ns(w->timeline, xsp_timeline_waits_until_ns(w->timeline));
	char time[XSP_UNITS_SIZE];

	if (first_ns > 0)
		fprintf(f, "of the first %s:\n", xsp_format_ns(time, first_ns));
}

static int print_table(const struct xsp_summary_waits *w, FILE *f,
		       const struct xsp_summary_print *how, bool notable)
{
	const struct xsp_thread_times *times;
	const size_t all = xsp_timeline_times(w->timeline, &times);
	const struct xsp_thread_times **sorted = calloc(all + 1, sizeof(void *));
	char least[XSP_UNITS_SIZE];
	size_t count = 0, shown_count;

	if (sorted == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++)
		if (!notable || is_notable(w, &times[i]))
			sorted[count++] = &times[i];
	shown_count = how->limit > 0 && how->limit < count ? how->limit : count;
	shown_count = notable && shown_count > NOTABLE_THREADS ? NOTABLE_THREADS : shown_count;
	if (notable && shown_count == 0) {
		free(sorted);
		return 0;
	}
	qsort(sorted, count, sizeof(*sorted), by_cpu);
	print_until(w, f);
	const struct xsp_list_text text = {&xsp_waits_thread_list, thread_row,
					   is_narrow(how) ? FIGURES : FIGURES + 2, 0};
	xsp_list_head(&text, f, how->color);
	for (size_t i = 0; i < shown_count; i++) {
		print_row(w, f, sorted[i], &text);
		if (i < SPOT_THREADS)
			print_spots(w, f, sorted[i]);
	}
	free(sorted);
	if (shown_count < all)
		fprintf(f, "... and %zu more thread%s%s\n", all - shown_count,
			all - shown_count == 1 ? "" : "s",
			notable ? ", and what all of them waited for: --rows all" : "");
	if (xsp_timeline_wait_least_ns(w->timeline) > 0)
		fprintf(f, "waits of less than %s %s\n",
			xsp_format_ns(least, xsp_timeline_wait_least_ns(w->timeline)),
			xsp_timeline_cut_text(w->timeline) != NULL
				? "count as on CPU in a cut: the kernel's sums are of the whole "
				  "recording"
				: "are in these sums, and not among those below");
	fputc('\n', f);
	return 0;
}

/* ---- locks, gaps ---- */

static void print_lock(const struct xsp_summary_waits *w, FILE *f, const struct lock *lock)
{
	const size_t index = (size_t)(lock - w->locks.rows);
	const struct person *holder = xsp_waits_person(w, lock, HOLDER),
			    *waker = xsp_waits_person(w, lock, WAKER);
	char time[XSP_UNITS_SIZE], count[XSP_UNITS_SIZE], who[128];

	fprintf(f, "%s 0x%" PRIx64 ": %s in %s wait%s",
		lock->python != 0 ? "Python's lock (GIL)"
		: lock->owned	  ? "lock"
				  : "futex",
		lock->address, xsp_format_ns(time, lock->ns), xsp_format_count(count, lock->waits),
		lock->waits == 1 ? "" : "s");
	if (holder != NULL) {
		xsp_waits_thread(w, holder->tid, who, sizeof(who));
		fprintf(f, ", held by %s in %s of it", who, xsp_format_ns(time, holder->ns));
	} else if (lock->python == 0) {
		fputs(", whose holder it does not tell (condition variables, semaphores, joins)",
		      f);
	}
	if (waker != NULL) {
		xsp_waits_thread(w, waker->tid, who, sizeof(who));
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

/* *lines: how many were written. */
static int print_locks(const struct xsp_summary_waits *w, FILE *f, bool all, uint64_t least_ns,
		       size_t *lines)
{
	const struct lock **sorted = xsp_waits_locks(w);

	if (sorted == NULL)
		return -ENOMEM;
	size_t shown_count[2] = {0, 0};
	for (size_t i = 0; i < w->locks.count; i++) {
		if (least_ns > 0 && (!sorted[i]->owned || sorted[i]->ns < least_ns))
			continue;
		if (shown_count[sorted[i]->owned]++ < LOCKS_SHOWN || all)
			print_lock(w, f, sorted[i]);
	}
	free(sorted);
	*lines = shown_count[0] + shown_count[1];
	static const char *const kinds[] = {"futex", "lock"};
	for (size_t k = 0; k < 2; k++)
		if (shown_count[k] > LOCKS_SHOWN && !all)
			fprintf(f, "... and %zu more %s%s\n", shown_count[k] - LOCKS_SHOWN,
				kinds[k],
				shown_count[k] - LOCKS_SHOWN == 1 ? ""
				: k == 0			  ? "es"
								  : "s");
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
	xsp_waits_thread(w, g->tid, who, sizeof(who));
	xsp_waits_reasons(g->blocked_ns, NULL, 4, reasons, sizeof(reasons));
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

/* What waits since before the recording has no stack here, and no holder. */
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

int xsp_summary_waits_write(struct xsp_summary_waits *w, struct xsp_capture_reader *r, FILE *f,
			    const struct xsp_summary_print *how)
{
	const bool notable = how->limit > 0 && xsp_capture_by_default(r, "waits");
	uint64_t start, end;
	size_t lines = 0;

	if (w == NULL)
		return 0;
	xsp_waits_end(w);
	xsp_capture_window(r, &start, &end);
	const double all = notable ? (double)xsp_timeline_watched_ns(
					     w->timeline, xsp_timeline_waits_until_ns(w->timeline))
				   : 0;
	int rc = print_table(w, f, how, notable);
	if (rc == 0)
		rc = print_locks(w, f, how->limit == 0, (uint64_t)(NOTABLE_LOCK_SHARE * all),
				 &lines);
	for (size_t i = 0; rc == 0 && i < w->gap_count; i++) {
		if ((double)(w->gaps[i].end_ns - w->gaps[i].start_ns) < NOTABLE_SHARE * all)
			continue;
		print_gap(w, f, &w->gaps[i], start);
		lines++;
	}
	char left_out[XSP_WAITS_LEFT_OUT];
	if (rc == 0 && xsp_waits_left_out(w, left_out)) {
		fprintf(f, "%s\n", left_out);
		lines++;
	}
	print_stuck(w, f);
	if (lines > 0)
		fputc('\n', f);
	return rc;
}
