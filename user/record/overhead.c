/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * overhead.c - what the probes cost each thread, and what follows from it: brake.c decides, this
 * gathers the figures and has it done.
 *
 * Known are the price of each hit, from calibration, the hits, from the events and from the kernel's own
 * count of those that no event tells of, and the CPU time of the threads, from /proc.
 */
#include "record/recorder_private.h"
#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/units.h"
#include "record/brake/brake.h"
#include "procfs/procfs.h"
#include "xsptrace/brake.h"

/* Figures are looked at so often. */
#define LOOK_NS 40000000ULL
/* A thread is judged when it has had the CPU for so long: the kernel brings a running thread's CPU time up
 * to date at its ticks only, 1 to 10 ms apart. */
#define JUDGED_CPU_NS 16000000ULL
/* ... or sooner, when it is far over even if its CPU time is so much behind. */
#define TICK_NS 10000000ULL
/* One that runs little is judged after so long. */
#define JUDGED_NS 1000000000ULL
/* A thread that waits has time to spare: so much of its waiting counts as its own work, of which probes may
 * take the budget's share. */
#define SPARE 0.25
/* What is so far over is acted upon at once; else it must be over twice in a row. */
#define FAR_OVER 2.0
/* A window is so long at least; taking everything out and in again takes as long. */
#define WINDOW_NS 150000000ULL
/* Windows are so short that the budget would hold if the estimate were a sixth too low. */
#define WINDOW_AIM 0.85
#define OFF_MOST_NS 120000000000ULL
/* A site that reports nothing still stops the thread: share of its price, where it is not known yet. */
#define SILENT_SHARE 0.85
/* What is on by default goes before anything else if it has at least this part in what costs a thread too much. */
#define DEFAULT_PART 0.1
/* What --waits takes of a thread each time that it is given a CPU: the switch, the wakeup, and what the kernel does around
 * them (docs/usage.md). */
#define WAITS_NS 700
/* After so long without a turn nobody held the brake, and the broker may have taken everything out. */
#define SILENT_NS 1000000000ULL
/* CPU times are read so often at least. */
#define QUIET_NS 200000000ULL
/* Of threads that hit no probe so many are watched, or a quarter of the descriptors: each takes one. */
#define MET_MAX 512

enum phase { ON, PAUSING, OFF, RESUMING };

struct watched {
	uint32_t tid;
	pid_t pid; /* 0: of whichever recorded process */
	int schedstat; /* descriptor; -1: none */
	bool gone;
	bool judged; /* in this look */
	unsigned over; /* times in a row */
	uint64_t cpu_ns, queued_ns,
		read_ns; /* CPU time, time in line for it, and when it was read */
	uint64_t since_ns, probe_ns, own_cpu_ns; /* since it was judged last */
	uint64_t waits_ns,
		samples_ns; /* parts of probe_ns: --waits and --sample, if they are on by default */
	uint64_t times; /* that it was given a CPU */
	bool counted; /* ... since an earlier look */
	uint64_t met_ns, all_probe_ns, all_cpu_ns; /* since it was met */
};

struct xsp_overhead {
	double budget;
	struct xsp_costs fresh; /* since the last look */
	struct xsp_costs costs; /* of each thread since it was judged last */
	struct watched *threads;
	size_t count, room;
	size_t met_max;
	bool unmet; /* there were more */
	struct watched ended; /* the worst of them */
	struct xsp_u64map by_tid;
	struct xsp_attach_unseen *unseen;
	uint64_t unseen_ns; /* all of them */
	uint64_t look_ns, turn_ns; /* the last one */
	uint8_t *let_go; /* by probe: the recorder's own note */
	size_t let_go_count;
	bool releasing;
	enum phase phase;
	bool windows; /* it was off at least once */
	bool for_good; /* ... and stays so */
	bool prepaid;
	uint64_t recorded_ns; /* in windows that are over */
	uint64_t window_ns, pause_ns, off_until_ns; /* began; asked */
	uint64_t pause_took_ns, resume_took_ns;
	double window_share; /* of the CPU time of the worst thread */
	double slowdown; /* the last look's worst */
};

