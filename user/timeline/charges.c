/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * charges.c - charge.h: one sweep over each thread's events, in their order. What lies between two events is charged to the
 * innermost span that was open.
 */
#include "timeline/charge.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rows/tally.h"
#include "timeline/others.h"
#include "timeline/python.h"
#include "timeline/timeline_private.h"

#define MOST_NS (1ULL << 57) /* four years */
#define NO_PLACE UINT32_MAX /* the stack has no line to name */

struct clock {
	uint32_t pid, tid;
	bool begun;
	uint64_t first_ns, ns; /* charged from, and up to here */
	uint64_t off_ns; /* how much of that was off a CPU */
	uint64_t short_ns, probe_ns; /* not charged yet */
	uint64_t bare_ns[2]; /* it ran in no span: while probes were in, and in pauses */
	size_t window; /* the first one that has not ended */
};

struct xsp_charges {
	XSP_TALLY(struct clock) clocks;
	struct clock *last;
	uint32_t *places; /* by Python stack: 1 + name id; 0: not looked for yet; NO_PLACE */
};

static int begin(struct xsp_timeline *t)
{
	const struct xsp_capture_python *pythons;

	if (t->waits == NULL)
		return 0;
	t->charges = calloc(1, sizeof(*t->charges));
	if (t->charges == NULL)
		return -ENOMEM;
	t->charges->places = calloc(xsp_capture_pythons(t->reader, &pythons) + 1, sizeof(uint32_t));
	return t->charges->places != NULL ? 1 : -ENOMEM;
}

static void free_charges(struct xsp_timeline *t)
{
	if (t->charges == NULL)
		return;
	xsp_tally_free(&t->charges->clocks);
	free(t->charges->places);
	free(t->charges);
}

static struct clock *clock_of(struct xsp_charges *c, uint32_t pid, uint32_t tid)
{
	struct clock *k = c->last;

	if (k == NULL || k->tid != tid || k->pid != pid)
		k = c->last = xsp_tally_row(&c->clocks, xsp_u64_pair(pid, tid),
					    &(struct clock){.pid = pid, .tid = tid});
	return k;
}

/* ---- places ---- */

/* The line of Python that calls the span: the program's own, where there is one. */
static int own_line(struct xsp_timeline *t, const struct open_span *s, uint32_t *place)
{
	uint32_t *known = &t->charges->places[s->python - t->pythons];
	xsp_name_id id;

	if (s->python_first == 0 && *known != 0) {
		*place = *known != NO_PLACE ? *known : *place;
		return 0;
	}
	const uint32_t own = xsp_timeline_python_own(t, s->python, s->python_first);
	const bool found = own < s->python->count;
	int rc = found ? xsp_python_name(t, &s->python->frames[own], &id) : 0;
	if (rc == 0 && found)
		*place = id + 1;
	if (rc == 0 && s->python_first == 0)
		*known = found ? *place : NO_PLACE;
	return rc;
}

int xsp_charge_place(struct xsp_timeline *t, const struct row *row, struct open_span *s)
{
	const struct open_span *around = row->count > 0 ? &row->spans[row->count - 1] : NULL;

	if (!t->charges_wanted)
		return 0;
	s->place = around != NULL ? around->place : 0;
	s->in_step = (around != NULL && around->in_step) || xsp_timeline_is_step(t, s->name);
	return s->python != NULL ? own_line(t, s, &s->place) : 0;
}

/* ---- charges ---- */

static int hand_on(struct xsp_timeline *t, struct xsp_charge *c)
{
	/* no machine runs for so long: a damaged capture says so */
	if (c->to_ns - c->from_ns > MOST_NS || c->short_ns > MOST_NS || c->probe_ns > MOST_NS)
		return 0;
	const bool is_rest = c->to_ns == c->from_ns; /* see charge_rest() */
	c->from_ns = xsp_timeline_clip(t, c->from_ns);
	c->to_ns = xsp_timeline_clip(t, c->to_ns);
	const uint64_t ns = c->to_ns - c->from_ns;
	if (!is_rest) { /* of what the range cuts off nobody knows where the short waits and hits were */
		c->short_ns = c->short_ns < ns ? c->short_ns : ns;
		c->probe_ns = c->probe_ns < ns - c->short_ns ? c->probe_ns : ns - c->short_ns;
	}
	if ((ns == 0 && c->short_ns == 0) || xsp_cut_thread(t, c->tid) != 0)
		return 0;
	return xsp_notify_charge(t, c);
}

