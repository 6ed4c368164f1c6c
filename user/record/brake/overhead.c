/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * overhead.c - what the probes cost each thread, and what follows: brake.c decides, watched.c gathers the figures,
 * changes.c acts.
 */
#include "record/brake/overhead.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "xsptrace/brake.h"

/* Time between two looks at the figures; or sooner, if so much was spent in probes meanwhile. */
#define LOOK_NS 40000000ULL
#define EARLY_NS 12000000ULL
/* Until debts are paid, so long at most. */
#define PAYS_NS 2000000000ULL
/* Defaults go first if they have at least this part in what costs a thread too much. */
#define DEFAULT_PART 0.1
/* After so long without a turn the broker may have paused everything, as we did not hold the brake. */
#define SILENT_NS 1000000000ULL
/* New names make a window last so long at most. */
#define ADAPTS_NS 30000000000ULL
/* Sites may take so much longer to go in than the last time. */
#define LEAD_NS 20000000ULL
/* Watches so many threads without hits, or a quarter of the descriptors: each takes one. */
#define MET_MAX 512

int xsp_overhead_new(struct xsp_recorder *r)
{
	struct rlimit files;

	if (r->options.budget <= 0 && !xsp_is_scheduled(&r->options.schedule))
		return 0;
	r->overheads = calloc(1, sizeof(*r->overheads));
	if (r->overheads == NULL)
		return -ENOMEM;
	r->overheads->met_max = MET_MAX;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 4 < MET_MAX)
		r->overheads->met_max = files.rlim_cur / 4;
	r->overheads->budget = r->options.budget;
	r->overheads->schedule = r->options.schedule;
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	r->overheads->processors = processors > 0 ? (unsigned)processors : 1;
	r->overheads->pause_took_ns = r->overheads->resume_took_ns = 50000000;
	r->overheads->unseen = calloc(XSP_UNSEEN_MAX, sizeof(*r->overheads->unseen));
	return r->overheads->unseen != NULL ? 0 : -ENOMEM;
}

void xsp_overhead_free(struct xsp_recorder *r)
{
	struct xsp_overhead *o = r->overheads;

	if (o == NULL)
		return;
	xsp_costs_free(&o->fresh);
	xsp_costs_free(&o->costs);
	xsp_watched_free(o);
	free(o->unseen);
	free(o->met);
	free(o->leaving);
	free(o);
}

/* A schedule alone has none. */
static bool has_budget(const struct xsp_overhead *o)
{
	return o != NULL && o->budget > 0;
}

struct xsp_costs *xsp_overhead_costs(const struct xsp_recorder *r)
{
	return has_budget(r->overheads) ? &r->overheads->fresh : NULL;
}

struct xsp_calls *xsp_overhead_calls(const struct xsp_recorder *r)
{
	return has_budget(r->overheads) ? &r->overheads->calls : NULL;
}

uint64_t xsp_overhead_unseen_ns(const struct xsp_recorder *r)
{
	return r->overheads != NULL ? r->overheads->unseen_ns : 0;
}

bool xsp_overhead_is_on(const struct xsp_recorder *r)
{
	return r->overheads == NULL || r->overheads->phase == ON;
}

bool xsp_overhead_window(const struct xsp_recorder *r, uint64_t *since_ns)
{
	const struct xsp_overhead *o = r->overheads;

	*since_ns = o != NULL && o->phase == ON ? o->window_ns : 0;
	return o != NULL && xsp_has_windows(o);
}

/* The window is over, and no other one is to come. */
bool xsp_recorder_schedule_is_over(const struct xsp_recorder *r)
{
	const struct xsp_overhead *o = r->overheads;

	return o != NULL && r->started && o->schedule.count > 0 &&
	       o->windows_ended + 1 == o->schedule.count && !o->suspended &&
	       xsp_now_ns() >= o->window_until_ns;
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
	if (xsp_has_windows(o))
		s->recorded_ns = o->recorded_ns +
				 (o->phase == ON ? xsp_passed(xsp_now_ns(), o->window_ns) : 0);
	s->slowdown = r->overheads->slowdown;
	s->let_go = r->overheads->let_go_count;
	s->paused = r->overheads->phase != ON;
}

