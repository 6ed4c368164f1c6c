/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_waits_columns.c - columns of threads, locks and gaps, and which reports show them. */
#include "analysis/waits/summary_waits_private.h"

#include <inttypes.h>

#include "base/text.h"
#include "base/units.h"
#include "catalog/wait_reasons.h"

static size_t thread_text(const struct xsp_timeline_thread *t, uint32_t tid, char *out, size_t size)
{
	char name[64];

	xsp_printable(name, sizeof(name), t != NULL ? t->comm : "", 0);
	snprintf(out, size, "%s%s(%" PRIu32 ")", name, name[0] != '\0' ? " " : "",
		 t != NULL ? t->ns_tid : tid);
	return xsp_printable(NULL, 0, out, 0);
}

size_t xsp_waits_thread(const struct xsp_timeline *t, uint32_t tid, char *out, size_t size)
{
	return thread_text(xsp_timeline_thread(t, tid), tid, out, size);
}

void xsp_waits_reasons(const uint64_t *ns, const uint64_t *counts, size_t most, char *out,
		       size_t size)
{
	bool printed[XSP_WAIT_CLASSES] = {[XSP_WAIT_RUNNABLE] = true};

	out[0] = '\0';
	for (size_t n = 0; n < most; n++) {
		char time[XSP_UNITS_SIZE], count[XSP_UNITS_SIZE];
		unsigned best = XSP_WAIT_RUNNABLE;
		for (unsigned i = 0; i < XSP_WAIT_CLASSES; i++)
			if (!printed[i] && ns[i] > 0 && (printed[best] || ns[i] > ns[best]))
				best = i;
		if (printed[best])
			return;
		printed[best] = true;
		xsp_join(out, size, ", ", "%s %s", xsp_wait_class_name(best),
			 xsp_format_ns(time, ns[best]));
		if (counts != NULL)
			xsp_join(out, size, " ", "(%s)", xsp_format_count(count, counts[best]));
	}
}

uint64_t xsp_waits_spans(const struct xsp_summary_waits *w, const struct xsp_timeline_thread *t)
{
	uint32_t at;

	return xsp_waits_member(w, t, &at) ? w->members.rows[at].spans : 0;
}

/* Where it waited longest, or else was runnable without a CPU: "network, app.py:33 ask". */
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

static struct xsp_cell lock_place(struct xsp_report_at *at)
{
	const struct xsp_summary_waits *w = at->of;
	const struct lock *lock = at->row;
	const struct spot *spots;
	const size_t places = xsp_waits_spots(w, (uint32_t)(lock - w->locks.rows), true, &spots);

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
	const struct person *holder = xsp_waits_person(at->of, at->row, HOLDER, 0);

	if (holder == NULL)
		return xsp_cell_absent();
	const struct xsp_summary_waits *w = at->of;
	xsp_waits_thread(w->timeline, holder->tid, at->text, 128);
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

/* ---- in summaries ---- */

THREAD(thread_pid, xsp_cell_integer(row->thread->ns_pid));
THREAD(thread_spans, xsp_cell_integer(xsp_waits_spans(of, row->thread)));
THREAD(thread_faults, xsp_cell_if(row->faults_known, row->minor_faults + row->major_faults));

static struct xsp_cell thread_shown(struct xsp_report_at *at)
{
	const struct xsp_thread_times *t = at->row;

	thread_text(t->thread, 0, at->text, 128);
	return xsp_cell_text(at->text);
}

static struct xsp_cell thread_reasons_shown(struct xsp_report_at *at)
{
	const struct xsp_thread_times *t = at->row;

