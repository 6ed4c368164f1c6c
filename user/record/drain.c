/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/drain.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "record/frames.h"
#include "record/ring.h"
#include "record/unwind.h"

#define MAX_RINGS 64

/* Each ring is consumed by itself, so that a busy one cannot starve the others. */
struct ring {
	struct xsp_drain *drain;
	unsigned index;
	struct xsp_ring_buffer buffer;
};

#define LAST_HITS 4096
struct last_hit {
	uint32_t tid;
	uint64_t time_ns;
};

struct xsp_drain {
	struct ring ring[MAX_RINGS];
	size_t count;
	struct xsp_capture_writer *writer;
	xsp_drain_task_fn task;
	xsp_drain_resolve_fn resolve;
	xsp_drain_gpu_fn gpu;
	xsp_drain_sections_fn sections;
	xsp_drain_python_fn python;
	void *ctx;
	struct xsp_frames *frames; /* NULL: no stacks */
	struct xsp_unwinder *unwinder; /* NULL: no copies of stacks */
	const struct xsp_probe_price *prices;
	size_t price_count;
	struct xsp_costs *costs; /* NULL: nobody asks */
	double cold_ns;
	uint32_t detail_ns;
	uint64_t cold_sum_ns; /* of cost_ns */
	uint64_t cold_most_ns; /* if all that may have been cold was */
	struct last_hit last[LAST_HITS]; /* by the low bits of the thread's id */
	uint64_t events, calls, cost_ns;
	size_t left; /* events until run() has done its share */
	int error;
	bool discard;
};

static bool is_entry(uint8_t kind)
{
	return kind == XSP_EVENT_ENTRY || kind == XSP_EVENT_BEGIN || kind == XSP_EVENT_POINT ||
	       kind == XSP_EVENT_MEMORY || kind == XSP_EVENT_VALUE;
}

/* Of one hit the other event tells. */
static bool is_half(const struct xsp_event *e)
{
	return e->kind == XSP_EVENT_VALUE && e->size >= sizeof(struct xsp_event_value) &&
	       (((const struct xsp_event_value *)(const void *)e)->flags & XSP_VALUE_OF_RANGE);
}

/* What the thread did since its last hit has taken the caches over, the more the longer it was. */
#define WARM_NS 2000.0
#define COLD_NS 50000.0

static uint32_t cold_price(struct xsp_drain *d, const struct xsp_event *e)
{
	struct last_hit *last = &d->last[e->tid % LAST_HITS];
	double gap = last->tid == e->tid ? (double)(e->time_ns - last->time_ns) : COLD_NS;

	*last = (struct last_hit){.tid = e->tid, .time_ns = e->time_ns};
	if (gap < WARM_NS)
		return 0;
	d->cold_most_ns += (uint64_t)d->cold_ns;
	return (uint32_t)(gap < COLD_NS ? d->cold_ns * gap / COLD_NS : d->cold_ns);
}

/* Is the hit one of those whose time in the program the kernel side measures (XSP_COUNT_DETAIL_NS)? Ranges
 * and named spans get their sections from the program that reads names, which is not timed. */
static bool is_timed(const struct xsp_event *e)
{
	const struct xsp_event_range *entry = (const void *)e;

	if (!(e->flags & XSP_EVENT_SECTIONS))
		return false;
	if (e->kind == XSP_EVENT_EXIT || e->kind == XSP_EVENT_MEMORY)
		return true;
	return (e->kind == XSP_EVENT_ENTRY || e->kind == XSP_EVENT_POINT) &&
	       entry->name_hash == 0 && !(e->flags & XSP_EVENT_NAME_LOST);
}

static void add_price(struct xsp_drain *d, const struct xsp_event *e)
{
	const struct xsp_probe_price *p = &d->prices[e->probe];
	uint32_t cold = cold_price(d, e);
	uint32_t ns = (is_entry(e->kind) ? p->entry_ns : p->exit_ns) + cold;

	if (is_timed(e))
		ns += d->detail_ns;
	d->cold_sum_ns += cold;
	d->cost_ns += ns;
	if (d->costs != NULL)
		xsp_costs_add(d->costs, e->tid, e->probe, ns, is_entry(e->kind));
}

#define NAME_IS_ADDRESS (XSP_EVENT_NAME_CODE | XSP_EVENT_NAME_VTABLE | XSP_EVENT_NAME_LOST)

/* The address means nothing once the process is gone: its name goes into the capture. */
static int put_resolved(struct xsp_drain *d, const struct xsp_event_name *name)
{
	char text[1024] = "";

	if (name->head.size < sizeof(*name) + 2 * sizeof(uint64_t))
		return -EINVAL;
	d->resolve(d->ctx, name, text, sizeof(text));
	return xsp_capture_put_name(d->writer, name->name_hash, text);
}

