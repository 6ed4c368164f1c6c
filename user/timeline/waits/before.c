/* SPDX-License-Identifier: BSD-2-Clause */
/* before.c - a part of a recording (--split) that is read alone: what its events add up begins with the recording. */
#include "capture/parts.h"
#include "capture/sums.h"
#include "timeline/timeline_private.h"

#include <errno.h>

int xsp_times_of_part(struct xsp_timeline *t, const struct xsp_event **e,
		      struct xsp_event_times *own)
{
	const struct xsp_event_times *times = (const void *)*e;
	const uint64_t key = xsp_u64_pair((*e)->tgid, (*e)->tid);

	if (times->ended == XSP_TIMES_BEFORE) {
		struct xsp_event_times *row = xsp_tally_row(&t->before, key, times);
		return row != NULL ? 1 : -ENOMEM;
	}
	const struct xsp_event_times *before = xsp_tally_find(&t->before, key);
	if (before == NULL || before->since_ns != times->since_ns)
		return 0; /* it began in this part */
	*own = *times;
	own->head.size = sizeof(*own);
	own->head.flags &= (uint8_t)~XSP_EVENT_SECTIONS; /* they have no sums of before */
	own->since_ns = before->head.time_ns;
	xsp_times_take(own, before);
	*e = &own->head;
	return 0;
}

void xsp_wait_of_part(const struct xsp_timeline *t, struct xsp_wait *w)
{
	if (w->left_ns >= t->part_ns)
		return;
	w->left_ns = t->part_ns < w->back_ns ? t->part_ns : w->back_ns;
	w->woken_ns = xsp_max_u64(w->woken_ns, w->left_ns);
	w->flags |= XSP_WAIT_BEFORE;
}
