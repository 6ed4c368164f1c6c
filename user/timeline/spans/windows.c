/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * windows.c - pauses of --max-overhead, and released functions. No span reaches beyond the window
 * that it began in. A span of a released function ends at that moment, or with the last span that
 * was open in it then. Its real end was not seen.
 */
#include "timeline/spans/spans.h"
#include "timeline/windows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int xsp_windows_begin(struct xsp_timeline *t)
{
	t->window_count = xsp_capture_windows(t->reader, &t->windows);
	t->scheduled = xsp_capture_schedule(t->reader) != NULL;
	t->let_go_count = xsp_capture_let_gos(t->reader, &t->let_gos);
	if (t->let_go_count == 0)
		return 0;
	uint64_t *gone_ns = reallocarray(t->gone_ns, t->probe_count + 1, sizeof(*t->gone_ns));
	if (gone_ns == NULL)
		return -ENOMEM;
	t->gone_ns = gone_ns;
	memset(t->gone_ns, 0xff, (t->probe_count + 1) * sizeof(*t->gone_ns)); /* never */
	for (size_t i = 0; i < t->let_go_count; i++)
		if (t->let_gos[i].probe < t->probe_count)
			t->gone_ns[t->let_gos[i].probe] = t->let_gos[i].time_ns;
	return 0;
}

static void mark_spans(struct open_span *spans, size_t count, uint32_t probe)
{
	for (size_t i = 0; i < count; i++)
		if (spans[i].probe == probe)
			spans[i].let_go = true;
}

/* All open spans of the probe, also on sleeping stacks. */
static void mark_let_go(const struct xsp_timeline *t, const struct thread *th, uint32_t probe)
{
	if (probe >= t->probe_count)
		return;
	for (size_t i = 0; i < th->used_rows; i++)
		mark_spans(th->rows[i]->spans, th->rows[i]->count, probe);
	for (size_t i = 0; i < th->parked_count; i++)
		mark_spans(th->parked[i]->spans, th->parked[i]->count, probe);
}

/*
 * Closes released spans that have nothing open in them any more. Others stay: a callee that is
 * still recorded proves that its caller is running, and would lie in the wrong place without it. If
 * a callee has ended since, that was its row's last event, and counts as the caller's end as well.
 */
static int close_let_go(struct xsp_timeline *t, struct thread *th)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < th->used_rows; i++) {
		struct row *row = th->rows[i];
		while (rc == 0 && row->count > 0 && row->spans[row->count - 1].let_go)
			rc = xsp_row_pop(t, th, row, t->gone_ns[row->spans[row->count - 1].probe],
					 XSP_SPAN_UNFINISHED);
	}
	return rc;
}

bool xsp_windows_leave_out(const struct xsp_timeline *t, const struct xsp_event *e)
{
	return t->gone_ns != NULL && e->probe < t->probe_count && t->gone_ns[e->probe] < e->time_ns;
}

int xsp_windows_pass(struct xsp_timeline *t, struct thread *th, uint64_t now)
{
	int rc = th->let_gos > 0 ? close_let_go(t, th) : 0;

	for (; rc == 0 && th->let_gos < t->let_go_count && t->let_gos[th->let_gos].time_ns < now;
	     th->let_gos++) {
		mark_let_go(t, th, t->let_gos[th->let_gos].probe);
		rc = close_let_go(t, th);
	}
	for (; rc == 0 && th->windows < t->window_count && t->windows[th->windows].end_ns < now;
	     th->windows++)
		rc = xsp_pair_close(t, th, t->windows[th->windows].end_ns, XSP_SPAN_UNFINISHED);
	return rc;
}