/* ---- deciding ---- */

/* Those that are over the budget. */
static size_t choose(const struct xsp_recorder *r, uint64_t now, struct xsp_brake_thread *out)
{
	struct xsp_overhead *o = r->overheads;
	const bool ends = o->windows && now >= o->least_ns;
	size_t n = 0;

	o->slowdown = o->unpaid_ns = 0;
	for (size_t i = 0; i < o->threads.count; i++) {
		const struct watched *w = &o->threads.rows[i];
		const uint64_t cpu_ns =
			xsp_with_spare(w, w->own_cpu_ns, xsp_passed(now, w->since_ns));
		const double slowdown = xsp_brake_slowdown(w->probe_ns, cpu_ns);
		if (slowdown > o->slowdown && w->own_cpu_ns >= SHOWN_CPU_NS)
			o->slowdown = slowdown;
		/* the second look shows the cost of --waits, and --waits goes first. Of an ended process nobody knows
		 * the CPU time */
		if (!xsp_brake_is_over(&w->debt, o->budget, ends) ||
		    (w->gone && w->tid & XSP_BRAKE_WHOLE) ||
		    (!w->counted && (r->options.attach.defaults & XSP_DEFAULT_WAITS)))
			continue;
		if (w->debt.unpaid_ns > o->unpaid_ns)
			o->unpaid_ns = w->debt.unpaid_ns;
		out[n++] = (struct xsp_brake_thread){.tid = w->tid,
						     .wall_ns = xsp_passed(now, w->begun_ns),
						     .probe_ns = w->probe_ns,
						     .cpu_ns = cpu_ns};
	}
	return n;
}

/* What the hits have cost the thread that read its lines of Python. Few hits do not show how much of that is the
 * reading. */
static double python_ns(struct xsp_recorder *r, uint32_t tid)
{
	const struct xsp_overhead *o = r->overheads;
	uint64_t ns = 0;

	for (size_t i = 0; i < o->costs.of.count; i++) {
		const struct xsp_cost *c = &o->costs.of.rows[i];
		const struct xsp_probe *p = c->tid == tid ? xsp_recorder_probe(r, c->probe) : NULL;
		if (p != NULL && (p->detail.entry & 1U << XSP_SECTION_PYTHON))
			ns += c->ns;
	}
	return (double)ns;
}

/* The defaults that have a part in these threads' slowdown. */
static unsigned defaults_in(struct xsp_recorder *r, const struct xsp_brake_thread *threads,
			    size_t count)
{
	const struct xsp_overhead *o = r->overheads;
	unsigned which = 0;

	for (size_t i = 0; i < count; i++) {
		const struct watched *w = xsp_tally_find(&o->threads, threads[i].tid);
		const double least = DEFAULT_PART * (double)threads[i].probe_ns;
		if (w != NULL && (double)w->waits_ns >= least)
			which |= XSP_DEFAULT_WAITS;
		if (w != NULL && (double)w->samples_ns >= least)
			which |= XSP_DEFAULT_SAMPLES;
		if (python_ns(r, threads[i].tid) >= least)
			which |= XSP_DEFAULT_PYTHON;
	}
	return which & r->options.attach.defaults;
}

static int drop_defaults(struct xsp_recorder *r, unsigned which, const struct xsp_brake_plan *plan,
			 uint64_t now)
{
	char why[160], worst[SLOWDOWN_SIZE], name[WATCHED_NAME_SIZE];

	snprintf(why, sizeof(why), "%s was slowed by %s, more than the %.3g %% of --max-overhead",
		 xsp_watched_name(name, plan->worst_tid), xsp_format_slowdown(worst, plan->worst),
		 100 * r->overheads->budget);
	xsp_watched_begin_anew(r, now);
	return xsp_recorder_drop(r, which, why);
}