	xsp_waits_reasons(t->blocked_ns, t->waits, 4, at->text, 256);
	return xsp_cell_text(at->text);
}

static const struct xsp_report_column more_of_threads[] = {
	{"pid", "pid", XSP_UNIT_NUMBER, false, XSP_BY(thread_pid)},
	{"ended", "ended", XSP_UNIT_NUMBER, false, OF(ended)},
	{"spans", "spans", XSP_UNIT_COUNT, false, XSP_BY(thread_spans)},
	{"shown", "thread", XSP_UNIT_TEXT, false, XSP_BY(thread_shown)},
	{"faults", "faults", XSP_UNIT_COUNT, false, XSP_BY(thread_faults)},
	{"reasons_shown", "in", XSP_UNIT_TEXT, false, XSP_BY(thread_reasons_shown)},
};

#define FIGURES                                                                                    \
	{.key = "shown", .width = -26}, {.key = "time_ns", .width = 8},                            \
		{.key = "running_ns", .width = 8}, {.key = "runnable_ns", .width = 8},             \
		{.key = "blocked_ns", .width = 8},                                                 \
	{                                                                                          \
		.key = "spans", .width = 9                                                         \
	}
static const struct xsp_list_column narrow[] = {FIGURES};
static const struct xsp_list_column wide[] = {
	FIGURES, {.key = "faults", .width = 9}, {.key = "reasons_shown"}};
#define THREADS(shown)                                                                             \
	{                                                                                          \
		XSP_LIST_COLUMNS(thread_columns), XSP_LIST_MORE(more_of_threads),                  \
			.full = &thread_shape, .json = "threads", .keys = THREAD_KEYS,             \
			XSP_LIST_TEXT(shown)                                                       \
	}
#define THREAD_KEYS                                                                                \
	"name pid tid ended spans time_ns running_ns runnable_ns minor_faults? major_faults?"
const struct xsp_list xsp_waits_threads = THREADS(wide);
const struct xsp_list xsp_waits_threads_narrow = THREADS(narrow);

#define LOCK_CELL(name, value) XSP_REPORT_CELL(name, struct xsp_summary_waits, struct lock, value)
LOCK_CELL(lock_pid, xsp_cell_integer(xsp_timeline_thread(of->timeline, row->pid) != NULL
					     ? xsp_timeline_thread(of->timeline, row->pid)->ns_pid
					     : row->pid));

static const struct xsp_report_column more_of_locks[] = {
	{"pid", "pid", XSP_UNIT_NUMBER, false, XSP_BY(lock_pid)},
	{"ns", "waited", XSP_UNIT_NS, false, XSP_FIELD(struct lock, ns)},
};
const struct xsp_list xsp_waits_lock_list = {
	XSP_LIST_COLUMNS(lock_columns),
	XSP_LIST_MORE(more_of_locks),
	.full = &lock_shape,
	.json = "locks",
	.keys = "address pid waits ns",
};

/* The name of a thread of which only the number is known; it may have none. */
static struct xsp_cell name_of(const struct xsp_summary_waits *w, uint32_t tid)
{
	const struct xsp_timeline_thread *t = xsp_timeline_thread(w->timeline, tid);

	return xsp_cell_text(t != NULL ? t->comm : NULL);
}

static struct xsp_cell tid_of(const struct xsp_summary_waits *w, uint32_t tid)
{
	const struct xsp_timeline_thread *t = xsp_timeline_thread(w->timeline, tid);

