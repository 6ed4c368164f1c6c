/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watched.c - what the probes cost each thread: the price of each hit comes from calibration, the hits from events and
 * from the kernel's count of those without one, CPU times from /proc.
 */
#include "record/brake/overhead.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rows/grow.h"
#include "procfs/procfs.h"
#include "xsptrace/brake.h"

/* A waiting thread has time to spare: this part of its waiting counts as its own work, of which probes may take the
 * budget's share. */
#define SPARE 0.25
/* What --waits costs a thread each time that it gets a CPU: the switch, the wakeup, and the kernel's work around them
 * (docs/usage.md). */
#define WAITS_NS 700
/* CPU times are read at least this often; those of debtors while they are waited for. */
#define QUIET_NS 200000000ULL
#define DEBTORS_NS 20000000ULL
/* Without hits for so long, a thread's number may have come again. */
#define AGAIN_NS 1000000000ULL

static void forget_schedstat(struct watched *w)
{
	if (w->schedstat >= 0)
		close(w->schedstat);
	w->schedstat = -1;
}

void xsp_watched_free(struct xsp_overhead *o)
{
	for (size_t i = 0; i < o->threads.count; i++)
		forget_schedstat(&o->threads.rows[i]);
	xsp_tally_free(&o->threads);
}

static struct watched met(const struct xsp_overhead *o, uint32_t tid)
{
	return (struct watched){.tid = tid,
				.pid = tid & XSP_BRAKE_WHOLE ? (pid_t)(tid & ~XSP_BRAKE_WHOLE) : 0,
				.processors = tid == XSP_BRAKE_WHOLE ? o->processors : 1,
				.schedstat = -1,
				.met_ns = o->look_ns,
				.begun_ns = o->look_ns,
				.latest_ns = o->latest_ns,
				.since_ns = o->look_ns};
}

static struct watched *watch(struct xsp_overhead *o, uint32_t tid)
{
	const struct watched first = met(o, tid);

	return xsp_tally_row(&o->threads, tid, &first);
}

/* NULL: it is not watched. */
static struct watched *find(const struct xsp_overhead *o, uint32_t tid)
{
	return xsp_tally_find(&o->threads, tid);
}

const char *xsp_watched_name(char text[WATCHED_NAME_SIZE], uint32_t tid)
{
	if (tid == XSP_BRAKE_WHOLE)
		return "the processes";
	snprintf(text, WATCHED_NAME_SIZE, "%s %u", tid & XSP_BRAKE_WHOLE ? "process" : "thread",
		 tid & ~XSP_BRAKE_WHOLE);
	return text;
}

/* Who pays for what a thread spends: it, its process, and all processes. Returns how many. */
static unsigned payers(const struct xsp_recorder *r, uint32_t tid, uint32_t pid, uint32_t out[3])
{
	unsigned n = 0;

	out[n++] = tid;
	if (pid != 0)
		out[n++] = XSP_BRAKE_WHOLE | pid;
	if (r->process_count > 1)
		out[n++] = XSP_BRAKE_WHOLE;
	return n;
}

void xsp_overhead_meet(struct xsp_recorder *r, pid_t pid, pid_t tid)
{
	struct xsp_overhead *o = r->overheads;

	if (o == NULL || !(r->options.attach.defaults & (XSP_DEFAULT_WAITS | XSP_DEFAULT_SAMPLES)))
		return;
	if (o->threads.count >= o->met_max && find(o, (uint32_t)tid) == NULL) {
		o->unmet = true;
		return;
	}
	watch(o, XSP_BRAKE_WHOLE | (uint32_t)pid);
	struct watched *w = watch(o, (uint32_t)tid);
	if (w == NULL)
		return;
	if (w->gone) /* the number came again */
		*w = met(o, (uint32_t)tid);
	w->pid = pid;
}

/* The threads of a process have the spare time of one thread. */
uint64_t xsp_with_spare(const struct watched *w, uint64_t cpu_ns, uint64_t wall_ns)
{
	return cpu_ns + (uint64_t)(SPARE * (double)xsp_passed(w->processors * wall_ns, cpu_ns));
}

uint64_t xsp_watched_cpu_ns(const struct watched *w)
{
	return xsp_with_spare(w, w->all_cpu_ns, xsp_passed(w->read_ns, w->met_ns));
}