static int look(struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;
	struct xsp_brake_thread *threads = calloc(o->threads.count + 1, sizeof(*threads));
	struct xsp_brake_input in = {.budget = o->budget,
				     .threads = threads,
				     .costs = o->costs.of.rows,
				     .cost_count = o->costs.of.count,
				     .may_go = xsp_watched_may_go,
				     .ctx = r};
	struct xsp_brake_plan plan = {0};

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
		rc = xsp_brake_release(r, &plan);
	else if (xsp_window_is_over(r, &plan, now))
		rc = xsp_brake_pause(r, &plan);
	xsp_brake_plan_clear(&plan);
	/* in windows: where a part of one has ended within the budget */
	if (!o->windows || o->judged_ns == now)
		xsp_watched_begin(o, o->windows, now);
	xsp_watched_drop_ended(o);
	return rc;
}

/* So long before a window its sites begin to go in. */
static uint64_t resume_lead_ns(const struct xsp_overhead *o)
{
	return o->resume_took_ns + o->resume_took_ns / 2 + LEAD_NS;
}

/* All sites are in. A window by the schedule begins at its time. */
static int resumed(struct xsp_recorder *r, const struct xsp_attach_change *change, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;

	if (o->suspended && change->error == 0 && now < o->next_window_ns)
		return 0;
	if (o->suspended)
		o->window_until_ns = now + o->schedule.length_ns;
	o->suspended = false;
	return xsp_brake_begin_window(r, change);
}

/* During a change or a pause: only the sums go on. */
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
		xsp_watched_begin_anew(r, now);
		if (change.error == 0)
			return 0;
		return xsp_brake_give_up(r, "a function cannot be released by itself",
					 change.error == -EOPNOTSUPP ? "uprobe_multi can, Linux 6.6"
								     : strerror(-change.error));
	}
	if (o->phase == PAUSING && o->only_rest) {
		o->only_rest = false;
		o->phase = OFF;
		return 0;
	}
	if (o->phase == PAUSING) {
		r->end_ns = o->pause_ns; /* entries that --min-duration still keeps */
		int rc = xsp_brake_begin_off(r, &change);
		return rc < 0 ? rc : xsp_recorder_put_held_back(r);
	}
	if (o->phase == RESUMING)
		return resumed(r, &change, now);
	if (o->leaving != NULL)
		return xsp_brake_release_leaving(r);
	if (now < o->off_until_ns ||
	    (o->pays && now - o->pause_ns < PAYS_NS && xsp_watched_owes(r, now)) ||
	    (o->suspended && now + resume_lead_ns(o) < o->next_window_ns))
		return 0;
	if (xsp_broker_resume(r->broker) == 0)
		o->phase = RESUMING;
	return 0;
}

/* --sample-rate: while names come that were not seen before, the window goes on. */
static void adapt(const struct xsp_recorder *r, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;
	const uint64_t names = xsp_drain_totals(r->drain)->names,
		       until = now + o->schedule.length_ns;

	if (!o->schedule.adapts || o->phase != ON || names == o->names)
		return;
	o->names = names;
	if (until > o->window_until_ns && until < o->window_ns + ADAPTS_NS)
		o->window_until_ns = until;
}

/* A window by the schedule is over. The last one ends with the recording. */
static bool is_to_suspend(const struct xsp_recorder *r, uint64_t now)
{
	const struct xsp_overhead *o = r->overheads;

	return xsp_is_scheduled(&o->schedule) && now >= o->window_until_ns && !o->suspended &&
	       !o->releasing && o->leaving == NULL && !o->for_good &&
	       (o->phase == ON || o->phase == OFF) && !xsp_recorder_schedule_is_over(r);
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
		/* of that time it is known also at the next turns that come late */
		if (since_ns != 0 && since_ns != o->abandoned_ns)
			return xsp_brake_was_abandoned(r, since_ns, now);
	}
	adapt(r, now);
	if (is_to_suspend(r, now))
		return xsp_brake_suspend(r);
	if (has_budget(o))
		xsp_watched_read_quiet(r, now);
	if (o->for_good && (o->phase == ON || o->phase == RESUMING))
		return xsp_brake_detach_all(r);
	if (o->releasing || o->phase != ON)
		return go_on(r, now);
	if (!has_budget(o))
		return 0;
	if (now - o->look_ns < LOOK_NS &&
	    xsp_drain_totals(r->drain)->cost_ns - o->look_cost_ns < EARLY_NS)
		return 0;
	xsp_watched_add_figures(r, now);
	return look(r, now);
}

