/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/drain.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/frames.h"

#define MAX_RINGS 64

/* Each ring is consumed by itself, so that a busy one cannot starve the others. */
struct ring {
	struct xsp_drain *drain;
	unsigned index;
	struct ring_buffer *buffer;
};

struct xsp_drain {
	struct ring ring[MAX_RINGS];
	size_t count;
	struct xsp_capture_writer *writer;
	xsp_drain_task_fn task;
	xsp_drain_resolve_fn resolve;
	xsp_drain_gpu_fn gpu;
	xsp_drain_sections_fn sections;
	void *ctx;
	struct xsp_frames *frames; /* NULL: no stacks */
	const struct xsp_probe_price *prices;
	size_t price_count;
	uint64_t events, cost_ns;
	size_t left; /* events until run() has done its share */
	int error;
};

static bool is_entry(uint8_t kind)
{
	return kind == XSP_EVENT_ENTRY || kind == XSP_EVENT_BEGIN || kind == XSP_EVENT_POINT;
}

#define NAME_IS_ADDRESS (XSP_EVENT_NAME_CODE | XSP_EVENT_NAME_VTABLE)

/* The address means nothing once the process is gone: its name goes into the capture. */
static int put_resolved(struct xsp_drain *d, unsigned ring, const struct xsp_event_name *name)
{
	struct {
		struct xsp_event_name name;
		char text[XSP_NAME_MAX];
	} resolved = {.name = *name};
	char text[1024] = "";

	if (name->head.size < sizeof(*name) + sizeof(uint64_t))
		return -EINVAL;
	d->resolve(d->ctx, name, text, sizeof(text));
	size_t length = strlen(text);
	resolved.name.head.flags = length > XSP_NAME_MAX ? XSP_EVENT_NAME_CUT : 0;
	resolved.name.length = (uint32_t)(length > XSP_NAME_MAX ? XSP_NAME_MAX : length);
	resolved.name.head.size = sizeof(resolved);
	memcpy(resolved.text, text, resolved.name.length);
	return xsp_capture_put_event(d->writer, ring, &resolved, sizeof(resolved));
}

static int take_event(void *ctx, void *data, size_t size)
{
	struct ring *ring = ctx;
	struct xsp_drain *d = ring->drain;
	const struct xsp_event *e = data;

	if (size < sizeof(*e) || e->size > size || e->size < sizeof(*e))
		return 0; /* not ours: the kernel side writes whole events only */
	int rc =
		(e->flags & XSP_EVENT_SECTIONS) && d->sections != NULL ? d->sections(d->ctx, e) : 0;
	if (rc == 0)
		rc = e->kind == XSP_EVENT_NAME && (e->flags & NAME_IS_ADDRESS) && d->resolve != NULL
			     ? put_resolved(d, ring->index, data)
			     : xsp_capture_put_event(d->writer, ring->index, e, e->size);
	if (rc == 0 && d->frames != NULL)
		rc = xsp_frames_see(d->frames, e);
	if (rc < 0) {
		d->error = rc;
		return rc;
	}
	d->events++;
	if (e->probe < d->price_count)
		d->cost_ns += is_entry(e->kind) ? d->prices[e->probe].entry_ns
						: d->prices[e->probe].exit_ns;
	if (e->kind == XSP_EVENT_TASK && d->task != NULL &&
	    e->size >= sizeof(struct xsp_event_task))
		d->task(d->ctx, data);
	if (e->kind == XSP_EVENT_GPU && d->gpu != NULL && e->size >= sizeof(struct xsp_event_gpu))
		d->gpu(d->ctx, data);
	return --d->left == 0 ? -EAGAIN : 0;
}

int xsp_drain_new(const int *fds, size_t count, struct xsp_capture_writer *writer,
		  xsp_drain_task_fn task, xsp_drain_resolve_fn resolve, void *ctx,
		  struct xsp_drain **out, struct xsp_error *err)
{
	struct xsp_drain *d = calloc(1, sizeof(*d));

	if (d == NULL || count > MAX_RINGS)
		goto fail;
	d->writer = writer;
	d->task = task;
	d->resolve = resolve;
	d->ctx = ctx;
	for (size_t i = 0; i < count; i++) {
		struct ring *r = &d->ring[i];
		*r = (struct ring){.drain = d, .index = (unsigned)i};
		r->buffer = ring_buffer__new(fds[i], take_event, r, NULL);
		if (r->buffer == NULL)
			goto fail;
		d->count++;
	}
	*out = d;
	return 0;
fail:
	xsp_drain_free(d);
	return xsp_error_set(err, -ENOMEM, XSP_STATUS_KERNEL,
			     "the ring buffers could not be mapped: give a smaller --buffer");
}

void xsp_drain_free(struct xsp_drain *d)
{
	if (d == NULL)
		return;
	for (size_t i = 0; i < d->count; i++)
		ring_buffer__free(d->ring[i].buffer);
	free(d);
}

void xsp_drain_set_gpu(struct xsp_drain *d, xsp_drain_gpu_fn fn)
{
	d->gpu = fn;
}

void xsp_drain_set_sections(struct xsp_drain *d, xsp_drain_sections_fn fn)
{
	d->sections = fn;
}

void xsp_drain_set_frames(struct xsp_drain *d, struct xsp_frames *f)
{
	d->frames = f;
}

void xsp_drain_set_prices(struct xsp_drain *d, const struct xsp_probe_price *prices, size_t count)
{
	d->prices = prices;
	d->price_count = count;
}

long xsp_drain_run(struct xsp_drain *d, size_t most)
{
	uint64_t before = d->events;

	for (size_t i = 0; i < d->count; i++) {
		d->left = most;
		int rc = ring_buffer__consume(d->ring[i].buffer);
		if (d->error < 0)
			return d->error;
		if (rc < 0 && rc != -EAGAIN && rc != -EINTR)
			return rc;
	}
	return (long)(d->events - before);
}

uint64_t xsp_drain_events(const struct xsp_drain *d)
{
	return d->events;
}

uint64_t xsp_drain_cost_ns(const struct xsp_drain *d)
{
	return d->cost_ns;
}