double xsp_watched_slowdown(const struct watched *w)
{
	return xsp_brake_slowdown(w->all_probe_ns, xsp_watched_cpu_ns(w));
}

void xsp_watched_drop_ended(struct xsp_overhead *o)
{
	size_t kept = 0;

	for (size_t i = 0; i < o->threads.count; i++) {
		const struct watched *w = &o->threads.rows[i];
		if (!w->gone || w->probe_ns > 0)
			o->threads.rows[kept++] = *w;
		else if (w->all_cpu_ns >= SHOWN_CPU_NS &&
			 xsp_watched_slowdown(w) > xsp_watched_slowdown(&o->ended))
			o->ended = *w;
	}
	if (kept == o->threads.count)
		return;
	xsp_tally_begin_anew(&o->threads);
	o->threads.count = kept;
	for (size_t i = 0; i < kept; i++)
		if (xsp_tally_alias(&o->threads, o->threads.rows[i].tid, &o->threads.rows[i]) < 0)
			return; /* counted twice from now on: an estimate */
}

static void open_schedstat(const struct xsp_recorder *r, struct watched *w)
{
	const struct xsp_opener *o = xsp_broker_opener(r->broker);

	for (size_t i = 0; i < r->process_count && w->schedstat < 0; i++) {
		const pid_t pid = r->processes[i].pid;
		if (w->pid == 0 || w->pid == pid)
			w->schedstat = xsp_procfs_schedstat(o, pid, (pid_t)w->tid);
		if (w->schedstat >= 0)
			w->pid = pid;
	}
}

static void charge(const struct xsp_overhead *o, struct watched *w, uint64_t ns)
{
	w->probe_ns += ns;
	w->all_probe_ns += ns;
	xsp_brake_spend(&w->debt, o->budget, ns);
}

/* What the defaults cost a thread beside its probes. */
static void add_defaults(const struct xsp_recorder *r, const struct watched *w, uint64_t times,
			 uint64_t cpu_ns)
{
	const struct xsp_attach_options *o = &r->options.attach;
	const uint64_t waits = o->defaults & XSP_DEFAULT_WAITS ? times * WAITS_NS : 0;
	const uint64_t samples =
		o->defaults & XSP_DEFAULT_SAMPLES
			? (uint64_t)((double)cpu_ns * 1e-9 * o->sample_hz * r->sample_ns)
			: 0;

	uint32_t ids[3];
	const unsigned n = payers(r, w->tid, (uint32_t)w->pid, ids);
	for (unsigned i = 0; i < n; i++) {
		struct watched *payer = find(r->overheads, ids[i]);
		if (payer == NULL)
			continue;
		payer->waits_ns += waits;
		payer->samples_ns += samples;
		charge(r->overheads, payer, waits + samples);
	}
}

struct times {
	uint64_t cpu, queued, count; /* count: how often it got a CPU */
};

static bool read_times(const struct xsp_recorder *r, struct watched *w, struct times *t)
{
	if (w->tid == XSP_BRAKE_WHOLE) {
		*t = (struct times){.cpu = r->overheads->processes_cpu_ns};
		return true;
	}
	if (w->tid & XSP_BRAKE_WHOLE) {
		*t = (struct times){0};
		return xsp_process_cpu_ns(w->pid, &t->cpu);
	}
	if (!w->gone && w->schedstat < 0)
		open_schedstat(r, w);
	return w->schedstat >= 0 &&
	       xsp_procfs_cpu_ns(w->schedstat, &t->cpu, &t->queued, &t->count) == 0;
}

static void add_cpu(struct xsp_overhead *o, struct watched *w, uint64_t cpu_ns, uint64_t wall_ns)
{
	w->own_cpu_ns += cpu_ns;
	w->all_cpu_ns += cpu_ns;
	xsp_brake_earn(&w->debt, o->budget, xsp_with_spare(w, cpu_ns, wall_ns));
	if (w->tid & XSP_BRAKE_WHOLE && w->pid != 0)
		o->processes_cpu_ns += cpu_ns;
}