/* ---- results ---- */

int xsp_overhead_edge(struct xsp_recorder *r, uint64_t edge_ns)
{
	struct xsp_overhead *o = r->overheads;

	if (o == NULL || !xsp_has_windows(o) || o->phase != ON)
		return 0;
	const int rc = xsp_brake_put_window(r, edge_ns);
	o->window_ns = edge_ns;
	return rc;
}

int xsp_overhead_stop(struct xsp_recorder *r)
{
	struct xsp_overhead *o = r->overheads;

	return o != NULL && xsp_has_windows(o) && o->phase == ON
		       ? xsp_brake_put_window(r, r->end_ns)
		       : 0;
}

static const struct watched *worst_of(const struct xsp_overhead *o)
{
	const struct watched *worst = o->ended.tid != 0 ? &o->ended : NULL;
	double most = xsp_watched_slowdown(&o->ended);

	for (size_t i = 0; i < o->threads.count; i++) {
		const struct watched *w = &o->threads.rows[i];
		double slowdown = xsp_watched_slowdown(w);
		/* a process counts if it is slower than its threads by more than the figures' error */
		if (w->all_cpu_ns < SHOWN_CPU_NS ||
		    slowdown <= (w->tid & XSP_BRAKE_WHOLE ? 1.1 : 1) * most)
			continue;
		most = slowdown;
		worst = w;
	}
	return worst;
}

static double percent(double probe_ns, uint64_t cpu_ns)
{
	double slowdown = xsp_brake_slowdown((uint64_t)probe_ns, cpu_ns);

	return 100 * (slowdown < DISPLAY_MAX ? slowdown : DISPLAY_MAX);
}

struct cost_error {
	double low, high; /* factors */
	const char *why;
};

/* By what was measured in the target; else the estimate if all hits had met warm caches, or cold ones. */
static struct cost_error error_of(const struct xsp_recorder *r)
{
	const struct xsp_drain_totals *sum = xsp_drain_totals(r->drain);
	const double cost = (double)sum->cost_ns, bare = cost - (double)sum->cold_ns;
	struct xsp_capture_prices p;

	if (xsp_recorder_measured_prices(r, false, &p))
		return (struct cost_error){1 - p.error, 1 + p.error, "by samples in hits"};
	return (struct cost_error){cost > 0 ? bare / cost : 1,
				   cost > 0 ? (bare + (double)sum->cold_most_ns) / cost : 1,
				   "by how warm its caches were"};
}

/* Words before the worst thread's figure. */
static const char *at_least(const struct xsp_recorder *r, double display_value)
{
	struct xsp_attach_counters c = {0};

	if (display_value >= 100 * DISPLAY_MAX)
		return "more than ";
	xsp_broker_counters(r->broker, false, &c);
	/* some may be this thread's; an unwatched thread may be slower still */
	return c.unseen_ns > 0 || r->overheads->unmet ? "at least " : "";
}

int xsp_overhead_finish(struct xsp_recorder *r)
{
	struct xsp_overhead *o = r->overheads;
	char text[160], name[WATCHED_NAME_SIZE];

	if (!has_budget(o))
		return 0;
	xsp_watched_add_figures(r, xsp_now_ns());
	snprintf(text, sizeof(text), "%.3g %%", 100 * o->budget);
	int rc = xsp_capture_put_info(r->writer, "max overhead", text);
	const struct watched *worst = worst_of(o);
	if (rc < 0 || worst == NULL)
		return rc;
	const double all = (double)worst->all_probe_ns;
	const uint64_t cpu_ns = xsp_watched_cpu_ns(worst);
	const struct cost_error e = error_of(r);
	snprintf(text, sizeof(text), "%s%.1f %% (%s; %.1f to %.1f %% %s)",
		 at_least(r, percent(all, cpu_ns)), percent(all, cpu_ns),
		 xsp_watched_name(name, worst->tid), percent(all * e.low, cpu_ns),
		 percent(all * e.high, cpu_ns), e.why);
	return xsp_capture_put_info(r->writer, "worst slowdown", text);
}
