/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/drain/calls.h"

#include <stdbool.h>
#include <string.h>

/* What is open for longer is a main loop rather than a step: what it calls counts as outermost. */
#define OPEN_MOST_NS 1500000000ULL

static void lasted(struct xsp_calls *c, uint32_t probe, uint64_t from_ns, uint64_t to_ns, bool cut)
{
	if (to_ns <= from_ns || to_ns - from_ns <= c->longest_ns)
		return;
	c->longest_ns = to_ns - from_ns;
	c->longest_probe = probe;
	c->cut = cut;
}

/* What ends here without a beginning began before the window. Of other functions' exits, and of functions in a range, the
 * outermost call knows nothing. */
static void ended(struct xsp_calls *c, struct xsp_open_call *o, const struct xsp_event *e)
{
	const bool same = o->is_range ? e->kind == XSP_EVENT_END
				      : e->kind == XSP_EVENT_EXIT && e->probe == o->probe;

	if (o->depth == 0)
		lasted(c, e->probe, c->since_ns, e->time_ns, true);
	else if (same && --o->depth == 0)
		lasted(c, o->probe, o->start_ns, e->time_ns, false);
}

static void began(struct xsp_open_call *o, const struct xsp_event *e)
{
	const bool is_range = e->kind == XSP_EVENT_BEGIN;

	/* a function whose frame is gone has ended: its exit was not seen */
	if (o->depth == 0 || (!is_range && !o->is_range && e->sp >= o->sp) ||
	    e->time_ns > o->start_ns + OPEN_MOST_NS)
		*o = (struct xsp_open_call){.tid = e->tid,
					    .probe = e->probe,
					    .depth = 1,
					    .is_range = is_range,
					    .sp = e->sp,
					    .start_ns = e->time_ns};
	else if (o->is_range ? is_range : e->probe == o->probe)
		o->depth++;
}

void xsp_calls_see(struct xsp_calls *c, const struct xsp_event *e)
{
	struct xsp_open_call *o = &c->open[e->tid % XSP_CALLS_THREADS];
	const bool begins = e->kind == XSP_EVENT_ENTRY || e->kind == XSP_EVENT_BEGIN;

	if (!begins && e->kind != XSP_EVENT_EXIT && e->kind != XSP_EVENT_END)
		return;
	if (o->tid != e->tid)
		*o = (struct xsp_open_call){.tid = e->tid};
	if (begins)
		began(o, e);
	else
		ended(c, o, e);
}

void xsp_calls_begin(struct xsp_calls *c, uint64_t now)
{
	c->since_ns = now;
	memset(c->open, 0, sizeof(c->open));
}

void xsp_calls_end(struct xsp_calls *c, uint64_t now)
{
	for (unsigned i = 0; i < XSP_CALLS_THREADS; i++)
		if (c->open[i].depth > 0 && now < c->open[i].start_ns + OPEN_MOST_NS)
			lasted(c, c->open[i].probe, c->open[i].start_ns, now, true);
}
