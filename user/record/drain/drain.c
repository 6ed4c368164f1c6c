/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/drain/drain.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/rows/grow.h"
#include "record/names/frames.h"
#include "record/drain/ring.h"
#include "record/names/unwind.h"
#include "record/rings/rings.h"

#define MAX_RINGS 64

/* Each ring is read alone, so that a busy one cannot starve the others. */
struct ring {
	struct xsp_drain *drain;
	unsigned index;
	struct xsp_ring_buffer buffer;
	/* how far it was written when the agents' rings were marked: so far it must be read before these are. 0: they are
	 * not marked */
	uint64_t marked;
};

#define LAST_HITS 4096
struct last_hit {
	uint32_t tid;
	uint64_t time_ns;
};

struct xsp_drain {
	struct ring ring[MAX_RINGS];
	size_t count;
	struct xsp_drain_options options;
	struct xsp_drain_totals totals;
	const struct xsp_probe_price *prices;
	size_t price_count;
	uint32_t detail_ns;
	double factors[2];
	struct last_hit last[LAST_HITS]; /* by the low bits of the thread's id */
	size_t left; /* events until run() has done its share */
	int error;
	bool discard;
	bool *met; /* by probe: it has been called */
	size_t met_room;
};

static bool is_entry(uint8_t kind)
{
	return kind == XSP_EVENT_ENTRY || kind == XSP_EVENT_BEGIN || kind == XSP_EVENT_POINT ||
	       kind == XSP_EVENT_MEMORY || kind == XSP_EVENT_VALUE;
}

/* The other event of the same hit counts. */
static bool is_half(const struct xsp_event *e)
{
	return e->kind == XSP_EVENT_VALUE && e->size >= sizeof(struct xsp_event_value) &&
	       (((const struct xsp_event_value *)(const void *)e)->flags & XSP_VALUE_OF_RANGE);
}

/* What the thread did since its last hit has taken its caches, the more the longer it was. */
#define WARM_NS 2000.0
#define COLD_NS 50000.0

static uint32_t cold_price(struct xsp_drain *d, const struct xsp_event *e)
{
	struct last_hit *last = &d->last[e->tid % LAST_HITS];
	double gap = last->tid == e->tid ? (double)(e->time_ns - last->time_ns) : COLD_NS;

	*last = (struct last_hit){.tid = e->tid, .time_ns = e->time_ns};
	if (gap < WARM_NS)
		return 0;
	const double cold_ns = d->options.cold_ns;
	d->totals.cold_most_ns += (uint64_t)cold_ns;
	return (uint32_t)(gap < COLD_NS ? cold_ns * gap / COLD_NS : cold_ns);
}

/* Does the kernel side measure this hit's time in the program (XSP_COUNT_DETAIL_NS)? Ranges and named spans get their
 * sections from the program that reads names, which is not timed. */
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
	struct xsp_drain_part *parts = d->totals.parts;
	const uint32_t cold = cold_price(d, e),
		       defined = is_entry(e->kind) ? p->entry_ns : p->exit_ns,
		       step = xsp_price_step(&d->options.steps, defined),
		       counted = defined - step + cold + (is_timed(e) ? d->detail_ns : 0);
	const uint64_t ns = (uint64_t)(d->factors[0] * counted + d->factors[1] * step);

	parts[0].defined_ns += defined - step;
	parts[0].counted_ns += counted;
	parts[1].defined_ns += step;
	parts[1].counted_ns += step;
	if (e->time_ns > d->totals.latest_ns)
		d->totals.latest_ns = e->time_ns;
	d->totals.cold_ns += cold;
	d->totals.cost_ns += ns;
	if (d->options.costs != NULL)
		xsp_costs_add(d->options.costs, e->tid, e->tgid, e->probe, ns, is_entry(e->kind));
}

/* An interrupt on the way out of a hit comes at most so long after the hit, also in a virtual machine. */
#define LEFT_NS 100000U

static void on_sample(struct xsp_drain *d, const struct xsp_event_sample *e)
{
	struct xsp_drain_part *parts = d->totals.parts, *in = &parts[e->hit == XSP_HIT_STEP];
	const struct last_hit *last = &d->last[e->head.tid % LAST_HITS];

	for (int i = 0; i < 2; i++) {
		parts[i].defined_then_ns = parts[i].defined_ns;
		parts[i].counted_then_ns = parts[i].counted_ns;
	}
	if (e->hit == XSP_HIT_NONE ||
	    (e->hit == XSP_HIT_LEFT &&
	     (last->tid != e->head.tid || e->head.time_ns - last->time_ns > LEFT_NS)))
		return;
	in->samples++;
	in->sampled_ns += e->period_ns;
}

#define NAME_IS_ADDRESS (XSP_EVENT_NAME_CODE | XSP_EVENT_NAME_VTABLE | XSP_EVENT_NAME_LOST)

/* The address means nothing once the process is gone: its name goes into the capture. */
static int put_resolved(struct xsp_drain *d, const struct xsp_event_name *name)
{
	char text[1024] = "";

	if (name->head.size < sizeof(*name) + 2 * sizeof(uint64_t))
		return -EINVAL;
	d->options.resolve(d->options.ctx, name, text, sizeof(text));
	return xsp_capture_put_name(d->options.writer, name->name_hash, text);
}

