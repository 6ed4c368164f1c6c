/* SPDX-License-Identifier: BSD-2-Clause */
/* put.c - events from no ring buffer: asks the kernel side for them. */
#include "record/recorder_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int xsp_recorder_put_event(struct xsp_recorder *r, const struct xsp_event *e)
{
	const size_t rings = xsp_broker_rings(r->broker, NULL, 0);

	return xsp_capture_put_event(r->writer, e->tid & (unsigned)(rings - 1), e, e->size);
}

int xsp_recorder_put_times(struct xsp_recorder *r)
{
	struct xsp_thread_now *times = NULL;
	size_t count = 0;
	int rc = xsp_broker_times(r->broker, &times, &count);

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = xsp_recorder_put_event(r, &times[i].times.head);
	free(times);
	return rc;
}

/* As flame graphs know them: with "_[k]" at their ends. */
int xsp_recorder_put_kernel_functions(struct xsp_recorder *r)
{
	struct xsp_kernel_function *all = NULL;
	size_t count = 0;
	char text[sizeof(all->name) + 8];
	int rc = xsp_broker_kernel_functions(r->broker, &all, &count);

	for (size_t i = 0; i < count && rc == 0; i++) {
		snprintf(text, sizeof(text), "%.*s_[k]", (int)sizeof(all->name), all[i].name);
		rc = xsp_capture_put_address_name(r->writer, XSP_NAME_OF_KERNEL, all[i].stack,
						  all[i].depth, text);
	}
	free(all);
	return rc;
}

/* The entry of a span that is still open and long enough already goes into the capture now. */
static int put_held_back(struct xsp_recorder *r, const struct xsp_held_back *h)
{
	if (r->end_ns < h->time_ns || r->end_ns - h->time_ns < r->options.attach.min_duration_ns)
		return 0;
	struct xsp_event e = {
		.time_ns = h->time_ns,
		.sp = h->sp,
		.tid = h->tid,
		.tgid = h->tgid,
		.probe = h->probe,
		.kind = XSP_EVENT_ENTRY,
		.flags = XSP_EVENT_SP_EXACT | XSP_EVENT_REPLAYED,
		.size = sizeof(e),
	};
	return xsp_recorder_put_event(r, &e);
}

int xsp_recorder_put_held_back(struct xsp_recorder *r)
{
	struct xsp_held_back *held = NULL;
	size_t count = 0;
	int rc = r->options.attach.min_duration_ns > 0
			 ? xsp_broker_held_back(r->broker, &held, &count)
			 : 0;

	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = put_held_back(r, &held[i]);
	free(held);
	return rc;
}
