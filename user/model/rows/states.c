/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/rows/states.h"

#include <errno.h>
#include <stdio.h>

#include "base/rows/search.h"
#include "catalog/wait_reasons.h"
#include "timeline/cut.h"
#include "timeline/windows.h"

/* In struct xsp_thread_row.last_ns, which otherwise is when it began to run. */
#define NEVER 0 /* not known yet */
#define NO_MORE UINT64_MAX /* it waited until the end */

const char *xsp_state_name(enum xsp_state state)
{
	static const char *const names[XSP_STATES] = {"Running", "Runnable", "Preempted",
						      "Blocked"};

	return names[state];
}

void xsp_state_text(const struct xsp_state_slice *s, char text[XSP_STATE_TEXT])
{
	const bool blocked = s->state == XSP_STATE_BLOCKED;

	snprintf(text, XSP_STATE_TEXT, "%s%s%s", xsp_state_name(s->state), blocked ? ": " : "",
		 blocked ? xsp_wait_class_name(s->wait->why) : "");
}

struct consumer {
	const struct xsp_timeline *timeline;
	xsp_state_fn fn;
	void *ctx;
};

static int emit_state(const struct consumer *to, struct xsp_thread_row *row,
		      struct xsp_state_slice s)
{
	return s.end_ns > s.start_ns ? to->fn(to->ctx, row, &s) : 0;
}

/* With a schedule: in its windows only, as nobody saw what came between them. */
static int emit_in_windows(const struct consumer *to, struct xsp_thread_row *row,
			   struct xsp_state_slice all)
{
	const struct xsp_capture_reader *r = xsp_timeline_reader(to->timeline);
	const struct xsp_capture_window *windows;
	size_t i = 0;
	const size_t count = xsp_capture_schedule(r) != NULL ? xsp_capture_windows(r, &windows) : 0;
	int rc = 0;

	if (count == 0)
		return emit_state(to, row, all);
	XSP_LOWER_BOUND(i, count, k, windows[k].end_ns <= all.start_ns);
	for (; i < count && windows[i].start_ns < all.end_ns && rc >= 0; i++) {
		struct xsp_state_slice s = all;
		if (s.start_ns < windows[i].start_ns)
			s.start_ns = windows[i].start_ns;
		if (s.end_ns > windows[i].end_ns)
			s.end_ns = windows[i].end_ns;
		s.finished = all.finished && s.end_ns == all.end_ns;
		rc = emit_state(to, row, s);
		all.short_ns = 0;
	}
	return rc;
}

static int emit_running(const struct consumer *to, struct xsp_thread_row *row, uint64_t end_ns,
			bool finished)
{
	const struct xsp_state_slice s = {
		.state = XSP_STATE_RUNNING,
		.start_ns = row->last_ns,
		.end_ns = end_ns,
		.finished = finished,
		.short_ns = row->short_ns,
	};

	row->short_ns = 0;
	return emit_in_windows(to, row, s);
}

int xsp_states_wait(const struct xsp_timeline *t, struct xsp_thread_row *row,
		    const struct xsp_wait *w, xsp_state_fn fn, void *ctx)
{
	const struct consumer to = {t, fn, ctx};
	const bool open = w->flags & XSP_WAIT_OPEN;
	const bool preempted = w->why == XSP_WAIT_RUNNABLE && !(w->flags & XSP_WAIT_BORN);

	uint64_t start_ns, end_ns;

	xsp_timeline_window(t, &start_ns, &end_ns);
	if (row->last_ns == NO_MORE && w->flags & XSP_WAIT_BEFORE) /* a later window begins */
		row->last_ns = w->left_ns;
	if (row->last_ns == NEVER)
		row->last_ns = w->flags & (XSP_WAIT_BORN | XSP_WAIT_BEFORE) ? w->left_ns : start_ns;
	if (row->last_ns == NO_MORE || w->left_ns < row->last_ns)
		return 0; /* not a real wait */
	row->short_ns += w->short_ns;
	if (w->flags & XSP_WAIT_SHORT)
		return 0;
	int rc = emit_running(&to, row, w->left_ns, true);
	if (rc >= 0)
		rc = emit_state(
			&to, row,
			(struct xsp_state_slice){.state = XSP_STATE_BLOCKED,
						 .start_ns = w->left_ns,
						 .end_ns = w->woken_ns,
						 .finished = !open || w->woken_ns < w->back_ns,
						 .wait = w});
	if (rc >= 0)
		rc = emit_state(&to, row,
				(struct xsp_state_slice){.state = preempted ? XSP_STATE_PREEMPTED
									    : XSP_STATE_RUNNABLE,
							 .start_ns = w->woken_ns,
							 .end_ns = w->back_ns,
							 .finished = !open,
							 .wait = w});
	row->last_ns = open ? NO_MORE : w->back_ns;
	return rc < 0 ? rc : 1;
}

int xsp_states_end(const struct xsp_timeline *t, struct xsp_thread_rows *rows, xsp_state_fn fn,
		   void *ctx)
{
	const struct consumer to = {t, fn, ctx};
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(t, &times);
	uint64_t start_ns, end_ns;
	int rc = 0;

	const bool is_scheduled = xsp_capture_schedule(xsp_timeline_reader(t)) != NULL;
	xsp_timeline_window(t, &start_ns, &end_ns);
	for (size_t i = 0; i < count && rc >= 0; i++) {
		const struct xsp_timeline_thread *thread = times[i].thread;
		struct xsp_thread_row *row =
			xsp_thread_rows_of(rows, thread->pid, thread->tid, XSP_STATES_ROW);
		if (row == NULL)
			return -ENOMEM;
		if (row->last_ns == NO_MORE)
			continue;
		if (row->last_ns == NEVER)
			row->last_ns = is_scheduled ? start_ns : times[i].since_ns;
		rc = emit_running(&to, row, times[i].until_ns,
				  times[i].ended && times[i].until_ns < end_ns);
		row->last_ns = NO_MORE;
	}
	return rc;
}