/* Moves what is not charged yet into a charge that has room for it. */
static uint64_t take(uint64_t *pending, uint64_t room)
{
	const uint64_t part = *pending < room ? *pending : room;

	*pending -= part;
	return part;
}

/* What is open where the time is spent. Members NULL: nothing. */
struct open {
	const struct open_span *any,
		*call; /* the innermost span, and the innermost that is not only a range */
};

static struct xsp_charge charge_of(const struct xsp_timeline *t, const struct clock *k,
				   enum xsp_charge_kind kind, uint64_t to_ns, struct open open)
{
	return (struct xsp_charge){.kind = kind,
				   .pid = k->pid,
				   .tid = k->tid,
				   .from_ns = k->ns,
				   .to_ns = to_ns,
				   .in_step =
					   t->steps_end || (open.any != NULL && open.any->in_step),
				   .in_span = open.call != NULL,
				   .span = open.call != NULL ? open.call->name : 0,
				   .place = open.any != NULL ? open.any->place : 0};
}

static int charge_running(struct xsp_timeline *t, struct clock *k, struct open open, uint64_t to_ns,
			  bool paused)
{
	struct xsp_charge c = charge_of(t, k, XSP_CHARGE_RUNNING, to_ns, open);
	const uint64_t room = to_ns - k->ns;

	c.paused = paused;

	c.short_ns = take(&k->short_ns, room);
	c.probe_ns = take(&k->probe_ns, room - c.short_ns);
	k->off_ns += c.short_ns;
	k->bare_ns[paused] += c.in_span ? 0 : room - c.short_ns - c.probe_ns;
	k->ns = to_ns;
	return hand_on(t, &c);
}

/* Up to `to_ns` the thread ran: in the span while probes were in, and in none during pauses. */
static int run_until(struct xsp_timeline *t, struct clock *k, struct open open, uint64_t to_ns)
{
	const struct open nothing = {NULL, NULL};
	int rc = 0;

	while (rc == 0 && k->ns < to_ns && k->window < t->window_count) {
		const struct xsp_capture_window *w = &t->windows[k->window];
		const bool paused = k->ns < w->start_ns;
		const uint64_t edge = paused ? w->start_ns : w->end_ns;
		if (k->ns >= w->end_ns) {
			k->window++;
			continue;
		}
		rc = charge_running(t, k, paused ? nothing : open, edge < to_ns ? edge : to_ns,
				    paused);
	}
	if (rc < 0 || k->ns >= to_ns)
		return rc;
	const bool paused = t->window_count > 0;
	return charge_running(t, k, paused ? nothing : open, to_ns, paused);
}

/* A stack of ranges may be 65,536 deep: each level is looked at once. */
const struct open_span *xsp_charge_call(const struct xsp_timeline *t, struct row *row)
{
	for (; row->call_levels < row->count; row->call_levels++) {
		const size_t i = row->call_levels;
		const bool call = !(row->names[i] & XSP_NAME_LEFT_OUT) &&
				  !(row->spans[i].range && t->samples != NULL);
		row->spans[i].call = call ? (uint32_t)i + 1 : i > 0 ? row->spans[i - 1].call : 0;
	}
	const uint32_t at = row->count > 0 ? row->spans[row->count - 1].call : 0;
	return at > 0 ? &row->spans[at - 1] : NULL;
}

static struct open open_in(const struct xsp_timeline *t, const struct thread *th)
{
	struct row *row = th->rows[th->current];

	return (struct open){xsp_row_innermost_kept(row), xsp_charge_call(t, row)};
}

static void start(struct clock *k, uint64_t ns)
{
	if (k->begun)
		return;
	k->begun = true;
	k->first_ns = k->ns = ns;
	k->window = 0;
}

int xsp_charge_until(struct xsp_timeline *t, const struct thread *th, uint64_t ns,
		     uint64_t probe_ns)
{
	struct clock *k;

	if (th->pid == XSP_OTHERS_PID)
		return 0;
	k = clock_of(t->charges, th->pid, th->tid);
	if (k == NULL)
		return -ENOMEM;
	start(k, ns);
	k->probe_ns += probe_ns;
	return ns > k->ns ? run_until(t, k, open_in(t, th), ns) : 0;
}

