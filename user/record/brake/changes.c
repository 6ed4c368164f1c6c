/* SPDX-License-Identifier: BSD-2-Clause */
/* changes.c - does what the brake has decided: releases probes, pauses all of them, or ends them for good. */
#include "record/brake/overhead.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"

/* Windows are so short that the budget would hold if the estimate were a sixth too low. */
#define WINDOW_AIM 0.85
#define OFF_MOST_NS 120000000000ULL
/* A debt that so much of the target's work pays is as good as paid. */
#define UNPAID_NS 100e6
/* A site that reports nothing still stops the thread: share of its price, until that is known. */
#define SILENT_SHARE 0.85

const char *xsp_format_slowdown(char text[SLOWDOWN_SIZE], double slowdown)
{
	if (slowdown < DISPLAY_MAX)
		snprintf(text, SLOWDOWN_SIZE, "about %.1f %%", 100 * slowdown);
	else
		snprintf(text, SLOWDOWN_SIZE, "more than %.0f %%", 100 * DISPLAY_MAX);
	return text;
}

/* Of all threads in wall time, while the probe slowed them. */
static double calls_per_second(const struct xsp_overhead *o, uint32_t probe, uint64_t now)
{
	double calls = 0;

	for (size_t i = 0; i < o->costs.of.count; i++) {
		const struct xsp_cost *c = &o->costs.of.rows[i];
		const struct watched *w = xsp_tally_find(&o->threads, c->tid);
		if (w == NULL || c->probe != probe || c->tid & XSP_BRAKE_WHOLE)
			continue;
		const uint64_t wall = xsp_passed(now, w->begun_ns),
			       hits = xsp_passed(o->latest_ns, w->latest_ns);
		calls += (double)c->calls * 1e9 / ((double)(wall > hits ? wall : hits) + 1);
	}
	return calls;
}

