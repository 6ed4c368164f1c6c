/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watched.c - what the probes cost each thread: the price of each hit comes from calibration, the hits from events and
 * from the kernel's count of those without one, CPU times from /proc.
 */
#include "record/brake/overhead.h"

#include <stdlib.h>
#include <unistd.h>

#include "procfs/procfs.h"
#include "xsptrace/brake.h"

/* A waiting thread has time to spare: this part of its waiting counts as its own work, of which probes may take the
 * budget's share. */
#define SPARE 0.25
/* What --waits costs a thread each time that it gets a CPU: the switch, the wakeup, and the kernel's work around them
 * (docs/usage.md). */
#define WAITS_NS 700
/* CPU times are read at least this often. */
#define QUIET_NS 200000000ULL

static void forget_schedstat(struct watched *w)
{
	if (w->schedstat >= 0)
		close(w->schedstat);
	w->schedstat = -1;
}

void xsp_watched_free(struct xsp_overhead *o)
{
	for (size_t i = 0; i < o->count; i++)
		forget_schedstat(&o->threads[i]);
	free(o->threads);
	xsp_u64map_free(&o->by_tid);
}

static struct watched met(const struct xsp_overhead *o, uint32_t tid)
{
	return (struct watched){
		.tid = tid, .schedstat = -1, .met_ns = o->look_ns, .since_ns = o->look_ns};
}

static struct watched *watch(struct xsp_overhead *o, uint32_t tid)
{
	const struct watched first = met(o, tid);

	return xsp_u64map_element(&o->by_tid, tid, &o->threads, &o->room, &o->count, &first);
}

void xsp_overhead_meet(struct xsp_recorder *r, pid_t pid, pid_t tid)
{
	struct xsp_overhead *o = r->overheads;

	if (o == NULL || !(r->options.attach.defaults & (XSP_DEFAULT_WAITS | XSP_DEFAULT_SAMPLES)))
		return;
	if (o->count >= o->met_max && xsp_u64map_get(&o->by_tid, (uint64_t)tid) == NULL) {
		o->unmet = true;
		return;
	}
	struct watched *w = watch(o, (uint32_t)tid);
	if (w == NULL)
		return;
	if (w->gone) /* the number came again */
		*w = met(o, (uint32_t)tid);
	w->pid = pid;
}

uint64_t xsp_with_spare(uint64_t cpu_ns, uint64_t wall_ns)
{
	return cpu_ns + (wall_ns > cpu_ns ? (uint64_t)(SPARE * (double)(wall_ns - cpu_ns)) : 0);
}

uint64_t xsp_watched_cpu_ns(const struct watched *w)
{
	return xsp_with_spare(w->all_cpu_ns, xsp_passed(w->read_ns, w->met_ns));
}

double xsp_watched_slowdown(const struct watched *w)
{
	return xsp_brake_slowdown(w->all_probe_ns, xsp_watched_cpu_ns(w));
}

void xsp_watched_drop_ended(struct xsp_overhead *o)
{
	size_t kept = 0;

	for (size_t i = 0; i < o->count; i++) {
		const struct watched *w = &o->threads[i];
		if (!w->gone || w->probe_ns > 0)
			o->threads[kept++] = *w;
		else if (w->all_cpu_ns >= JUDGED_CPU_NS &&
			 xsp_watched_slowdown(w) > xsp_watched_slowdown(&o->ended))
			o->ended = *w;
	}
	if (kept == o->count)
		return;
	o->count = kept;
	xsp_u64map_free(&o->by_tid);
	o->by_tid = (struct xsp_u64map){0};
	for (size_t i = 0; i < kept; i++)
		if (xsp_u64map_set(&o->by_tid, o->threads[i].tid, (uint32_t)i) < 0)
			return; /* counted twice from now on: an estimate */
}

static void open_schedstat(const struct xsp_recorder *r, struct watched *w)
{
	const struct xsp_opener *o = xsp_broker_opener(r->broker);

	for (size_t i = 0; i < r->process_count && w->schedstat < 0; i++)
		if (w->pid == 0 || w->pid == r->processes[i].pid)
			w->schedstat = xsp_procfs_schedstat(o, r->processes[i].pid, (pid_t)w->tid);
}

/* What the defaults cost a thread beside its probes. */
static void add_defaults(const struct xsp_recorder *r, struct watched *w, uint64_t times,
			 uint64_t cpu_ns)
{
	const struct xsp_attach_options *o = &r->options.attach;
	const uint64_t waits = o->defaults & XSP_DEFAULT_WAITS ? times * WAITS_NS : 0;
	const uint64_t samples =
		o->defaults & XSP_DEFAULT_SAMPLES
			? (uint64_t)((double)cpu_ns * 1e-9 * o->sample_hz * r->sample_ns)
			: 0;

	w->waits_ns += waits;
	w->samples_ns += samples;
	w->probe_ns += waits + samples;
	w->all_probe_ns += waits + samples;
}

