/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * off_cpu.c - how long a thread was off its CPU: a running sum. Each open span keeps its value at
 * the span's beginning. An event may come after a wait in its own probe. So callers ask for the sum
 * at a time, and the last waits are kept for that.
 */
#include "timeline/timeline_private.h"

#include <errno.h>
#include <stdlib.h>

/* How many waits may lie between: with --min-duration an entry comes after the events in its
 * span. */
#define RECENT 64U

struct xsp_off {
	uint64_t sum_ns; /* the sum of all waits so far */
	uint64_t cut_ns[2]; /* before the cut's beginning and end */
	bool passed[2]; /* the first known wait after it has come */
	uint64_t count;
	bool unknown; /* a wait is over, but its event has not come yet */
	struct {
		uint64_t left_ns, back_ns;
		uint64_t sum_ns, left_sum_ns; /* before it; and with the short ones before it */
	} recent[RECENT];
};

static uint64_t waited_at(const struct xsp_off *off, uint64_t ns)
{
	if (off->unknown)
		return XSP_OFF_UNKNOWN;
	for (uint64_t i = off->count; i > 0 && off->count - i < RECENT; i--) {
		uint64_t after = i == off->count ? off->sum_ns : off->recent[i % RECENT].sum_ns;
		const uint64_t left = off->recent[(i - 1) % RECENT].left_ns;
		if (ns >= off->recent[(i - 1) % RECENT].back_ns)
			return after;
		if (ns > left)
			return off->recent[(i - 1) % RECENT].left_sum_ns + (ns - left);
	}
	return off->count <= RECENT ? 0 : XSP_OFF_UNKNOWN;
}

uint64_t xsp_off_at(const struct xsp_timeline *t, const struct thread *th, uint64_t ns)
{
	if (t->waits_until_ns != 0 && ns > t->waits_until_ns)
		return XSP_OFF_UNKNOWN;
	return th->off != NULL ? waited_at(th->off, ns) : 0;
}

uint64_t xsp_off_at_cut(const struct xsp_timeline *t, const struct thread *th, int end)
{
	if (th->off != NULL && th->off->passed[end])
		return th->off->cut_ns[end];
	return xsp_off_at(t, th, end ? t->cut.to_ns : t->cut.from_ns);
}

int xsp_off_add(const struct xsp_timeline *t, struct thread *th, const struct xsp_event_wait *e)
{
	const uint64_t cuts[2] = {t->cut.from_ns, t->cut.to_ns};

	if (th->off == NULL && (th->off = calloc(1, sizeof(*th->off))) == NULL)
		return -ENOMEM;
	struct xsp_off *off = th->off;
	off->unknown = e->flags & XSP_WAIT_UNSEEN_RETURN;
	const uint64_t i = off->count++ % RECENT;
	off->recent[i].sum_ns = off->sum_ns;
	off->sum_ns += e->short_ns;
	off->recent[i].left_ns = e->left_ns;
	off->recent[i].back_ns = e->head.time_ns;
	off->recent[i].left_sum_ns = off->sum_ns;
	off->sum_ns += e->head.time_ns - e->left_ns;
	for (int k = 0; k < 2; k++) {
		if (off->passed[k] || off->unknown || e->head.time_ns < cuts[k])
			continue;
		off->cut_ns[k] = xsp_off_at(t, th, cuts[k]);
		off->passed[k] = true;
	}
	return 0;
}

void xsp_off_forget(struct thread *th)
{
	free(th->off);
	th->off = NULL;
}