/* It is no hit: whose stack it is stands in an event of its own. */
static int on_python(struct xsp_drain *d, const struct xsp_event *e)
{
	const struct xsp_event_python *p = (const void *)e;
	size_t frames = (e->size - sizeof(*p)) / sizeof(struct xsp_python_frame);

	if (d->python == NULL || e->size < sizeof(*p) || p->count > frames)
		return 0;
	d->error = d->python(d->ctx, p);
	return d->error < 0 ? d->error : --d->left == 0 ? -EAGAIN : 0;
}

static int on_event(void *ctx, void *data, size_t size)
{
	struct ring *ring = ctx;
	struct xsp_drain *d = ring->drain;
	const struct xsp_event *e = data;

	if (d->discard)
		return 0;
	if (size < sizeof(*e) || e->size > size || e->size < sizeof(*e))
		return 0; /* not ours: the kernel side writes whole events only */
	if (e->kind == XSP_EVENT_PYTHON)
		return on_python(d, e);
	if (d->unwinder != NULL)
		e = xsp_unwind(d->unwinder, e);
	int rc =
		(e->flags & XSP_EVENT_SECTIONS) && d->sections != NULL ? d->sections(d->ctx, e) : 0;
	if (rc == 0)
		rc = e->kind == XSP_EVENT_NAME && (e->flags & NAME_IS_ADDRESS) && d->resolve != NULL
			     ? put_resolved(d, data)
			     : xsp_capture_put_event(d->writer, ring->index, e, e->size);
	if (rc == 0 && d->frames != NULL)
		rc = xsp_frames_see(d->frames, e);
	if (rc < 0) {
		d->error = rc;
		return rc;
	}
	d->events++;
	d->calls += is_entry(e->kind) && !is_half(e);
	/* births and ends of threads are no hits of the first probe */
	if (e->probe < d->price_count && !is_half(e) && e->kind != XSP_EVENT_TASK)
		add_price(d, e);
	if (e->kind == XSP_EVENT_TASK && d->task != NULL &&
	    e->size >= sizeof(struct xsp_event_task))
		d->task(d->ctx, data);
	if (e->kind == XSP_EVENT_GPU && d->gpu != NULL && e->size >= sizeof(struct xsp_event_gpu))
		d->gpu(d->ctx, data);
	return --d->left == 0 ? -EAGAIN : 0;
}

int xsp_drain_new(const int *fds, size_t count, size_t ring_bytes,
		  struct xsp_capture_writer *writer, xsp_drain_task_fn task,
		  xsp_drain_resolve_fn resolve, void *ctx, struct xsp_drain **out,
		  struct xsp_error *err)
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
		if (xsp_ring_open(&r->buffer, fds[i], ring_bytes) < 0)
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
		xsp_ring_close(&d->ring[i].buffer);
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

void xsp_drain_set_python(struct xsp_drain *d, xsp_drain_python_fn fn)
{
	d->python = fn;
}

void xsp_drain_set_frames(struct xsp_drain *d, struct xsp_frames *f)
{
	d->frames = f;
}

void xsp_drain_set_unwinder(struct xsp_drain *d, struct xsp_unwinder *u)
{
	d->unwinder = u;
}

void xsp_drain_set_cold(struct xsp_drain *d, double cold_ns)
{
	d->cold_ns = cold_ns;
}

void xsp_drain_set_detail(struct xsp_drain *d, double detail_ns)
{
	d->detail_ns = (uint32_t)detail_ns;
}

void xsp_drain_cold(const struct xsp_drain *d, uint64_t *sum_ns, uint64_t *most_ns)
{
	*sum_ns = d->cold_sum_ns;
	*most_ns = d->cold_most_ns;
}

void xsp_drain_set_costs(struct xsp_drain *d, struct xsp_costs *costs)
{
	d->costs = costs;
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
		int rc = xsp_ring_consume(&d->ring[i].buffer, on_event, &d->ring[i]);
		if (d->error < 0)
			return d->error;
		if (rc < 0 && rc != -EAGAIN && rc != -EINTR)
			return rc;
	}
	return (long)(d->events - before);
}

void xsp_drain_discard(struct xsp_drain *d)
{
	d->discard = true;
	for (size_t i = 0; i < d->count; i++)
		xsp_ring_consume(&d->ring[i].buffer, on_event, &d->ring[i]);
	d->discard = false;
}

uint64_t xsp_drain_events(const struct xsp_drain *d)
{
	return d->events;
}

uint64_t xsp_drain_calls(const struct xsp_drain *d)
{
	return d->calls;
}

uint64_t xsp_drain_cost_ns(const struct xsp_drain *d)
{
	return d->cost_ns;
}