	return xsp_cell_integer(t != NULL ? t->ns_tid : tid);
}

#define PERSON(name, value) XSP_REPORT_CELL(name, struct xsp_summary_waits, struct person, value)
PERSON(person_name, name_of(of, row->tid));
PERSON(person_tid, tid_of(of, row->tid));

static const struct xsp_report_column person_columns[] = {
	{"name", "thread", XSP_UNIT_TEXT, true, XSP_BY(person_name)},
	{"tid", "tid", XSP_UNIT_NUMBER, true, XSP_BY(person_tid)},
	{"ns", "time", XSP_UNIT_NS, false, XSP_FIELD(struct person, ns)},
	{"waits", "waits", XSP_UNIT_COUNT, false, XSP_FIELD(struct person, times)},
};
const struct xsp_list xsp_waits_people[] = {
	[HOLDER] = {XSP_LIST_COLUMNS(person_columns), .json = "holders",
		    .keys = "name tid ns waits"},
	[WAKER] = {XSP_LIST_COLUMNS(person_columns), .json = "wakers", .keys = "name tid ns waits"},
};

#define GAP(name, value) XSP_REPORT_CELL(name, struct xsp_summary_waits, struct gap, value)
GAP(gap_name, name_of(of, row->tid));
GAP(gap_tid, tid_of(of, row->tid));
GAP(gap_start, xsp_cell_integer(row->start_ns > of->start_ns ? row->start_ns - of->start_ns : 0));
GAP(gap_time, xsp_cell_integer(row->end_ns - row->start_ns));
GAP(gap_running, xsp_cell_integer(xsp_waits_gap_running(row)));
GAP(gap_runnable, xsp_cell_integer(row->blocked_ns[XSP_WAIT_RUNNABLE]));

static struct xsp_cell name_cell(const struct xsp_summary_waits *w, uint32_t name)
{
	return name != 0 ? xsp_cell_text(xsp_timeline_name(w->timeline, name - 1))
			 : xsp_cell_absent();
}
GAP(gap_at, name_cell(of, row->spot.place));
GAP(gap_inside, row->spot.place != 0 ? name_cell(of, row->spot.inside) : xsp_cell_absent());

static const struct xsp_report_column gap_columns[] = {
	{"name", "thread", XSP_UNIT_TEXT, true, XSP_BY(gap_name)},
	{"tid", "tid", XSP_UNIT_NUMBER, true, XSP_BY(gap_tid)},
	{"start_ns", "from", XSP_UNIT_TIME, true, XSP_BY(gap_start)},
	{"time_ns", "time", XSP_UNIT_NS, false, XSP_BY(gap_time)},
	{"running_ns", "on CPU", XSP_UNIT_NS, false, XSP_BY(gap_running)},
	{"runnable_ns", "runnable", XSP_UNIT_NS, false, XSP_BY(gap_runnable)},
	{"at", "at", XSP_UNIT_TEXT, false, XSP_BY(gap_at)},
	{"inside", "inside", XSP_UNIT_TEXT, false, XSP_BY(gap_inside)},
};
const struct xsp_list xsp_waits_gaps = {
	XSP_LIST_COLUMNS(gap_columns),
	.json = "gaps",
	.keys = "name tid start_ns time_ns running_ns runnable_ns at? inside?",
};

#define SPOT_CELL(name, value) XSP_REPORT_CELL(name, struct xsp_summary_waits, struct spot, value)

SPOT_CELL(spot_in, xsp_cell_text(xsp_wait_class_name(row->why)));
SPOT_CELL(spot_at, xsp_cell_text(xsp_timeline_name(of->timeline, row->place - 1)));
SPOT_CELL(spot_inside, xsp_cell_text(xsp_timeline_name(of->timeline, row->inside - 1)));
SPOT_CELL(spot_kernel, name_cell(of, row->kernel));

static const struct xsp_report_column spot_columns[] = {
	{"in", "in", XSP_UNIT_TEXT, false, XSP_BY(spot_in)},
	{"at", "at", XSP_UNIT_TEXT, true, XSP_BY(spot_at)},
	{"inside", "inside", XSP_UNIT_TEXT, true, XSP_BY(spot_inside)},
	{"kernel", "in the kernel", XSP_UNIT_TEXT, false, XSP_BY(spot_kernel)},
	{"ns", "time", XSP_UNIT_NS, false, XSP_FIELD(struct spot, ns)},
	{"waits", "waits", XSP_UNIT_COUNT, false, XSP_FIELD(struct spot, times)},
};
const struct xsp_list xsp_waits_places = {
	XSP_LIST_COLUMNS(spot_columns),
	.json = "places",
	.keys = "in at inside kernel? ns waits",
};