static uint64_t passed(uint64_t now, uint64_t since)
{
	return now > since ? now - since : 0;
}

int xsp_overhead_new(struct xsp_recorder *r)
{
	struct rlimit files;

	if (r->options.budget <= 0)
		return 0;
	r->overheads = calloc(1, sizeof(*r->overheads));
	if (r->overheads == NULL)
		return -ENOMEM;
	r->overheads->met_max = MET_MAX;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 4 < MET_MAX)
		r->overheads->met_max = files.rlim_cur / 4;
	r->overheads->budget = r->options.budget;
	r->overheads->pause_took_ns = r->overheads->resume_took_ns = 50000000;
	r->overheads->unseen = calloc(XSP_UNSEEN_MAX, sizeof(*r->overheads->unseen));
	xsp_drain_set_costs(r->drain, &r->overheads->fresh);
	return r->overheads->unseen != NULL ? 0 : -ENOMEM;
}

static void forget_schedstat(struct watched *w)
{
	if (w->schedstat >= 0)
		close(w->schedstat);
	w->schedstat = -1;
}

void xsp_overhead_free(struct xsp_recorder *r)
{
	struct xsp_overhead *o = r->overheads;

	if (o == NULL)
		return;
	xsp_costs_free(&o->fresh);
	xsp_costs_free(&o->costs);
	xsp_u64map_free(&o->by_tid);
	for (size_t i = 0; i < o->count; i++)
		forget_schedstat(&o->threads[i]);
	free(o->threads);
	free(o->unseen);
	free(o->let_go);
	free(o);
}

uint64_t xsp_overhead_unseen_ns(const struct xsp_recorder *r)
{
	return r->overheads != NULL ? r->overheads->unseen_ns : 0;
}

bool xsp_overhead_is_on(const struct xsp_recorder *r)
{
	return r->overheads == NULL || r->overheads->phase == ON;
}

bool xsp_overhead_is_changing(const struct xsp_recorder *r)
{
	return r->overheads != NULL &&
	       (r->overheads->phase == PAUSING || r->overheads->phase == RESUMING);
}

void xsp_overhead_status(const struct xsp_recorder *r, struct xsp_recorder_status *s)
{
	const struct xsp_overhead *o = r->overheads;

	if (o == NULL)
		return;
	if (o->windows)
		s->recorded_ns =
			o->recorded_ns + (o->phase == ON ? passed(xsp_now_ns(), o->window_ns) : 0);
	s->slowdown = r->overheads->slowdown;
	s->let_go = r->overheads->let_go_count;
	s->paused = r->overheads->phase != ON;
}

/* ---- figures ---- */

static struct watched met(const struct xsp_overhead *o, uint32_t tid)
{
	return (struct watched){
		.tid = tid, .schedstat = -1, .met_ns = o->look_ns, .since_ns = o->look_ns};
}

static struct watched *watch(struct xsp_overhead *o, uint32_t tid)
{
	const uint32_t *at = xsp_u64map_get(&o->by_tid, tid);

