/* SPDX-License-Identifier: BSD-2-Clause */
/* watched.c - what a recorder tells those who watch it while it records. */
#include "record/recorder_private.h"

#include <errno.h>
#include <stdlib.h>

int xsp_recorder_show(struct xsp_recorder *r)
{
	return r->writer != NULL ? xsp_capture_flush(r->writer) : 0;
}

struct xsp_recorder_facts xsp_recorder_facts(const struct xsp_recorder *r)
{
	struct xsp_recorder_facts f = {.gpu_ns = r->gpu_ns,
				       .gpu_busy_ns = r->gpu_busy_ns,
				       .failed = r->failed.pid,
				       .failed_status = r->failed.status};

	for (size_t i = 0; i < r->process_count; i++)
		f.resident += r->processes[i].memory.resident;
	return f;
}

/* `wait` or `times`: the other one is NULL. */
static int each_thread(struct xsp_recorder *r,
		       void (*wait)(void *ctx, const struct xsp_event_wait *wait),
		       void (*times)(void *ctx, const struct xsp_event_times *times), void *ctx)
{
	struct xsp_thread_now *rows = NULL;
	size_t count = 0;
	const int rc = r->options.attach.waits ? xsp_broker_times(r->broker, &rows, &count) : 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		if (times != NULL)
			times(ctx, &rows[i].times);
		else if (rows[i].open.head.kind != 0)
			wait(ctx, &rows[i].open);
	free(rows);
	return rc;
}

int xsp_recorder_open_waits(struct xsp_recorder *r,
			    void (*fn)(void *ctx, const struct xsp_event_wait *wait), void *ctx)
{
	return each_thread(r, fn, NULL, ctx);
}

int xsp_recorder_thread_times(struct xsp_recorder *r,
			      void (*fn)(void *ctx, const struct xsp_event_times *times), void *ctx)
{
	return each_thread(r, NULL, fn, ctx);
}