/* CPU time since the last reading; for a new thread, no more than since the last look. */
static void read_cpu(const struct xsp_recorder *r, struct watched *w, uint64_t now)
{
	const uint64_t before = w->read_ns != 0 ? w->read_ns : r->overheads->look_ns;
	const uint64_t wall = now - before;
	uint64_t cpu, queued, times, delta;

	if (!w->gone && w->schedstat < 0)
		open_schedstat(r, w);
	if (w->schedstat < 0 || xsp_procfs_cpu_ns(w->schedstat, &cpu, &queued, &times) < 0) {
		w->gone = true;
		forget_schedstat(w);
		return;
	}
	delta = cpu > w->cpu_ns ? cpu - w->cpu_ns : 0;
	if (delta > wall)
		delta = wall;
	w->cpu_ns = cpu;
	/* time in line for a CPU is no time to spare: as if it had not passed */
	if (w->read_ns != 0 && queued > w->queued_ns) {
		w->since_ns += queued - w->queued_ns;
		w->met_ns += queued - w->queued_ns;
	}
	w->counted = w->read_ns != 0;
	if (w->counted)
		add_defaults(r, w, times - w->times, delta);
	w->times = times;
	w->queued_ns = queued;
	w->read_ns = now;
	w->own_cpu_ns += delta;
	w->all_cpu_ns += delta;
}

void xsp_overhead_start(struct xsp_recorder *r)
{
	struct xsp_overhead *o = r->overheads;

	if (o == NULL)
		return;
	o->look_ns = o->window_ns = r->start_ns;
	xsp_window_begins(o, r->start_ns);
	for (size_t i = 0; i < o->count; i++) {
		o->threads[i].met_ns = o->threads[i].since_ns = r->start_ns;
		read_cpu(r, &o->threads[i], r->start_ns);
	}
}

void xsp_watched_read_quiet(struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;

	for (size_t i = 0; i < o->count; i++)
		if (!o->threads[i].gone && now - o->threads[i].read_ns >= QUIET_NS)
			read_cpu(r, &o->threads[i], now);
}

static void add_unseen(struct xsp_recorder *r)
{
	struct xsp_overhead *o = r->overheads;
	long n = xsp_broker_unseen(r->broker, o->unseen, XSP_UNSEEN_MAX);

	for (long i = 0; i < n; i++) {
		const struct xsp_attach_unseen *u = &o->unseen[i];
		xsp_costs_add(&o->fresh, u->tid, u->probe, u->ns, 0);
		o->unseen_ns += u->ns;
	}
}

void xsp_watched_add_figures(struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;

	add_unseen(r);
	/* for later events; others see that the broker is gone */
	xsp_recorder_price_details(r);
	for (size_t i = 0; i < o->fresh.count; i++) {
		const struct xsp_cost *c = &o->fresh.rows[i];
		struct watched *w = watch(o, c->tid);
		xsp_costs_add(&o->costs, c->tid, c->probe, c->ns, c->calls);
		if (w == NULL)
			continue;
		if (w->gone && w->read_ns + JUDGED_NS < now) /* the number came again */
			*w = met(o, c->tid);
		w->probe_ns += c->ns;
		w->all_probe_ns += c->ns;
	}
	xsp_costs_clear(&o->fresh);
	for (size_t i = 0; i < o->count; i++)
		if (o->threads[i].probe_ns > 0)
			read_cpu(r, &o->threads[i], now);
	o->look_ns = now;
}

static void begin_interval(struct watched *w, uint64_t now)
{
	w->since_ns = now;
	w->probe_ns = w->own_cpu_ns = w->waits_ns = w->samples_ns = 0;
	w->judged = false;
}

static bool is_judged(const struct xsp_overhead *o, uint32_t tid)
{
	const uint32_t *at = xsp_u64map_get(&o->by_tid, tid);

	return at == NULL || o->threads[*at].judged;
}

void xsp_watched_forget_judged(struct xsp_overhead *o, uint64_t now)
{
	struct xsp_costs left = {0};

	for (size_t i = 0; i < o->costs.count; i++) {
		const struct xsp_cost *c = &o->costs.rows[i];
		if (!is_judged(o, c->tid))
			xsp_costs_add(&left, c->tid, c->probe, c->ns, c->calls);
	}
	xsp_costs_free(&o->costs);
	o->costs = left;
	for (size_t i = 0; i < o->count; i++)
		if (o->threads[i].judged)
			begin_interval(&o->threads[i], now);
}

void xsp_watched_begin_anew(struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;

	xsp_watched_add_figures(r, now);
	for (size_t i = 0; i < o->count; i++) {
		read_cpu(r, &o->threads[i], now);
		begin_interval(&o->threads[i], now);
	}
	xsp_costs_clear(&o->costs);
	o->look_ns = now;
}
