/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watched.c - what the probes cost each thread: the price of each hit comes from calibration, the hits from events and
 * from the kernel's count of those without one, CPU times from /proc.
 */
#include "record/brake/overhead.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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
/* A change of links waits for every thread that is in a probe. With more threads than this on each processor that
 * takes longer than taking everything out. */
#define CROWD 4

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
	return (struct watched){.tid = tid,
				.pid = tid & WHOLE ? (pid_t)(tid & ~WHOLE) : 0,
				.processors = tid & WHOLE ? o->processors : 1,
				.schedstat = -1,
				.met_ns = o->look_ns,
				.begun_ns = o->look_ns,
				.latest_ns = o->latest_ns,
				.since_ns = o->look_ns};
}

static struct watched *watch(struct xsp_overhead *o, uint32_t tid)
{
	const struct watched first = met(o, tid);

	return xsp_u64map_element(&o->by_tid, tid, &o->threads, &o->room, &o->count, &first);
}

/* NULL: it is not watched. */
static struct watched *find(const struct xsp_overhead *o, uint32_t tid)
{
	const uint32_t *at = xsp_u64map_get(&o->by_tid, tid);

	return at != NULL ? &o->threads[*at] : NULL;
}

const char *xsp_watched_name(char text[WATCHED_NAME_SIZE], uint32_t tid)
{
	if (tid == WHOLE)
		return "the processes";
	snprintf(text, WATCHED_NAME_SIZE, "%s %u", tid & WHOLE ? "process" : "thread",
		 tid & ~WHOLE);
	return text;
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

/* The threads of a process have the spare time of one thread: its probes may take what one may. */
static uint64_t spare_ns(const struct watched *w, uint64_t cpu_ns, uint64_t wall_ns)
{
	const uint64_t all = w->tid == WHOLE ? w->processors * wall_ns : wall_ns;

	return all > cpu_ns ? (uint64_t)(SPARE * (double)(all - cpu_ns)) : 0;
}

uint64_t xsp_with_spare(const struct watched *w, uint64_t cpu_ns, uint64_t wall_ns)
{
	return cpu_ns + spare_ns(w, cpu_ns, wall_ns);
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
	w->debt_ns += (1 + o->budget) * (double)ns; /* it is in the CPU time that pays */
}

/* What the defaults cost a thread, and so its process, beside its probes. */
static void add_defaults(const struct xsp_recorder *r, struct watched *w, uint64_t times,
			 uint64_t cpu_ns)
{
	const struct xsp_attach_options *o = &r->options.attach;
	const uint64_t waits = o->defaults & XSP_DEFAULT_WAITS ? times * WAITS_NS : 0;
	const uint64_t samples =
		o->defaults & XSP_DEFAULT_SAMPLES
			? (uint64_t)((double)cpu_ns * 1e-9 * o->sample_hz * r->sample_ns)
			: 0;

	struct watched *const both[] = {w, find(r->overheads, WHOLE | (uint32_t)w->pid)};

	for (size_t i = 0; i < 2 && both[i] != NULL; i++) {
		both[i]->waits_ns += waits;
		both[i]->samples_ns += samples;
		charge(r->overheads, both[i], waits + samples);
	}
}

struct times {
	uint64_t cpu, queued, count; /* count: how often it got a CPU */
};

static bool read_whole(const struct xsp_overhead *o, const struct watched *w, struct times *t)
{
	clockid_t clock;
	struct timespec ts;

	*t = (struct times){.cpu = o->processes_cpu_ns};
	if (w->tid == WHOLE)
		return true;
	if (clock_getcpuclockid(w->pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
		return false;
	t->cpu = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	return true;
}

static bool read_times(const struct xsp_recorder *r, struct watched *w, struct times *t)
{
	if (w->tid & WHOLE)
		return read_whole(r->overheads, w, t);
	if (!w->gone && w->schedstat < 0)
		open_schedstat(r, w);
	return w->schedstat >= 0 &&
	       xsp_procfs_cpu_ns(w->schedstat, &t->cpu, &t->queued, &t->count) == 0;
}

static void add_cpu(struct xsp_overhead *o, struct watched *w, uint64_t cpu_ns, uint64_t spare)
{
	w->own_cpu_ns += cpu_ns;
	w->all_cpu_ns += cpu_ns;
	w->debt_ns -= o->budget * (double)(cpu_ns + spare);
	if (w->debt_ns < 0)
		w->debt_ns = 0;
	if (w->tid & ~WHOLE && w->tid & WHOLE)
		o->processes_cpu_ns += cpu_ns;
}

/* CPU time since the last reading; for a new thread, no more than since the last look. */
static void read_cpu(const struct xsp_recorder *r, struct watched *w, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;
	const uint64_t before = w->read_ns != 0 ? w->read_ns : o->look_ns;
	const uint64_t wall = now - before;
	uint64_t delta, queued = 0;
	struct times t;

	if (!read_times(r, w, &t)) {
		if (w->tid & WHOLE && !w->gone) /* it ended in this time */
			add_cpu(o, w, wall, 0);
		w->gone = true;
		forget_schedstat(w);
		return;
	}
	delta = t.cpu > w->cpu_ns ? t.cpu - w->cpu_ns : 0;
	if (delta > wall * w->processors)
		delta = wall * w->processors;
	w->cpu_ns = t.cpu;
	/* time in line for a CPU is no time to spare: as if it had not passed */
	if (w->read_ns != 0 && t.queued > w->queued_ns) {
		queued = t.queued - w->queued_ns;
		w->since_ns += queued;
		w->met_ns += queued;
	}
	w->counted = w->read_ns != 0;
	if (w->counted && !(w->tid & WHOLE))
		add_defaults(r, w, t.count - w->times, delta);
	w->times = t.count;
	w->queued_ns = t.queued;
	w->read_ns = now;
	add_cpu(o, w, delta, spare_ns(w, delta, xsp_passed(wall, queued)));
}

void xsp_overhead_start(struct xsp_recorder *r)
{
	struct xsp_overhead *o = r->overheads;

	if (o == NULL)
		return;
	o->look_ns = o->window_ns = o->latest_ns = r->start_ns;
	for (size_t i = 0; i < r->process_count; i++)
		watch(o, WHOLE | (uint32_t)r->processes[i].pid);
	for (size_t i = 0; i < o->count; i++) {
		struct watched *w = &o->threads[i];
		w->met_ns = w->begun_ns = w->since_ns = w->latest_ns = r->start_ns;
		read_cpu(r, w, r->start_ns);
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
		const struct watched *w = find(o, u->tid);
		const pid_t pid = w != NULL && w->pid != 0 ? w->pid
				  : r->process_count == 1  ? r->processes[0].pid
							   : 0;
		xsp_costs_add(&o->fresh, u->tid, (uint32_t)pid, u->probe, u->ns, 0);
		o->unseen_ns += u->ns;
	}
}

/* A thread's cost is its own, its process's, or that of all. */
static void add_cost(struct xsp_overhead *o, uint32_t tid, const struct xsp_cost *c, uint64_t now)
{
	struct watched *w = watch(o, tid);

	xsp_costs_add(&o->costs, tid, c->pid, c->probe, c->ns, c->calls);
	if (w == NULL)
		return;
	if (w->gone && w->read_ns + JUDGED_NS < now) /* the number came again */
		*w = met(o, tid);
	charge(o, w, c->ns);
}

bool xsp_watched_may_go(void *recorder, uint32_t probe)
{
	const struct xsp_probe *p = xsp_recorder_probe(recorder, probe);

	return p != NULL && strcmp(p->provider, xsp_provider_function.name) == 0;
}

struct xsp_brake_seen *xsp_watched_seen(struct xsp_overhead *o, uint32_t probe)
{
	return xsp_grow_zeroed(&o->seen, &o->seen_room, (size_t)probe + 1) == 0 ? &o->seen[probe]
										: NULL;
}

void xsp_watched_add_figures(struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;

	add_unseen(r);
	/* for later events; others see that the broker is gone */
	xsp_recorder_price_details(r);
	for (size_t i = 0; i < o->fresh.count; i++) {
		const struct xsp_cost *c = &o->fresh.rows[i];
		struct xsp_brake_seen *seen = xsp_watched_seen(o, c->probe);
		if (seen != NULL && !seen->hit)
			*seen = (struct xsp_brake_seen){.hit = true, .late = o->let_go_count > 0};
		add_cost(o, c->tid, c, now);
		if (c->pid != 0)
			add_cost(o, WHOLE | c->pid, c, now);
		if (r->process_count > 1)
			add_cost(o, WHOLE, c, now);
	}
	xsp_costs_clear(&o->fresh);
	for (size_t i = 0; i < o->count; i++)
		if (o->threads[i].probe_ns > 0 && o->threads[i].tid != WHOLE)
			read_cpu(r, &o->threads[i], now);
	struct watched *all = find(o, WHOLE);
	if (all != NULL)
		read_cpu(r, all, now);
	o->look_ns = now;
	o->look_cost_ns = xsp_drain_totals(r->drain)->cost_ns;
	o->latest_ns = xsp_drain_totals(r->drain)->latest_ns;
}

double xsp_watched_debt(struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;
	double most = 0;

	for (size_t i = 0; i < o->count; i++) {
		struct watched *w = &o->threads[i];
		if (w->gone || w->debt_ns <= 0)
			continue;
		if (now - w->read_ns >= DEBTORS_NS)
			read_cpu(r, w, now);
		if (w->debt_ns > most)
			most = w->debt_ns;
	}
	return most;
}

bool xsp_watched_is_crowded(const struct xsp_overhead *o)
{
	size_t n = 0;

	for (size_t i = 0; i < o->count; i++)
		n += o->threads[i].probe_ns > 0 && !(o->threads[i].tid & WHOLE);
	return n > (size_t)CROWD * o->processors;
}

static void begin_interval(const struct xsp_overhead *o, struct watched *w, uint64_t now)
{
	w->begun_ns = w->since_ns = now;
	w->latest_ns = o->latest_ns;
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
			xsp_costs_add(&left, c->tid, c->pid, c->probe, c->ns, c->calls);
	}
	xsp_costs_free(&o->costs);
	o->costs = left;
	for (size_t i = 0; i < o->count; i++)
		if (o->threads[i].judged)
			begin_interval(o, &o->threads[i], now);
}

void xsp_watched_begin_anew(struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;

	xsp_watched_add_figures(r, now);
	for (size_t i = 0; i < o->count; i++) {
		read_cpu(r, &o->threads[i], now);
		begin_interval(o, &o->threads[i], now);
	}
	xsp_costs_clear(&o->costs);
	o->look_ns = now;
}
