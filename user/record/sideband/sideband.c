/* SPDX-License-Identifier: BSD-2-Clause */
/* sideband.c - the choice of the way to hear of the watched processes. */
#include "record/sideband/sideband.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "record/sideband/sideband_private.h"

int xsp_sideband_new(const struct xsp_sideband_options *options, struct xsp_sideband **out,
		     struct xsp_error *err)
{
	*out = NULL;
	struct xsp_sideband *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return xsp_out_of_memory(err);
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
		xsp_sideband_forget_look(&s->watches[i]);
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
