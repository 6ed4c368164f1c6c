/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * windows.c - how long windows last.
 *
 * A call that is cut at a window's edge shows a part of its time, and one that is longer than the window is never seen
 * whole. So a window lasts for two of the longest outermost calls seen. It ends at a time that is known when it begins:
 * if it ended as soon as the target is over its budget, it would show less of what costs much. If pauses between such
 * windows would be too long, hot functions of providers are released instead.
 */
#include "record/brake/overhead.h"

#include "base/units.h"

/* A cut call is long if it has at least one part in so many of the window. */
#define CUT_PART 8
#define WINDOW_MOST_NS 3000000000ULL
/* A window and the pause that pays for it. */
#define CYCLE_MOST_NS 4000000000ULL

/* Of that many calls, with room for a longer one. */
static uint64_t two_calls_ns(const struct xsp_overhead *o)
{
	return 2 * o->calls.longest_ns + o->calls.longest_ns / 4;
}

uint64_t xsp_window_length_ns(const struct xsp_overhead *o)
{
	uint64_t ns = two_calls_ns(o);

	/* nobody knows how long it is: a window that is twice as long may see it whole */
	if (o->calls.cut && CUT_PART * o->calls.longest_ns > o->prepaid_ns &&
	    ns < 2 * o->prepaid_ns)
		ns = 2 * o->prepaid_ns;
	return ns < WINDOW_NS ? WINDOW_NS : ns > WINDOW_MOST_NS ? WINDOW_MOST_NS : ns;
}

static void begin_part(struct xsp_overhead *o, uint64_t now)
{
	o->judged_ns = now;
	o->least_ns = now + xsp_window_length_ns(o);
}

void xsp_window_begins(struct xsp_overhead *o, uint64_t now)
{
	begin_part(o, now);
	xsp_calls_begin(&o->calls, now);
}

/* Not the longest calls themselves, and no part of what belongs together. */
static bool is_alone(const struct xsp_recorder *r, uint32_t probe)
{
	const struct xsp_probe *p = xsp_recorder_probe(r, probe);

	return p != NULL && p->action == XSP_ACTION_SPAN &&
	       probe != r->overheads->calls.longest_probe;
}

bool xsp_window_may_release(const struct xsp_recorder *r, uint32_t probe)
{
	return r->overheads->whole && is_alone(r, probe);
}

static bool any_alone(const struct xsp_recorder *r)
{
	const struct xsp_costs *c = &r->overheads->costs;

	for (size_t i = 0; i < c->of.count; i++)
		if (is_alone(r, c->of.rows[i].probe))
			return true;
	return false;
}

/* Windows would be far apart: the next look releases what costs most. */
static bool goes_on_whole(struct xsp_recorder *r, double share)
{
	struct xsp_overhead *o = r->overheads;
	const uint64_t length = two_calls_ns(o);
	char longest[XSP_UNITS_SIZE];

	if (o->whole || length <= WINDOW_NS || !any_alone(r) ||
	    length + xsp_brake_off_ns(o->budget, share, length) <= CYCLE_MOST_NS)
		return false;
	o->whole = true;
	xsp_recorder_note(
		r,
		"calls last for %s and more: so that they are seen whole, hot functions are released instead of shorter windows",
		xsp_format_ns(longest, o->calls.longest_ns));
	return true;
}

bool xsp_window_is_over(struct xsp_recorder *r, const struct xsp_brake_plan *plan, uint64_t now)
{
	struct xsp_overhead *o = r->overheads;

	if (plan->pause && goes_on_whole(r, plan->paused_share))
		return false;
	if (!o->windows || now < o->least_ns || plan->pause)
		return plan->pause && (!o->windows || now >= o->least_ns);
	begin_part(o, now);
	return false;
}