/* No hit: an event of its own has the stack's owner. */
static int see_python(struct xsp_drain *d, const struct xsp_event *e)
{
	const struct xsp_event_python *p = (const void *)e;
	size_t frames = (e->size - sizeof(*p)) / sizeof(struct xsp_python_frame);

	if (d->options.python == NULL || e->size < sizeof(*p) || p->count > frames)
		return 0;
	d->error = d->options.python(d->options.ctx, p);
	return d->error;
}

static int on_python(struct xsp_drain *d, const struct xsp_event *e)
{
	const int rc = see_python(d, e);

	return rc < 0 ? rc : --d->left == 0 ? -EAGAIN : 0;
}

/* ---- agents ---- */

/* What it costs the agent to make it. */
static uint32_t agent_price(const struct xsp_event *e)
{
	const struct xsp_section *s = NULL;
	uint32_t ns = XSP_AGENT_RECORD_NS;

	while ((s = xsp_event_next_section(e, s)) != NULL)
		ns += s->type == XSP_SECTION_ARGS     ? XSP_AGENT_ARGS_NS
		      : s->type == XSP_SECTION_PYTHON ? XSP_AGENT_PYTHON_NS
						      : 0;
	return ns;
}

/* An agent's event, in the stream of its thread. The brake leaves its probe alone. */
static int on_agent_event(void *ctx, const struct xsp_event *e)
{
	struct xsp_drain *d = ctx;
	const struct xsp_drain_options *o = &d->options;
	const bool is_name = e->kind == XSP_EVENT_NAME,
		   args = e->kind == XSP_EVENT_ENTRY && (e->flags & XSP_EVENT_SECTIONS);

	if (e->kind == XSP_EVENT_PYTHON)
		return see_python(d, e);
	int rc = args && o->sections != NULL ? o->sections(o->ctx, e) : 0;

	if (rc == 0)
		rc = is_name && (e->flags & NAME_IS_ADDRESS) != 0
			     ? put_resolved(d, (const void *)e)
			     : xsp_capture_put_event(o->writer, e->tid & (unsigned)(d->count - 1),
						     e, e->size);
	if (rc < 0) {
		d->error = rc;
		return rc;
	}
	if (is_name) /* no hit: the event that follows is one */
		return 0;
	d->totals.events++;
	d->totals.calls += is_entry(e->kind);
	const uint32_t cost_ns = o->called_back ? XSP_AGENT_CALLBACK_NS : agent_price(e);
	d->totals.cost_ns += cost_ns;
	d->totals.agents_ns += cost_ns;
	if (e->time_ns > d->totals.latest_ns)
		d->totals.latest_ns = e->time_ns;
	if (o->costs != NULL)
		xsp_costs_add(o->costs, e->tid, e->tgid, e->probe, cost_ns, is_entry(e->kind));
	if (o->calls != NULL)
		xsp_calls_see(o->calls, e);
	return 0;
}

/* Before an event of the kernel side: the thread's calls before it; and whose ring a new thread's will be. */
static int catch_up(struct xsp_drain *d, const struct xsp_event *e)
{
	const struct xsp_event_task *task = (const void *)e;

	if (d->options.agents == NULL)
		return 0;
	if (e->kind == XSP_EVENT_TASK && e->size >= sizeof(*task) && task->what == XSP_TASK_FORK)
		xsp_agent_rings_thread(d->options.agents, (pid_t)e->tgid, task->ns_tid, e->tid);
	return xsp_agent_rings_before(d->options.agents, (pid_t)e->tgid, e->tid, e->time_ns);
}

static void mark_agents(struct xsp_drain *d)
{
	uint64_t streams = 0;

	for (size_t i = 0; i < d->count; i++)
		streams |= d->ring[i].marked == 0 ? 1ULL << i : 0;
	xsp_agent_rings_mark(d->options.agents, streams);
	for (size_t i = 0; i < d->count; i++)
		if (streams >> i & 1)
			d->ring[i].marked = 1 + xsp_ring_written(&d->ring[i].buffer);
}

static int flush_agents(struct xsp_drain *d)
{
	uint64_t streams = 0;

	for (size_t i = 0; i < d->count; i++) {
		if (!xsp_ring_is_read(&d->ring[i].buffer, d->ring[i].marked - 1))
			continue;
		streams |= 1ULL << i;
		d->ring[i].marked = 0;
	}
	return xsp_agent_rings_flush(d->options.agents, streams);
}

/* ---- events of the kernel side ---- */

/* A range that counts (ProfilerStep#17) has a new name each time: that is none. */
static bool is_numbered(const struct xsp_event *e)
{
	const struct xsp_event_name *name = (const void *)e;
	const char *text = (const char *)(name + 1);

	if (e->size < sizeof(*name) || name->length > e->size - sizeof(*name))
		return true;
	for (uint32_t i = 0; i < name->length; i++)
		if (text[i] >= '0' && text[i] <= '9')
			return true;
	return false;
}

