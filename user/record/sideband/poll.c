/* SPDX-License-Identifier: BSD-2-Clause */
/* poll.c - the same news from /proc, for kernels that refuse perf events. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "record/sideband/sideband_private.h"

#define POLL_NS 100000000U

/* One watched process. The callback may change the set, so only copies are held across it. */
static int poll_one(struct xsp_sideband *s, pid_t pid, struct xsp_look *l)
{
	struct xsp_watch *w = xsp_sideband_find(s, pid);

	if (w == NULL)
		return 0;
	struct xsp_watch before = *w; /* has the arrays meanwhile */
	*w = (struct xsp_watch){.pid = pid};
	/* cppcheck-suppress autoVariables ; taken back below */
	l->before = &before;
	l->now = (struct xsp_watch){.pid = pid};
	l->is_exec = false;
	int ret = xsp_sideband_look(l);
	bool gone = l->stopped == 0 && (ret == -ESRCH || ret == -ENOENT);
	if (gone) {
		struct xsp_sideband_record r = {.kind = XSP_SIDEBAND_EXIT};
		ret = xsp_sideband_deliver(l, &r);
		xsp_sideband_unwatch(s, pid);
	}
	/* children enter the set after the report, with all mappings they have by then */
	for (size_t i = 0; ret == 0 && s->options.follow && i < l->now.child_count; i++)
		ret = xsp_sideband_watch(s, l->now.children[i]);
	w = xsp_sideband_find(s, pid);
	if (w != NULL && !gone) {
		xsp_sideband_forget_look(w);
		*w = l->now;
	} else {
		xsp_sideband_forget_look(&l->now);
	}
	xsp_sideband_forget_look(&before);
	l->before = NULL;
	if (l->stopped == 0 && (ret == -EACCES || ret == -EPERM))
		ret = 0; /* a set-user-id program: keep looking */
	return ret;
}

long xsp_sideband_poll_drain(struct xsp_sideband *s, uint64_t until_ns,
			     xsp_sideband_callback record, void *ctx)
{
	struct xsp_look l = {
		.opener = s->options.opener, .time_ns = xsp_now_ns(), .record = record, .ctx = ctx};
	size_t count = s->watch_count;
	int ret = 0;

	if (count == 0 || (until_ns != XSP_SIDEBAND_ALL && l.time_ns < s->next_poll_ns))
		return 0;
	s->next_poll_ns = l.time_ns + POLL_NS;
	pid_t *pids = reallocarray(NULL, count, sizeof(*pids));
	if (pids == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		pids[i] = s->watches[i].pid;
	for (size_t i = 0; i < count && ret == 0; i++)
		ret = poll_one(s, pids[i], &l);
	free(pids);
	return ret < 0 ? ret : l.delivered;
}
