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

#define THREAD(name, value)                                                                        \
	XSP_REPORT_CELL(name, struct xsp_summary_waits, struct xsp_thread_times, value)
#define OF(member) XSP_FIELD(struct xsp_thread_times, member)
#define IF(known, member) XSP_FIELD_IF(struct xsp_thread_times, member, known)

THREAD(thread_name, xsp_cell_text(row->thread->comm));
THREAD(thread_tid, xsp_cell_integer(row->thread->ns_tid));
THREAD(thread_time, xsp_cell_integer(row->until_ns - row->since_ns));
THREAD(thread_blocked, xsp_cell_integer(xsp_thread_blocked_ns(row)));
THREAD(thread_longest, xsp_cell_text(longest_at(of, row->thread, at->text) ? at->text : NULL));

static struct xsp_cell thread_reasons(struct xsp_report_at *at)
{
	const struct xsp_thread_times *t = at->row;

	xsp_waits_reasons(t->blocked_ns, t->waits, 3, at->text, 256);
	return xsp_cell_text(at->text[0] != '\0' ? at->text : NULL);
}

static const struct xsp_report_column thread_columns[] = {
	{"name", "thread", XSP_UNIT_TEXT, true, XSP_BY(thread_name)},
	{"tid", "tid", XSP_UNIT_NUMBER, false, XSP_BY(thread_tid)},
	{"time_ns", "time", XSP_UNIT_NS, false, XSP_BY(thread_time)},
	{"running_ns", "on CPU", XSP_UNIT_NS, false, OF(running_ns)},
	{"runnable_ns", "runnable", XSP_UNIT_NS, false, OF(runnable_ns)},
	{"blocked_ns", "blocked", XSP_UNIT_NS, false, XSP_BY(thread_blocked)},
	{"minor_faults", "minor faults", XSP_UNIT_COUNT, false, IF(faults_known, minor_faults)},
	{"major_faults", "faults from disk", XSP_UNIT_COUNT, false, IF(faults_known, major_faults)},
	{"reasons", "in", XSP_UNIT_TEXT, false, XSP_BY(thread_reasons)},
	{"longest_at", "longest at", XSP_UNIT_TEXT, false, XSP_BY(thread_longest)},
};
XSP_REPORT_SHAPE(analyze, thread_shape, "threads", "threads", "threads", thread_columns);

static void put_threads(const struct xsp_summary_waits *w, struct xsp_report_section *section)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(w->timeline, &times);
	struct xsp_report_table *t = xsp_report_table(section, &thread_shape);

	for (size_t i = 0; i < count; i++)
		xsp_report_add(t, w, &times[i]);
}

static struct xsp_cell lock_place(struct xsp_report_at *at)
{
	const struct xsp_summary_waits *w = at->of;
	const struct lock *lock = at->row;
	const struct spot *spots;
	const size_t places = xsp_waits_spots(w, (uint32_t)(lock - w->locks), true, &spots);

	return xsp_cell_text(places > 0 ? xsp_timeline_name(w->timeline, spots[0].place - 1)
					: NULL);
}

static struct xsp_cell lock_address(struct xsp_report_at *at)
{
	snprintf(at->text, sizeof(at->text), "0x%" PRIx64, ((const struct lock *)at->row)->address);
	return xsp_cell_text(at->text);
}

static struct xsp_cell lock_holder(struct xsp_report_at *at)
{
	const struct person *holder = xsp_waits_person(at->of, at->row, HOLDER);

	if (holder == NULL)
		return xsp_cell_absent();
	xsp_waits_thread(at->of, holder->tid, at->text, 128);
	return xsp_cell_text(at->text);
}

static const struct xsp_report_column lock_columns[] = {
	{"at", "waited for at", XSP_UNIT_TEXT, true, XSP_BY(lock_place)},
	{"address", "address", XSP_UNIT_TEXT, false, XSP_BY(lock_address)},
	{"waits", "waits", XSP_UNIT_COUNT, false, XSP_FIELD(struct lock, waits)},
	{"total_ns", "waited", XSP_UNIT_NS, false, XSP_FIELD(struct lock, ns)},
	{"max_ns", "longest", XSP_UNIT_NS, false, XSP_FIELD(struct lock, longest_ns)},
	{"holder", "held most by", XSP_UNIT_TEXT, false, XSP_BY(lock_holder)},
};
XSP_REPORT_SHAPE(analyze, lock_shape, "threads", "locks",
		 "locks; without a holder: condition variables and their like", lock_columns);

static int put_locks(const struct xsp_summary_waits *w, struct xsp_report_section *section)
{
	const struct lock **locks = xsp_waits_locks(w);
	struct xsp_report_table *t = xsp_report_table(section, &lock_shape);

	if (locks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < w->lock_count && i < LOCKS_SHOWN; i++)
		xsp_report_add(t, w, locks[i]);
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