static int charge_off(struct xsp_timeline *t, struct clock *k, struct open open,
		      const struct xsp_wait *w, enum xsp_charge_kind kind, uint64_t to_ns)
{
	struct xsp_charge c = charge_of(t, k, kind, to_ns, open);

	if (to_ns <= k->ns)
		return 0;
	c.wait = w;
	c.paused = !xsp_timeline_recorded(t, c.from_ns, c.to_ns);
	k->off_ns += to_ns - k->ns;
	k->ns = to_ns;
	return hand_on(t, &c);
}

int xsp_charge_wait(struct xsp_timeline *t, const struct thread *th, const struct xsp_wait *w,
		    uint64_t back_ns)
{
	const struct open open = open_in(t, th);
	const bool real = !(w->flags & XSP_WAIT_SHORT);
	struct clock *k;
	int rc = 0;

	if (th->pid == XSP_OTHERS_PID)
		return 0;
	k = clock_of(t->charges, th->pid, th->tid);
	if (k == NULL)
		return -ENOMEM;
	start(k, real ? w->left_ns : back_ns);
	k->short_ns += w->short_ns;
	if (w->left_ns > k->ns && real)
		rc = run_until(t, k, open, w->left_ns);
	if (rc == 0 && real)
		rc = charge_off(t, k, open, w, XSP_CHARGE_WAITING, w->woken_ns);
	return rc == 0 && real ? charge_off(t, k, open, w, XSP_CHARGE_READY, w->back_ns) : rc;
}

/* ---- the end of a thread, or of the recording ---- */

/* What the kernel counted beyond the waits with an event: too short, in a stretch without a span. Of a snapshot the kernel's
 * sums are less exact than its events: there is no more of it than such stretches have. */
static int charge_rest(struct xsp_timeline *t, struct clock *k, uint64_t off_ns)
{
	uint64_t rest = off_ns > k->off_ns ? off_ns - k->off_ns : 0;
	int rc = 0;

	for (unsigned paused = 0; paused < 2 && t->cut.text == NULL && rc == 0; paused++) {
		struct xsp_charge c =
			charge_of(t, k, XSP_CHARGE_RUNNING, k->ns, (struct open){NULL, NULL});
		c.paused = paused;
		c.short_ns = take(&rest, k->bare_ns[paused]);
		rc = hand_on(t, &c);
	}
	return rc;
}

/* What is open in the thread, if it lives. */
static struct open still_open(const struct xsp_timeline *t, uint32_t pid, uint32_t tid)
{
	const uint32_t *at = xsp_u64map_get(&t->by_tid, tid);

	return at != NULL && t->alive[*at]->pid == pid ? open_in(t, t->alive[*at])
						       : (struct open){NULL, NULL};
}

static int on_times(struct xsp_timeline *t, const struct xsp_event *event)
{
	const struct xsp_event_times *e = (const void *)event;
	struct clock *k;
	uint64_t off_ns = e->runnable_ns;
	int rc = 0;

	if (!t->charges_wanted)
		return 0;
	k = clock_of(t->charges, event->tgid, event->tid);
	if (k == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < XSP_WAIT_CLASSES; i++)
		off_ns += e->blocked_ns[i];
	start(k, e->since_ns);
	const uint64_t until_ns = event->time_ns > k->ns ? event->time_ns : k->ns;
	const uint64_t first_ns = k->first_ns;
	if (e->since_ns < first_ns) { /* it ran before its first event */
		struct clock before = {.pid = k->pid, .tid = k->tid, .ns = e->since_ns};
		rc = run_until(t, &before, (struct open){NULL, NULL}, first_ns);
		for (size_t i = 0; i < 2; i++)
			k->bare_ns[i] += before.bare_ns[i];
	}
	if (rc == 0)
		rc = run_until(t, k, still_open(t, k->pid, k->tid), until_ns);
	if (rc == 0)
		rc = charge_rest(t, k, off_ns);
	if (e->ended || t->scheduled) /* what comes in a later window begins with it */
		*k = (struct clock){.pid = k->pid, .tid = k->tid};
	return rc;
}

const struct xsp_listener xsp_listener_charges = {
	.name = "charges",
	.begin = begin,
	.events = 1U << XSP_EVENT_TIMES,
	.event = on_times,
	.free = free_charges,
};