/* CPU time since the last reading; for a new thread, no more than since the last look. */
static void read_cpu(const struct xsp_recorder *r, struct watched *w, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;
	const uint64_t before = w->read_ns != 0 ? w->read_ns : o->look_ns;
	const uint64_t wall = xsp_passed(now, before);
	uint64_t delta, queued = 0;
	struct times t = {0};

	if (!read_times(r, w, &t)) {
		w->gone = true;
		forget_schedstat(w);
		return;
	}
	delta = xsp_passed(t.cpu, w->cpu_ns);
	if (delta > wall * (w->tid & XSP_BRAKE_WHOLE ? o->processors : 1))
		delta = wall * (w->tid & XSP_BRAKE_WHOLE ? o->processors : 1);
	/* time in line for a CPU is no time to spare: as if it had not passed */
	if (w->read_ns != 0)
		queued = xsp_passed(t.queued, w->queued_ns);
	w->since_ns += queued;
	w->met_ns += queued;
	w->counted = w->read_ns != 0;
	if (w->counted && !(w->tid & XSP_BRAKE_WHOLE))
		add_defaults(r, w, t.count - w->times, delta);
	w->cpu_ns = t.cpu;
	w->times = t.count;
	w->queued_ns = t.queued;
	w->read_ns = now;
	add_cpu(o, w, delta, xsp_passed(wall, queued));
}

void xsp_overhead_start(struct xsp_recorder *r)
{
	struct xsp_overhead *o = r->overheads;

	if (o == NULL)
		return;
	o->look_ns = o->quiet_ns = o->window_ns = o->latest_ns = r->start_ns;
	if (o->schedule.origin_ns == 0)
		o->schedule.origin_ns = r->start_ns;
	o->window_until_ns =
		o->schedule.length_ns +
		(r->start_ns > o->schedule.origin_ns ? r->start_ns : o->schedule.origin_ns);
	for (size_t i = 0; i < r->process_count; i++)
		watch(o, XSP_BRAKE_WHOLE | (uint32_t)r->processes[i].pid);
	for (size_t i = 0; i < o->threads.count; i++) {
		o->threads.rows[i].met_ns = r->start_ns;
		read_cpu(r, &o->threads.rows[i], r->start_ns);
	}
	xsp_watched_begin(o, true, r->start_ns);
	xsp_window_begins(o, r->start_ns);
}

/* Some at a time: what --waits cost them is not due to the process all at once. */
void xsp_watched_read_quiet(struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;
	size_t due =
		(size_t)((double)o->threads.count * (double)(now - o->quiet_ns) / (double)QUIET_NS);

	if (due == 0)
		return;
	o->quiet_ns = now;
	for (due = due < o->threads.count ? due : o->threads.count; due > 0; due--) {
		struct watched *w = &o->threads.rows[++o->next % o->threads.count];
		if (!w->gone)
			read_cpu(r, w, now);
	}
}

static void add_unseen(struct xsp_recorder *r)
{
	struct xsp_overhead *o = r->overheads;
	long n = xsp_broker_unseen(r->broker, o->unseen, XSP_UNSEEN_MAX);

	for (long i = 0; i < n; i++) {
		const struct xsp_attach_unseen *u = &o->unseen[i];
		const struct watched *w = find(o, u->tid);
		const pid_t pid = w != NULL && w->pid != 0 ? w->pid
				  : r->process_count == 1  ? r->processes[0].pid
							   : 0;
		xsp_costs_add(&o->fresh, u->tid, (uint32_t)pid, u->probe, u->ns, 0);
		o->unseen_ns += u->ns;
	}
}

static void add_cost(struct xsp_overhead *o, uint32_t tid, const struct xsp_cost *c, uint64_t now)
{
	struct watched *w = watch(o, tid);

	xsp_costs_add(&o->costs, tid, c->pid, c->probe, c->ns, c->calls);
	if (w == NULL)
		return;
	if (w->gone && w->read_ns + AGAIN_NS < now) /* the number came again */
		*w = met(o, tid);
	charge(o, w, c->ns);
}

static bool may_go_beside_agent(const struct xsp_recorder *r, const struct xsp_probe *p)
{
	return p->action == XSP_ACTION_SPAN ||
	       (p->action == XSP_ACTION_NAMED_SPAN &&
		xsp_broker_method(r->broker) == XSP_ATTACH_UPROBE_MULTI);
}