int xsp_brake_put_window(struct xsp_recorder *r, uint64_t end_ns)
{
	struct xsp_capture_window w = {.start_ns = r->overheads->window_ns, .end_ns = end_ns};

	r->overheads->recorded_ns += xsp_passed(end_ns, w.start_ns);
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

static int note_let_go(struct xsp_recorder *r, uint32_t probe, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;
	const struct xsp_probe *p = xsp_recorder_probe(r, probe);
	unsigned char *met = xsp_watched_met(o, probe);
	const bool unmet = met != NULL && *met == UNMET;
	const struct xsp_capture_let_go l = {
		.probe = probe,
		.why = unmet ? XSP_LET_GO_FAMILY : XSP_LET_GO_HOT,
		.time_ns = now,
		.calls_per_second = unmet ? 0 : (uint64_t)calls_per_second(o, probe, now),
	};
	char why[XSP_LET_GO_REASON_MAX], after[XSP_UNITS_SIZE], name[200];
	struct xsp_attach_counters c = {0};

	o->let_go_count++;
	if (met != NULL)
		*met = RELEASED;
	xsp_broker_counters(r->broker, false, &c); /* lost events were not counted */
	xsp_printable(name, sizeof(name), p != NULL ? p->name : "", 160);
	if (!unmet)
		xsp_recorder_note(r, "%s: %s, released after %s; --max-overhead off keeps it", name,
				  xsp_capture_let_go_reason(&l, c.lost_entries > 0, why),
				  xsp_format_ns(after, now - r->start_ns));
	return xsp_capture_put_let_go(r->writer, &l);
}

/* Is it of this pattern in its module, and was not called yet? */
static bool is_family(struct xsp_recorder *r, const struct xsp_pattern *pattern,
		      const struct xsp_planned_probe *p)
{
	const unsigned char *met = xsp_watched_met(r->overheads, p->id);

	return met != NULL && *met == UNMET && p->error == 0 && xsp_watched_may_go(r, p->id) &&
	       xsp_pattern_matches_name(pattern, p->probe.symbol);
}

/* One function after another costs too much: adds those of the costliest one's library and pattern that nobody has called
 * yet. Those that were called and stayed are known to be cheap. */
static void add_family(struct xsp_recorder *r, struct xsp_brake_plan *plan)
{
	const struct xsp_selection *s = &r->plan.selection;
	const struct xsp_planned_module *m = xsp_recorder_module(r, plan->let_go[0]);
	const char *symbol = xsp_recorder_probe(r, plan->let_go[0])->symbol;
	const size_t before = plan->let_go_count;
	uint32_t *all = reallocarray(plan->let_go, before + m->count, sizeof(*all));
	size_t k = 0;

	if (all == NULL)
		return;
	plan->let_go = all;
	while (k < s->pattern_count &&
	       (s->patterns[k].exclude || s->patterns[k].glob == NULL ||
		!xsp_pattern_names_library(&s->patterns[k], m->display_path) ||
		!xsp_pattern_matches_name(&s->patterns[k], symbol)))
		k++;
	for (size_t i = 0; k < s->pattern_count && i < m->count; i++)
		if (is_family(r, &s->patterns[k], &m->probes[i]))
			all[plan->let_go_count++] = m->probes[i].id;
	if (plan->let_go_count > before)
		xsp_recorder_note(
			r,
			"functions of one pattern cost too much, one after another: the other %zu of it are released before they are called; --max-overhead off keeps them",
			plan->let_go_count - before);
}

/* The programs that read names do not look at the state of a probe: spans with names of their own are taken out of each
 * process. That waits for the kernel. */
static int release_named(struct xsp_recorder *r, struct xsp_brake_plan *plan)
{
	size_t left = 0;
	int rc = 0;

	for (size_t i = 0; i < plan->let_go_count && rc == 0; i++) {
		const uint32_t id = plan->let_go[i];
		const struct xsp_probe *p = xsp_recorder_probe(r, id);
		if (p == NULL || p->action != XSP_ACTION_NAMED_SPAN) {
			plan->let_go[left++] = id;
			continue;
		}
		rc = note_let_go(r, id, xsp_now_ns());
		for (size_t k = 0; k < r->process_count; k++)
			xsp_broker_release_from(r->broker, r->processes[k].pid, &id, 1, false);
	}
	plan->let_go_count = left;
	return rc;
}

/* Beside an unpaid debt, or where many threads are slowed and a change of links would wait for each of them, everything is
 * taken out until the debt is paid, and the plan's probes do not return. */
int xsp_brake_release(struct xsp_recorder *r, struct xsp_brake_plan *plan)
{
	struct xsp_overhead *o = r->overheads;
	const bool unpaid = o->unpaid_ns > o->budget * UNPAID_NS;
	const bool pays = (unpaid || xsp_watched_is_crowded(o)) &&
			  xsp_broker_method(r->broker) == XSP_ATTACH_UPROBE_MULTI;
	int rc = release_named(r, plan);

	if (rc < 0 || plan->let_go_count == 0) {
		xsp_watched_begin_anew(r, xsp_now_ns());
		return rc;
	}
	if (unpaid)
		add_family(r, plan);
	if ((pays ? begin_pause(r, 0)
		  : xsp_broker_release(r->broker, plan->let_go, plan->let_go_count)) < 0)
		return 0; /* the next look will ask again */
	o->pays = pays;
	o->releasing = !pays;
	const uint64_t now = xsp_now_ns(); /* readers ignore what is reported later */
	for (size_t i = 0; i < plan->let_go_count && rc == 0; i++)
		rc = note_let_go(r, plan->let_go[i], pays ? o->pause_ns : now);
	if (rc < 0 || !pays)
		return rc;
	o->leaving = plan->let_go;
	o->leaving_count = plan->let_go_count;
	plan->let_go = NULL;
	return xsp_brake_put_window(r, o->pause_ns);
}

int xsp_brake_release_leaving(struct xsp_recorder *r)
{
	struct xsp_overhead *o = r->overheads;

	if (xsp_broker_release(r->broker, o->leaving, o->leaving_count) < 0)
		return 0; /* the next turn will ask again */
	free(o->leaving);
	o->leaving = NULL;
	o->releasing = true;
	return 0;
}

int xsp_brake_pause(struct xsp_recorder *r, const struct xsp_brake_plan *plan)
{
	struct xsp_overhead *o = r->overheads;
	const bool first = !o->windows;
	char worst[SLOWDOWN_SIZE], name[WATCHED_NAME_SIZE];

	if (begin_pause(r, plan->paused_share) < 0)
		return 0; /* the next look will ask again */
	if (first) {
		o->judged_ns = o->pause_ns - plan->share_ns;
		xsp_recorder_note(
			r,
			"%s is slowed by %s, more than the %.3g %% of --max-overhead: what is traced goes on in windows (off: all of it, at any cost)",
			xsp_watched_name(name, plan->worst_tid),
			xsp_format_slowdown(worst, plan->worst), 100 * o->budget);
	}
	return xsp_brake_put_window(r, o->pause_ns);
}

int xsp_brake_suspend(struct xsp_recorder *r)
{
	struct xsp_overhead *o = r->overheads;

	if (xsp_broker_suspend(r->broker) < 0)
		return 0; /* the next turn will ask again */
	const uint64_t now = xsp_now_ns();
	o->suspended = true;
	o->windows_ended++;
	o->next_window_ns = xsp_schedule_next(&o->schedule, now);
	o->only_rest = o->phase == OFF;
	o->phase = PAUSING;
	if (o->only_rest)
		return 0;
	o->pause_ns = now;
	o->window_share = 0;
	return xsp_brake_put_window(r, now);
}

int xsp_brake_detach_all(struct xsp_recorder *r)
{
	const bool recording = r->overheads->phase == ON;

	if (begin_pause(r, 1) < 0)
		return 0; /* the next turn will ask again */
	return recording ? xsp_brake_put_window(r, r->overheads->pause_ns) : 0;
}

int xsp_brake_give_up(struct xsp_recorder *r, const char *what, const char *why)
{
	char text[240];

	snprintf(text, sizeof(text),
		 "%s (%s): everything is taken out, and nothing more is recorded", what, why);
	xsp_recorder_note(r, "%s", text);
	r->overheads->for_good = true;
	int rc = xsp_capture_put_info(r->writer, xsp_capture_gap_key(XSP_GAP_END), text);
	return rc < 0 ? rc : xsp_brake_detach_all(r);
}

int xsp_brake_begin_off(struct xsp_recorder *r, const struct xsp_attach_change *change)
{
	static const char cannot[] =
		"this way of attaching cannot put the sites in again (xsptrace doctor): nothing more is recorded";

	struct xsp_overhead *o = r->overheads;
	uint64_t on = xsp_passed(o->pause_ns, o->judged_ns), off;

	o->pause_took_ns = change->took_ns;
	uint64_t ways = (uint64_t)(SILENT_SHARE *
				   ((double)o->pause_took_ns + 0.5 * (double)o->resume_took_ns));
	on += ways;
	xsp_calls_end(&o->calls, o->pause_ns);
	/* once, also pays for the next window: from then on each window is paid in advance */
	if (!o->pays) {
		const uint64_t next = xsp_window_length_ns(o);
		if (o->prepaid_ns == 0)
			on += ways;
		on += xsp_passed(next, o->prepaid_ns);
		o->prepaid_ns = next;
	}
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

int xsp_brake_was_abandoned(struct xsp_recorder *r, uint64_t since_ns, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;
	char stood[XSP_UNITS_SIZE];

	xsp_recorder_note(
		r,
		"xsptrace stood still (stopped? a slow disk?) and did not hold the brake: its probes were out of the target for %s, and nothing was recorded meanwhile",
		xsp_format_ns(stood, xsp_passed(now, since_ns)));
	const bool recorded = o->phase == ON;
	o->abandoned_ns = since_ns;
	o->windows = true;
	o->releasing = false;
	o->phase = PAUSING;
	o->pause_ns = since_ns;
	o->window_share = 0;
	if (recorded)
		return xsp_brake_put_window(r, since_ns);
	o->window_ns = since_ns; /* it had not begun */
	return 0;
}

int xsp_brake_begin_window(struct xsp_recorder *r, const struct xsp_attach_change *change)
{
	struct xsp_overhead *o = r->overheads;
	uint64_t now = xsp_now_ns();

	if (change->error < 0) { /* only some are in: what they see is incomplete */
		o->window_ns = now;
		return xsp_brake_give_up(r, "the sites cannot be put in again",
					 strerror(-change->error));
	}
	o->resume_took_ns = change->took_ns;
	o->phase = ON;
	xsp_watched_begin_anew(r, now);
	for (size_t i = 0; i < o->threads.count; i++)
		o->threads.rows[i].debt.ns = 0; /* paid */
	o->pays = false;
	o->window_ns = now;
	xsp_window_begins(o, now);
	xsp_broker_activate(r->broker, true);
	return 0;
}
