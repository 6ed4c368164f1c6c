/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * windows.c - what --max-overhead left out. No span goes beyond the window that it began in, and none of a
 * function beyond the moment in which it was let go of: how they ended was not seen.
 */
#include "timeline/timeline_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"

int xsp_windows_begin(struct xsp_timeline *t)
{
	t->window_count = xsp_capture_windows(t->reader, &t->windows);
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

/* The innermost open span of the probe, if there is one. */
static bool find_open(const struct thread *th, uint32_t probe, struct row **row, size_t *at)
{
	for (size_t i = 0; i < th->used_rows; i++) {
		*row = th->rows[i];
		for (size_t k = (*row)->count; k > 0; k--) {
			*at = k - 1;
			if ((*row)->spans[k - 1].probe == probe)
				return true;
		}
	}
	return false;
}

static int close_let_go(struct xsp_timeline *t, struct thread *th,
			const struct xsp_capture_let_go *l)
{
	struct row *row;
	size_t at;

	while (find_open(th, l->probe, &row, &at)) {
		int rc = xsp_row_remove(t, th, row, at, l->time_ns, XSP_SPAN_UNFINISHED);
		if (rc == -E2BIG) /* no row left to show it on */
			rc = xsp_row_pop(t, th, row, l->time_ns, XSP_SPAN_UNFINISHED);
		if (rc < 0)
			return rc;
	}
	return 0;
}

bool xsp_windows_leave_out(const struct xsp_timeline *t, const struct xsp_event *e)
{
	return t->gone_ns != NULL && e->probe < t->probe_count && t->gone_ns[e->probe] < e->time_ns;
}

int xsp_windows_pass(struct xsp_timeline *t, struct thread *th, uint64_t now)
{
	int rc = 0;

	for (; rc == 0 && th->let_gos < t->let_go_count && t->let_gos[th->let_gos].time_ns < now;
	     th->let_gos++)
		rc = close_let_go(t, th, &t->let_gos[th->let_gos]);
	for (; rc == 0 && th->windows < t->window_count && t->windows[th->windows].end_ns < now;
	     th->windows++)
		rc = xsp_pair_close(t, th, t->windows[th->windows].end_ns, XSP_SPAN_UNFINISHED);
	return rc;
}

bool xsp_timeline_recorded(const struct xsp_timeline *t, uint64_t from_ns, uint64_t to_ns)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, t->window_count, i, t->windows[i].end_ns < from_ns);
	return t->window_count == 0 ||
	       (low < t->window_count && t->windows[low].start_ns <= from_ns &&
		to_ns <= t->windows[low].end_ns);
}