bool xsp_watched_may_go(void *recorder, uint32_t probe)
{
	const struct xsp_recorder *r = recorder;
	const struct xsp_probe *p = xsp_recorder_probe(recorder, probe);

	/* what the agent records costs too little for that; and rather than record all of it in windows, other spans
	 * are released beside it */
	if (p == NULL || xsp_operators_are_by_agent(recorder, probe))
		return false;
	return strcmp(p->provider, xsp_provider_function.name) == 0 ||
	       (xsp_operators_have_agent(r) && may_go_beside_agent(r, p)) ||
	       xsp_window_may_release(recorder, probe);
}

unsigned char *xsp_watched_met(struct xsp_overhead *o, uint32_t probe)
{
	return xsp_grow_zeroed(&o->met, &o->met_room, (size_t)probe + 1) == 0 ? &o->met[probe]
									      : NULL;
}

void xsp_watched_add_figures(struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;
	const struct xsp_drain_totals *sum = xsp_drain_totals(r->drain);

	add_unseen(r);
	/* for later events; others see that the broker is gone */
	xsp_recorder_price_details(r);
	/* nothing came: nothing is late */
	o->latest_ns = sum->latest_ns > o->latest_ns ? sum->latest_ns : now;
	for (size_t i = 0; i < o->fresh.of.count; i++) {
		const struct xsp_cost *c = &o->fresh.of.rows[i];
		unsigned char *state = xsp_watched_met(o, c->probe);
		uint32_t ids[3];
		const unsigned n = payers(r, c->tid, c->pid, ids);
		if (state != NULL && *state == UNMET)
			*state = MET;
		for (unsigned k = 0; k < n; k++)
			add_cost(o, ids[k], c, now);
	}
	xsp_costs_clear(&o->fresh);
	for (size_t i = 0; i < o->threads.count; i++)
		if (o->threads.rows[i].probe_ns > 0)
			read_cpu(r, &o->threads.rows[i], now);
	o->look_ns = now;
	o->look_cost_ns = sum->cost_ns;
}

bool xsp_watched_is_crowded(const struct xsp_overhead *o)
{
	size_t n = 0;

	for (size_t i = 0; i < o->threads.count; i++)
		n += o->threads.rows[i].probe_ns > 0 && !(o->threads.rows[i].tid & XSP_BRAKE_WHOLE);
	return xsp_is_crowd(o, n);
}

bool xsp_watched_owes(struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;
	bool any = false;

	for (size_t i = 0; i < o->threads.count; i++) {
		struct watched *w = &o->threads.rows[i];
		if (!w->gone && w->debt.ns > 0 && xsp_passed(now, w->read_ns) >= DEBTORS_NS)
			read_cpu(r, w, now);
		any = any || (!w->gone && w->debt.ns > 0);
	}
	return any;
}

static bool begins(const struct watched *w, bool all)
{
	return all || w->debt.ns <= 0;
}

void xsp_watched_begin(struct xsp_overhead *o, bool all, uint64_t now)
{
	struct xsp_costs left = {0};

	for (size_t i = 0; i < o->costs.of.count; i++) {
		const struct xsp_cost *c = &o->costs.of.rows[i];
		const struct watched *w = find(o, c->tid);
		if (w != NULL && !begins(w, all))
			xsp_costs_add(&left, c->tid, c->pid, c->probe, c->ns, c->calls);
	}
	xsp_costs_free(&o->costs);
	o->costs = left;
	for (size_t i = 0; i < o->threads.count; i++) {
		struct watched *w = &o->threads.rows[i];
		if (!begins(w, all))
			continue;
		w->begun_ns = w->since_ns = now;
		w->latest_ns = o->latest_ns;
		w->debt.unpaid_ns = w->debt.ns;
		w->probe_ns = w->own_cpu_ns = w->waits_ns = w->samples_ns = 0;
	}
}

void xsp_watched_begin_anew(struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;

	xsp_watched_add_figures(r, now);
	for (size_t i = 0; i < o->threads.count; i++)
		read_cpu(r, &o->threads.rows[i], now);
	xsp_watched_begin(o, true, now);
}