	if (at != NULL)
		return &o->threads[*at];
	if (xsp_grow(&o->threads, &o->room, o->count + 1) < 0 ||
	    xsp_u64map_set(&o->by_tid, tid, (uint32_t)o->count) < 0)
		return NULL;
	o->threads[o->count] = met(o, tid);
	return &o->threads[o->count++];
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

/* What the probes' time is held against. */
static uint64_t with_spare(uint64_t cpu_ns, uint64_t wall_ns)
{
	return cpu_ns + (wall_ns > cpu_ns ? (uint64_t)(SPARE * (double)(wall_ns - cpu_ns)) : 0);
}

static uint64_t all_with_spare(const struct watched *w)
{
	return with_spare(w->all_cpu_ns, passed(w->read_ns, w->met_ns));
}

static double slowdown_of(const struct watched *w)
{
	return xsp_brake_slowdown(w->all_probe_ns, all_with_spare(w));
}

/* The worst of those that have ended is kept, so that many short threads take no memory. */
static void drop_ended(struct xsp_overhead *o)
{
	size_t kept = 0;

	for (size_t i = 0; i < o->count; i++) {
		const struct watched *w = &o->threads[i];
		if (!w->gone || w->probe_ns > 0)
			o->threads[kept++] = *w;
		else if (w->all_cpu_ns >= JUDGED_CPU_NS && slowdown_of(w) > slowdown_of(&o->ended))
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

/* CPU time since the last reading; of a thread met now, no more than there was of the look. */
static void open_schedstat(const struct xsp_recorder *r, struct watched *w)
{
	const struct xsp_opener *o = xsp_broker_opener(r->broker);
	char name[64];

	snprintf(name, sizeof(name), "task/%" PRIu32 "/schedstat", w->tid);
	for (size_t i = 0; i < r->process_count && w->schedstat < 0; i++) {
		int fd = w->pid == 0 || w->pid == r->processes[i].pid
				 ? o->file(o, r->processes[i].pid, name)
				 : -1;
		if (fd >= 0)
			w->schedstat = fd;
	}
}

/* What is on by default takes of a thread beside its probes. */
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

static void read_cpu(const struct xsp_recorder *r, struct watched *w, uint64_t now)
{
	const struct xsp_overhead *o = r->overheads;

	uint64_t cpu, queued, times, wall = now - (w->read_ns != 0 ? w->read_ns : o->look_ns),
				     delta;

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
	/* standing in line for a CPU is no time to spare: as if it had not passed */
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
	for (size_t i = 0; i < o->count; i++) {
		o->threads[i].met_ns = o->threads[i].since_ns = r->start_ns;
		read_cpu(r, &o->threads[i], r->start_ns);
	}
}

/* Also where nothing was hit: how long the threads have worked without us counts for us. */
static void read_quiet(struct xsp_recorder *r, uint64_t now)
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

/* What has come since the last look is added up by thread. */
static void add_figures(struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;

	add_unseen(r);
	/* for the events to come; that the broker has gone is seen elsewhere */
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

/* Those that were judged begin anew. */
static void forget_judged(struct xsp_overhead *o, uint64_t now)
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

/* After a change nothing that was before it counts. */
static void begin_anew(struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;

	add_figures(r, now);
	for (size_t i = 0; i < o->count; i++) {
		read_cpu(r, &o->threads[i], now);
		begin_interval(&o->threads[i], now);
	}
	xsp_costs_clear(&o->costs);
	o->look_ns = now;
}

/* ---- doing it ---- */

/* Beyond tenfold nothing is known but that: the CPU time without probes is then the error of two figures. */
#define DISPLAY_MAX 10.0
#define SLOWDOWN_SIZE 32

static const char *format_slowdown(char text[SLOWDOWN_SIZE], double slowdown)
{
	if (slowdown < DISPLAY_MAX)
		snprintf(text, SLOWDOWN_SIZE, "about %.1f %%", 100 * slowdown);
	else
		snprintf(text, SLOWDOWN_SIZE, "more than %.0f %%", 100 * DISPLAY_MAX);
	return text;
}

static bool may_go(void *ctx, uint32_t probe)
{
	const struct xsp_probe *p = xsp_recorder_probe(ctx, probe);

	return p != NULL && strcmp(p->provider, xsp_provider_function.name) == 0;
}

/* Of all threads, lately. */
static double calls_per_second(const struct xsp_overhead *o, uint32_t probe, uint64_t now)
{
	double calls = 0;

	for (size_t i = 0; i < o->costs.count; i++) {
		const struct xsp_cost *c = &o->costs.rows[i];
		const uint32_t *at = xsp_u64map_get(&o->by_tid, c->tid);
		if (at == NULL || c->probe != probe)
			continue;
		/* what it stood in line for does not count, but it had the time that its probes took */
		uint64_t since = passed(now, o->threads[*at].since_ns);
		calls += (double)c->calls * 1e9 / ((double)(since > c->ns ? since : c->ns) + 1);
	}
	return calls;
}

static int note_let_go(struct xsp_recorder *r, uint32_t probe, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;
	const struct xsp_probe *p = xsp_recorder_probe(r, probe);
	struct xsp_capture_let_go l = {
		.probe = probe,
		.time_ns = now,
		.calls_per_second = (uint64_t)calls_per_second(o, probe, now),
	};
	char why[XSP_LET_GO_REASON_MAX], after[XSP_UNITS_SIZE], name[200];
	struct xsp_attach_counters c = {0};

	o->let_go_count++;
	xsp_broker_counters(r->broker, false, &c); /* what was lost was not counted */
	xsp_printable(name, sizeof(name), p != NULL ? p->name : "", 160);
	xsp_recorder_note(r, "%s: %s, released after %s; --max-overhead off keeps it", name,
			  xsp_capture_let_go_reason(l.calls_per_second, c.lost_entries > 0, why),
			  xsp_format_ns(after, now - r->start_ns));
	return xsp_capture_put_let_go(r->writer, &l);
}

static int let_go(struct xsp_recorder *r, const struct xsp_brake_plan *plan)
{
	uint64_t now = xsp_now_ns(); /* what is reported later is left out by who reads it */
	int rc = xsp_broker_release(r->broker, plan->let_go, plan->let_go_count);

	if (rc < 0)
		return 0; /* the next look will ask again */
	r->overheads->releasing = true;
	for (size_t i = 0; i < plan->let_go_count && rc == 0; i++)
		rc = note_let_go(r, plan->let_go[i], now);
	return rc;
}

static int put_window(struct xsp_recorder *r, uint64_t end_ns)
{
	struct xsp_capture_window w = {.start_ns = r->overheads->window_ns, .end_ns = end_ns};

	r->overheads->recorded_ns += passed(end_ns, w.start_ns);
	return xsp_capture_put_window(r->writer, &w);
}

static int begin_pause(struct xsp_recorder *r, double share)
{
	struct xsp_overhead *o = r->overheads;
	int rc = xsp_broker_pause(r->broker);
	uint64_t now = xsp_now_ns();

	if (rc < 0)
		return rc;
	o->windows = true;
	o->phase = PAUSING;
	o->pause_ns = now;
	o->window_share = share;
	return 0;
}

static int pause_all(struct xsp_recorder *r, const struct xsp_brake_plan *plan)
{
	struct xsp_overhead *o = r->overheads;
	const bool first = !o->windows;
	char worst[SLOWDOWN_SIZE];

	if (begin_pause(r, plan->paused_share) < 0)
		return 0; /* the next look will ask again */
	if (first)
		xsp_recorder_note(
			r,
			"thread %u is slowed by %s, more than the %.3g %% of "
			"--max-overhead: what is traced goes on in windows (off: all of it, at "
			"any cost)",
			plan->worst_tid, format_slowdown(worst, plan->worst), 100 * o->budget);
	return put_window(r, o->pause_ns);
}

/* Everything goes, for good. */
static int detach_all(struct xsp_recorder *r)
{
	const bool recording = r->overheads->phase == ON;

	if (begin_pause(r, 1) < 0)
		return 0; /* the next turn will ask again */
	return recording ? put_window(r, r->overheads->pause_ns) : 0;
}

static int give_up(struct xsp_recorder *r, const char *what, const char *why)
{
	char text[240];

	snprintf(text, sizeof(text),
		 "%s (%s): everything is taken out, and nothing more is recorded", what, why);
	xsp_recorder_note(r, "%s", text);
	r->overheads->for_good = true;
	int rc = xsp_capture_put_info(r->writer, xsp_capture_gap_key(XSP_GAP_END), text);
	return rc < 0 ? rc : detach_all(r);
}

/* Between two windows: how long, so that what the sites cost on their way in and out is in it. */
static int begin_off(struct xsp_recorder *r, const struct xsp_attach_change *change)
{
	static const char cannot[] =
		"this way of attaching cannot put the sites in again (xsptrace "
		"doctor): nothing more is recorded";

	struct xsp_overhead *o = r->overheads;
	uint64_t on = o->pause_ns - o->window_ns, off;

	o->pause_took_ns = change->took_ns;
	uint64_t ways = (uint64_t)(SILENT_SHARE *
				   ((double)o->pause_took_ns + 0.5 * (double)o->resume_took_ns));
	on += ways;
	/* once, the window to come is paid for as well: from then on each is before it begins */
	if (!o->prepaid)
		on += WINDOW_NS + ways;
	o->prepaid = true;
	off = xsp_brake_off_ns(WINDOW_AIM * o->budget, o->window_share, on);
	o->off_until_ns = xsp_now_ns() + (off < OFF_MOST_NS ? off : OFF_MOST_NS);
	o->phase = OFF;
	if (change->error == -EOPNOTSUPP || o->for_good)
		o->off_until_ns = UINT64_MAX;
	if (change->error != -EOPNOTSUPP || o->for_good)
		return 0;
	xsp_recorder_note(r, "%s", cannot);
	return xsp_capture_put_info(r->writer, xsp_capture_gap_key(XSP_GAP_END), cannot);
}

/* Everything is out since then, as we did not hold the brake. It goes on as after any window. */
static int was_abandoned(struct xsp_recorder *r, uint64_t since_ns, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;
	char stood[XSP_UNITS_SIZE];

	xsp_recorder_note(
		r,
		"xsptrace stood still (stopped? a slow disk?) and did not hold the brake: its "
		"probes were out of the target for %s, and nothing was recorded meanwhile",
		xsp_format_ns(stood, passed(now, since_ns)));
	const bool recorded = o->phase == ON;
	o->windows = true;
	o->releasing = false;
	o->phase = PAUSING;
	o->pause_ns = since_ns;
	o->window_share = 0;
	if (recorded)
		return put_window(r, since_ns);
	o->window_ns = since_ns; /* it had not begun */
	return 0;
}

static int begin_window(struct xsp_recorder *r, const struct xsp_attach_change *change)
{
	struct xsp_overhead *o = r->overheads;
	uint64_t now = xsp_now_ns();

	if (change->error < 0) { /* some are in: what they see is not all there is */
		o->window_ns = now;
		return give_up(r, "the sites cannot be put in again", strerror(-change->error));
	}
	o->resume_took_ns = change->took_ns;
	o->phase = ON;
	begin_anew(r, now);
	o->window_ns = now;
	xsp_broker_activate(r->broker, true);
	return 0;
}

/* ---- deciding ---- */

/* Those that have run long enough to be judged; of them, those that are over the budget for certain. */
static size_t choose(const struct xsp_recorder *r, uint64_t now, struct xsp_brake_thread *out)
{
	struct xsp_overhead *o = r->overheads;
	size_t n = 0;

	for (size_t i = 0; i < o->count; i++) {
		struct watched *w = &o->threads[i];
		bool late = passed(now, w->since_ns) >= JUDGED_NS;
		w->judged = w->own_cpu_ns >= JUDGED_CPU_NS || late ||
			    xsp_brake_slowdown(w->probe_ns, with_spare(w->own_cpu_ns + TICK_NS,
								       passed(now, w->since_ns))) >
				    FAR_OVER * o->budget;
		if (!w->judged)
			continue;
		uint64_t cpu_ns = with_spare(w->own_cpu_ns, passed(now, w->since_ns));
		double slowdown = xsp_brake_slowdown(w->probe_ns, cpu_ns);
		if (slowdown > o->slowdown)
			o->slowdown = slowdown;
		/* what --waits has in it is known at its second look only, and that goes first */
		if (!w->counted && (r->options.attach.defaults & XSP_DEFAULT_WAITS))
			continue;
		w->over = slowdown > o->budget ? w->over + 1 : 0;
		if (w->over > 1 || slowdown > FAR_OVER * o->budget)
			out[n++] = (struct xsp_brake_thread){
				.tid = w->tid, .probe_ns = w->probe_ns, .cpu_ns = cpu_ns};
	}
	return n;
}

/* What the hits have cost the thread that read its lines of Python: how much of that the reading is, few hits tell badly. */
static double python_ns(struct xsp_recorder *r, uint32_t tid)
{
	const struct xsp_overhead *o = r->overheads;
	uint64_t ns = 0;

	for (size_t i = 0; i < o->costs.count; i++) {
		const struct xsp_cost *c = &o->costs.rows[i];
		const struct xsp_probe *p = c->tid == tid ? xsp_recorder_probe(r, c->probe) : NULL;
		if (p != NULL && (p->detail.entry & 1U << XSP_SECTION_PYTHON))
			ns += c->ns;
	}
	return (double)ns;
}

/* Of what is on by default, that which has a part in what these threads are slowed by. */
static unsigned defaults_in(struct xsp_recorder *r, const struct xsp_brake_thread *threads,
			    size_t count)
{
	const struct xsp_overhead *o = r->overheads;
	unsigned which = 0;

	for (size_t i = 0; i < count; i++) {
		const uint32_t *at = xsp_u64map_get(&o->by_tid, threads[i].tid);
		const double least = DEFAULT_PART * (double)threads[i].probe_ns;
		if (at != NULL && (double)o->threads[*at].waits_ns >= least)
			which |= XSP_DEFAULT_WAITS;
		if (at != NULL && (double)o->threads[*at].samples_ns >= least)
			which |= XSP_DEFAULT_SAMPLES;
		if (python_ns(r, threads[i].tid) >= least)
			which |= XSP_DEFAULT_PYTHON;
	}
	return which & r->options.attach.defaults;
}

static int drop_defaults(struct xsp_recorder *r, unsigned which, const struct xsp_brake_plan *plan,
			 uint64_t now)
{
	char why[160], worst[SLOWDOWN_SIZE];

	snprintf(why, sizeof(why),
		 "thread %u was slowed by %s, more than the %.3g %% of --max-overhead",
		 plan->worst_tid, format_slowdown(worst, plan->worst), 100 * r->overheads->budget);
	begin_anew(r, now);
	return xsp_recorder_drop(r, which, why);
}

static int look(struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;
	struct xsp_brake_thread *threads = calloc(o->count + 1, sizeof(*threads));
	struct xsp_brake_input in = {.budget = o->budget,
				     .threads = threads,
				     .costs = o->costs.rows,
				     .cost_count = o->costs.count,
				     .may_go = may_go,
				     .ctx = r};
	struct xsp_brake_plan plan = {0};

	o->slowdown = 0;
	if (threads == NULL)
		return 0;
	in.thread_count = choose(r, now, threads);
	int rc = xsp_brake_decide(&in, &plan);
	const unsigned defaults = defaults_in(r, threads, in.thread_count);
	free(threads);
	if (rc < 0)
		return 0;
	if (defaults != 0)
		rc = drop_defaults(r, defaults, &plan, now);
	else if (plan.let_go_count > 0)
		rc = let_go(r, &plan);
	else if (plan.pause && (!o->windows || now - o->window_ns >= WINDOW_NS))
		rc = pause_all(r, &plan);
	xsp_brake_plan_clear(&plan);
	forget_judged(o, now);
	drop_ended(o);
	return rc;
}

/* A change is under way, or everything is off: only the sums go on. */
static int go_on(struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;
	struct xsp_attach_change change = xsp_broker_change(r->broker);

	if (change.busy)
		return 0;
	if (change.changed > 0)
		xsp_recorder_note_left_out(r);
	if (o->releasing) {
		o->releasing = false;
		begin_anew(r, now);
		if (change.error == 0)
			return 0;
		return give_up(r, "a function cannot be released by itself",
			       change.error == -EOPNOTSUPP ? "uprobe_multi can, Linux 6.6"
							   : strerror(-change.error));
	}
	if (o->phase == PAUSING) {
		r->end_ns = o->pause_ns; /* of what --min-duration holds back */
		int rc = begin_off(r, &change);
		return rc < 0 ? rc : xsp_recorder_put_held_back(r);
	}
	if (o->phase == RESUMING)
		return begin_window(r, &change);
	if (now >= o->off_until_ns && xsp_broker_resume(r->broker) == 0)
		o->phase = RESUMING;
	return 0;
}

int xsp_overhead_turn(struct xsp_recorder *r)
{
	struct xsp_overhead *o = r->overheads;
	uint64_t now = xsp_now_ns();

	if (o == NULL || !r->started)
		return 0;
	const uint64_t turned_ns = o->turn_ns;
	o->turn_ns = now;
	if (turned_ns != 0 && now - turned_ns >= SILENT_NS) {
		const uint64_t since_ns = xsp_broker_change(r->broker).unasked_ns;
		if (since_ns != 0)
			return was_abandoned(r, since_ns, now);
	}
	read_quiet(r, now);
	if (o->for_good && (o->phase == ON || o->phase == RESUMING))
		return detach_all(r);
	if (o->releasing || o->phase != ON)
		return go_on(r, now);
	if (now - o->look_ns < LOOK_NS)
		return 0;
	add_figures(r, now);
	return look(r, now);
}

/* ---- what it came to ---- */

int xsp_overhead_stop(struct xsp_recorder *r)
{
	struct xsp_overhead *o = r->overheads;

	return o != NULL && o->windows && o->phase == ON ? put_window(r, r->end_ns) : 0;
}

static const struct watched *worst_of(const struct xsp_overhead *o)
{
	const struct watched *worst = o->ended.tid != 0 ? &o->ended : NULL;
	double most = slowdown_of(&o->ended);

	for (size_t i = 0; i < o->count; i++) {
		const struct watched *w = &o->threads[i];
		double slowdown = slowdown_of(w);
		if (w->all_cpu_ns < JUDGED_CPU_NS || slowdown <= most)
			continue;
		most = slowdown;
		worst = w;
	}
	return worst;
}

/* What the estimate were if all hits had met warm caches, or cold ones: factors. */
static void error_of(const struct xsp_recorder *r, double *warm, double *cold)
{
	double cost = (double)xsp_drain_cost_ns(r->drain), bare;
	uint64_t cold_ns, most;

	xsp_drain_cold(r->drain, &cold_ns, &most);
	bare = cost - (double)cold_ns;
	*warm = cost > 0 ? bare / cost : 1;
	*cold = cost > 0 ? (bare + (double)most) / cost : 1;
}

static double percent(double probe_ns, uint64_t cpu_ns)
{
	double slowdown = xsp_brake_slowdown((uint64_t)probe_ns, cpu_ns);

	return 100 * (slowdown < DISPLAY_MAX ? slowdown : DISPLAY_MAX);
}

/* What stands before the worst thread's figure. */
static const char *at_least(const struct xsp_recorder *r, double display_value)
{
	struct xsp_attach_counters c = {0};

	if (display_value >= 100 * DISPLAY_MAX)
		return "more than ";
	xsp_broker_counters(r->broker, false, &c);
	/* some of it may be this thread's; one that is not watched may be slowed more */
	return c.unseen_ns > 0 || r->overheads->unmet ? "at least " : "";
}

int xsp_overhead_finish(struct xsp_recorder *r)
{
	struct xsp_overhead *o = r->overheads;
	char text[160];

	if (o == NULL)
		return 0;
	add_figures(r, xsp_now_ns());
	snprintf(text, sizeof(text), "%.3g %%", 100 * o->budget);
	int rc = xsp_capture_put_info(r->writer, "max overhead", text);
	const struct watched *worst = worst_of(o);
	if (rc < 0 || worst == NULL)
		return rc;
	double warm, cold;
	error_of(r, &warm, &cold);
	double all = (double)worst->all_probe_ns;
	uint64_t cpu_ns = all_with_spare(worst);
	snprintf(text, sizeof(text),
		 "%s%.1f %% (thread %u; %.1f to %.1f %% by how warm its caches were)",
		 at_least(r, percent(all, cpu_ns)), percent(all, cpu_ns), worst->tid,
		 percent(all * warm, cpu_ns), percent(all * cold, cpu_ns));
	return xsp_capture_put_info(r->writer, "worst slowdown", text);
}