static void count_name(struct xsp_drain *d, const struct xsp_event *e)
{
	if (e->kind == XSP_EVENT_NAME)
		d->totals.names += !(e->flags & NAME_IS_ADDRESS) && !is_numbered(e);
	if (e->kind != XSP_EVENT_ENTRY || e->probe >= d->price_count ||
	    xsp_grow_zeroed(&d->met, &d->met_room, d->price_count) < 0)
		return;
	d->totals.names += !d->met[e->probe];
	d->met[e->probe] = true;
}

static int on_event(void *ctx, void *data, size_t size)
{
	struct ring *ring = ctx;
	struct xsp_drain *d = ring->drain;
	const struct xsp_drain_options *o = &d->options;
	const struct xsp_event *e = data;

	if (d->discard)
		return 0;
	if (size < sizeof(*e) || e->size > size || e->size < sizeof(*e))
		return 0; /* damage: the kernel side writes whole events only */
	if (e->kind == XSP_EVENT_PYTHON)
		return on_python(d, e);
	if (catch_up(d, e) < 0)
		return d->error;
	if (o->unwinder != NULL)
		e = xsp_unwind(o->unwinder, e);
	int rc =
		(e->flags & XSP_EVENT_SECTIONS) && o->sections != NULL ? o->sections(o->ctx, e) : 0;
	if (rc == 0)
		rc = e->kind == XSP_EVENT_NAME && (e->flags & NAME_IS_ADDRESS) && o->resolve != NULL
			     ? put_resolved(d, data)
			     : xsp_capture_put_event(o->writer, ring->index, e, e->size);
	if (rc == 0 && o->frames != NULL)
		rc = xsp_frames_see(o->frames, e);
	if (rc < 0) {
		d->error = rc;
		return rc;
	}
	d->totals.events++;
	d->totals.calls += is_entry(e->kind) && !is_half(e);
	if (d->options.counts_names)
		count_name(d, e);
	/* starts and ends of threads are no hits of the first probe */
	if (e->probe < d->price_count && !is_half(e) && e->kind != XSP_EVENT_TASK)
		add_price(d, e);
	if (o->calls != NULL)
		xsp_calls_see(o->calls, e);
	if (e->kind == XSP_EVENT_TASK && o->task != NULL &&
	    e->size >= sizeof(struct xsp_event_task))
		o->task(o->ctx, data);
	if (e->kind == XSP_EVENT_SAMPLE && e->size >= sizeof(struct xsp_event_sample))
		on_sample(d, (const void *)e);
	if (e->kind == XSP_EVENT_GPU && o->gpu != NULL && e->size >= sizeof(struct xsp_event_gpu))
		o->gpu(o->ctx, data);
	return --d->left == 0 ? -EAGAIN : 0;
}

int xsp_drain_new(const struct xsp_drain_options *options, struct xsp_drain **out,
		  struct xsp_error *err)
{
	struct xsp_drain *d = calloc(1, sizeof(*d));

	if (d == NULL || options->ring_count > MAX_RINGS)
		goto fail;
	d->options = *options;
	d->factors[0] = d->factors[1] = 1;
	for (size_t i = 0; i < options->ring_count; i++) {
		struct ring *r = &d->ring[i];
		*r = (struct ring){.drain = d, .index = (unsigned)i};
		if (xsp_ring_open(&r->buffer, options->rings[i], options->ring_bytes) < 0)
			goto fail;
		d->count++;
	}
	if (d->options.agents != NULL)
		xsp_agent_rings_put_to(d->options.agents, on_agent_event, d);
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
	free(d->met);
	free(d);
}

void xsp_drain_set_detail(struct xsp_drain *d, double detail_ns)
{
	d->detail_ns = (uint32_t)detail_ns;
}

void xsp_drain_set_factors(struct xsp_drain *d, double all, double step)
{
	d->factors[0] = all;
	d->factors[1] = step;
}

void xsp_drain_set_prices(struct xsp_drain *d, const struct xsp_probe_price *prices, size_t count)
{
	d->prices = prices;
	d->price_count = count;
}

long xsp_drain_run(struct xsp_drain *d, size_t most)
{
	const uint64_t before = d->totals.events;

	if (d->options.agents != NULL)
		mark_agents(d);
	for (size_t i = 0; i < d->count; i++) {
		d->left = most;
		int rc = xsp_ring_consume(&d->ring[i].buffer, on_event, &d->ring[i]);
		if (d->error < 0)
			return d->error;
		if (rc < 0 && rc != -EAGAIN && rc != -EINTR)
			return rc;
	}
	const int failed = d->options.agents != NULL ? flush_agents(d) : 0;
	return failed < 0 ? failed : (long)(d->totals.events - before);
}

void xsp_drain_discard(struct xsp_drain *d)
{
	d->discard = true;
	for (size_t i = 0; i < d->count; i++)
		xsp_ring_consume(&d->ring[i].buffer, on_event, &d->ring[i]);
	d->discard = false;
}

const struct xsp_drain_totals *xsp_drain_totals(const struct xsp_drain *d)
{
	return &d->totals;
}
