/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_waits_report.c - threads, where their time went, and locks as a section of a report. */
#include "analysis/waits/summary_waits_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/units.h"
#include "catalog/wait_reasons.h"

#define LOCKS_SHOWN 100 /* whose holder is looked for among all */

/* Where it waited longest, or else could run and had no CPU: "network, app.py:33 ask". */
static bool longest_at(const struct xsp_summary_waits *w, const struct xsp_timeline_thread *t,
		       char out[500])
{
	const struct spot *spots;
	const size_t count = xsp_waits_thread_spots(w, t, &spots);
	size_t at = 0;

	while (at + 1 < count && spots[at].why == XSP_WAIT_RUNNABLE)
		at++;
	if (count == 0)
		return false;
	if (spots[at].why == XSP_WAIT_RUNNABLE)
		at = 0;
	snprintf(out, 500, "%s, %.450s", xsp_wait_class_name(spots[at].why),
		 xsp_timeline_name(w->timeline, spots[at].place - 1));
	return true;
}

static void put_threads(const struct xsp_summary_waits *w, struct xsp_report_section *section)
{
	static const struct xsp_report_column columns[] = {
		{"name", "thread", XSP_UNIT_TEXT, true},
		{"tid", "tid", XSP_UNIT_NUMBER, false},
		{"time_ns", "time", XSP_UNIT_NS, false},
		{"running_ns", "on CPU", XSP_UNIT_NS, false},
		{"runnable_ns", "runnable", XSP_UNIT_NS, false},
		{"blocked_ns", "blocked", XSP_UNIT_NS, false},
		{"minor_faults", "minor faults", XSP_UNIT_COUNT, false},
		{"major_faults", "faults from disk", XSP_UNIT_COUNT, false},
		{"reasons", "in", XSP_UNIT_TEXT, false},
		{"longest_at", "longest at", XSP_UNIT_TEXT, false},
	};
	XSP_REPORT_SHAPE(analyze, shape, "threads", "threads", "threads", columns);
	const struct xsp_cell none = xsp_cell_text(NULL);
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(w->timeline, &times);
	struct xsp_report_table *t = xsp_report_table(section, &shape);

	for (size_t i = 0; i < count; i++) {
		const bool known = times[i].faults_known;
		char reasons[256], place[500];
		xsp_waits_reasons(times[i].blocked_ns, times[i].waits, 3, reasons, sizeof(reasons));
		const struct xsp_cell cells[] = {
			xsp_cell_text(times[i].thread->comm),
			xsp_cell_integer(times[i].thread->ns_tid),
			xsp_cell_integer(times[i].until_ns - times[i].since_ns),
			xsp_cell_integer(times[i].running_ns),
			xsp_cell_integer(times[i].runnable_ns),
			xsp_cell_integer(xsp_thread_blocked_ns(&times[i])),
			known ? xsp_cell_integer(times[i].minor_faults) : none,
			known ? xsp_cell_integer(times[i].major_faults) : none,
			xsp_cell_text(reasons[0] != '\0' ? reasons : NULL),
			xsp_cell_text(longest_at(w, times[i].thread, place) ? place : NULL),
		};
		xsp_report_row(t, cells);
	}
}

static void put_lock(const struct xsp_summary_waits *w, const struct lock *lock,
		     struct xsp_report_table *t)
{
	const struct person *holder = xsp_waits_person(w, lock, HOLDER);
	const struct spot *spots;
	const size_t places = xsp_waits_spots(w, (uint32_t)(lock - w->locks), true, &spots);
	char address[24], who[128];

	snprintf(address, sizeof(address), "0x%" PRIx64, lock->address);
	if (holder != NULL)
		xsp_waits_thread(w, holder->tid, who, sizeof(who));
	const struct xsp_cell cells[] = {
		xsp_cell_text(places > 0 ? xsp_timeline_name(w->timeline, spots[0].place - 1)
					 : NULL),
		xsp_cell_text(address),
		xsp_cell_integer(lock->waits),
		xsp_cell_integer(lock->ns),
		xsp_cell_integer(lock->longest_ns),
		xsp_cell_text(holder != NULL ? who : NULL),
	};
	xsp_report_row(t, cells);
}

static int put_locks(const struct xsp_summary_waits *w, struct xsp_report_section *section)
{
	static const struct xsp_report_column columns[] = {
		{"at", "waited for at", XSP_UNIT_TEXT, true},
		{"address", "address", XSP_UNIT_TEXT, false},
		{"waits", "waits", XSP_UNIT_COUNT, false},
		{"total_ns", "waited", XSP_UNIT_NS, false},
		{"max_ns", "longest", XSP_UNIT_NS, false},
		{"holder", "held most by", XSP_UNIT_TEXT, false},
	};
	XSP_REPORT_SHAPE(analyze, shape, "threads", "locks",
			 "locks; without a holder: condition variables and their like", columns);
	const struct lock **locks = xsp_waits_locks(w);
	struct xsp_report_table *t = xsp_report_table(section, &shape);

	if (locks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < w->lock_count && i < LOCKS_SHOWN; i++)
		put_lock(w, locks[i], t);
	if (w->lock_count > LOCKS_SHOWN) {
		char text[80];
		snprintf(text, sizeof(text), "of %zu locks those are shown that took longest",
			 w->lock_count);
		xsp_report_note(section, text);
	}
	char left_out[XSP_WAITS_LEFT_OUT];
	if (xsp_waits_left_out(w, left_out))
		xsp_report_note(section, left_out);
	free(locks);
	return 0;
}

int xsp_summary_waits_report(struct xsp_summary_waits *w, bool with_stacks,
			     struct xsp_report *report)
{
	if (w == NULL)
		return 0;
	struct xsp_report_section *section =
		xsp_report_section(report, "threads", "Threads and what they waited for");

	if (!with_stacks)
		xsp_report_note(section, "where they waited was not recorded: --wait-stacks does");
	xsp_waits_end(w);
	put_threads(w, section);
	return put_locks(w, section);
}
