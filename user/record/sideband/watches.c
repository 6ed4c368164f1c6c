/* SPDX-License-Identifier: BSD-2-Clause */
/* watches.c - the set of watched processes. */
#include <errno.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/search.h"
#include "record/sideband/sideband_private.h"

/* Index of the first watch whose pid is not below `pid`. */
static size_t position(const struct xsp_sideband *s, pid_t pid)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, s->watch_count, i, s->watches[i].pid < pid);
	return low;
}

struct xsp_watch *xsp_sideband_find(const struct xsp_sideband *s, pid_t pid)
{
	size_t i = position(s, pid);

	return i < s->watch_count && s->watches[i].pid == pid ? &s->watches[i] : NULL;
}

bool xsp_sideband_watches(const struct xsp_sideband *s, pid_t pid)
{
	return xsp_sideband_find(s, pid) != NULL;
}

int xsp_sideband_watch(struct xsp_sideband *s, pid_t pid)
{
	struct xsp_watch watch = {.pid = pid};

	if (xsp_sideband_find(s, pid) != NULL)
		return 0;
	if (xsp_grow(&s->watches, &s->watch_room, s->watch_count + 1) < 0)
		return -ENOMEM;
	if (s->mode == XSP_SIDEBAND_POLL && xsp_sideband_baseline(s, &watch) == -ENOMEM)
		return -ENOMEM;
	size_t i = position(s, pid);
	memmove(&s->watches[i + 1], &s->watches[i], (s->watch_count - i) * sizeof(*s->watches));
	s->watches[i] = watch;
	s->watch_count++;
	return 0;
}

void xsp_sideband_unwatch(struct xsp_sideband *s, pid_t pid)
{
	struct xsp_watch *w = xsp_sideband_find(s, pid);

	if (w == NULL)
		return;
	size_t i = (size_t)(w - s->watches);
	xsp_sideband_forget_look(w);
	s->watch_count--;
	memmove(w, w + 1, (s->watch_count - i) * sizeof(*w));
}
