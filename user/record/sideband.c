/* SPDX-License-Identifier: BSD-2-Clause */
/* sideband.c - the set of watched processes, and the choice of the way to hear of them. */
#include "record/sideband.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/sideband_private.h"

/* Index of the first watch whose pid is not below `pid`. */
static size_t position(const struct xsp_sideband *s, pid_t pid)
{
	size_t low = 0, high = s->watch_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (s->watches[mid].pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
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
	if (s->watch_count == s->watch_room) {
		size_t room = s->watch_room == 0 ? 8 : s->watch_room * 2;
		void *grown = reallocarray(s->watches, room, sizeof(*s->watches));
		if (grown == NULL)
			return -ENOMEM;
		s->watches = grown;
		s->watch_room = room;
	}
	if (s->mode == XSP_SIDEBAND_POLL && xsp_sideband_poll_baseline(s, &watch) == -ENOMEM)
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
	xsp_sideband_poll_clear(w);
	s->watch_count--;
	memmove(w, w + 1, (s->watch_count - i) * sizeof(*w));
}

int xsp_sideband_new(const struct xsp_sideband_options *options, struct xsp_sideband **out,
		     struct xsp_error *err)
{
	*out = NULL;
	struct xsp_sideband *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return xsp_error_set(err, -ENOMEM, XSP_STATUS_FAILED, "out of memory");
	if (options != NULL)
		s->options = *options;
	if (s->options.opener == NULL)
		s->options.opener = &xsp_open_directly;
	s->mode = XSP_SIDEBAND_PERF;
	int ret = s->options.force_poll ? -EOPNOTSUPP : xsp_sideband_perf_open(s);
	if (ret == -ENOMEM) {
		xsp_sideband_free(s);
		return xsp_error_set(err, ret, XSP_STATUS_FAILED, "out of memory");
	}
	if (ret < 0)
		s->mode = XSP_SIDEBAND_POLL;
	if (s->options.force_poll)
		snprintf(s->reason, sizeof(s->reason), "polling /proc was asked for");
	*out = s;
	return 0;
}

void xsp_sideband_free(struct xsp_sideband *s)
{
	if (s == NULL)
		return;
	xsp_sideband_perf_close(s);
	for (size_t i = 0; i < s->watch_count; i++)
		xsp_sideband_poll_clear(&s->watches[i]);
	free(s->watches);
	free(s);
}

enum xsp_sideband_mode xsp_sideband_mode(const struct xsp_sideband *s)
{
	return s->mode;
}

const char *xsp_sideband_reason(const struct xsp_sideband *s)
{
	return s->reason;
}

long xsp_sideband_drain(struct xsp_sideband *s, uint64_t until_ns,
			int (*record)(void *ctx, const struct xsp_sideband_record *r), void *ctx)
{
	return s->mode == XSP_SIDEBAND_PERF ? xsp_sideband_perf_drain(s, until_ns, record, ctx)
					    : xsp_sideband_poll_drain(s, until_ns, record, ctx);
}
