/* SPDX-License-Identifier: BSD-2-Clause */
/* changes.c - does what the brake has decided: releases probes, pauses all of them, or ends them for good. */
#include "record/brake/overhead.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"

/* Windows are so short that the budget would hold if the estimate were a sixth too low. */
#define WINDOW_AIM 0.85
#define OFF_MOST_NS 120000000000ULL
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

/* Of all threads, lately. */
static double calls_per_second(const struct xsp_overhead *o, uint32_t probe, uint64_t now)
{
	double calls = 0;

	for (size_t i = 0; i < o->costs.count; i++) {
		const struct xsp_cost *c = &o->costs.rows[i];
		const uint32_t *at = xsp_u64map_get(&o->by_tid, c->tid);
		if (at == NULL || c->probe != probe)
			continue;
		/* its time in line does not count, but its probes had that time */
		uint64_t since = xsp_passed(now, o->threads[*at].since_ns);
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
	xsp_broker_counters(r->broker, false, &c); /* lost events were not counted */
	xsp_printable(name, sizeof(name), p != NULL ? p->name : "", 160);
	xsp_recorder_note(r, "%s: %s, released after %s; --max-overhead off keeps it", name,
			  xsp_capture_let_go_reason(l.calls_per_second, c.lost_entries > 0, why),
			  xsp_format_ns(after, now - r->start_ns));
	return xsp_capture_put_let_go(r->writer, &l);
}

int xsp_brake_release(struct xsp_recorder *r, const struct xsp_brake_plan *plan)
{
	uint64_t now = xsp_now_ns(); /* readers ignore what is reported later */
	int rc = xsp_broker_release(r->broker, plan->let_go, plan->let_go_count);

	if (rc < 0)
		return 0; /* the next look will ask again */
	r->overheads->releasing = true;
	for (size_t i = 0; i < plan->let_go_count && rc == 0; i++)
		rc = note_let_go(r, plan->let_go[i], now);
	return rc;
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

int xsp_brake_pause(struct xsp_recorder *r, const struct xsp_brake_plan *plan)
{
	struct xsp_overhead *o = r->overheads;
	const bool first = !o->windows;
	char worst[SLOWDOWN_SIZE];

	if (begin_pause(r, plan->paused_share) < 0)
		return 0; /* the next look will ask again */
	if (first)
		xsp_recorder_note(
			r,
			"thread %u is slowed by %s, more than the %.3g %% of --max-overhead: what is traced goes on in windows (off: all of it, at any cost)",
			plan->worst_tid, xsp_format_slowdown(worst, plan->worst), 100 * o->budget);
	return xsp_brake_put_window(r, o->pause_ns);
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
	const uint64_t next = xsp_window_length_ns(o);
	if (o->prepaid_ns == 0)
		on += ways;
	on += xsp_passed(next, o->prepaid_ns);
	o->prepaid_ns = next;
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
	o->window_ns = now;
	xsp_window_begins(o, now);
	xsp_broker_activate(r->broker, true);
	return 0;
}
