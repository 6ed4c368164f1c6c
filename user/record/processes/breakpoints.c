/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * breakpoints.c - are they still there at the end? A program that drops pages of its code (madvise), or maps the file
 * over them again, removes them silently, and we miss the calls.
 */
#include "record/recorder_private.h"
#include "base/clock.h"
#include "base/units.h"

#define LOOK_NS 300000000ULL /* for all processes: the user waits, so the rest is not checked */

static void look_at(struct xsp_recorder *r, const struct recorded_process *p,
		    const struct xsp_planned_module *m)
{
	size_t first = 0;
	/* of an agent's some may have been taken out, and none is hit where there is no driver */
	long n = m->id < p->room && p->modules[m->id].attached && !m->is_agent
			 ? xsp_plan_dropped(m, p->modules[m->id].spared, r->broker, p->pid, &first)
			 : 0;
	char name[128];

	if (n <= 0)
		return;
	xsp_printable(name, sizeof(name), m->probes[first].probe.name, 100);
	if (r->gaps[XSP_GAP_DROPPED].count == 0)
		xsp_recorder_note(
			r,
			"process %d has dropped pages of its code, or written over it, and %ld breakpoint%s with it (first of %s): calls since then are missing",
			(int)p->pid, n, n == 1 ? "" : "s", name);
	xsp_recorder_gap(
		r, XSP_GAP_DROPPED, (uint64_t)n,
		"of functions, at the end: the program dropped pages of its code, or wrote over it, calls since then are missing; first: %s",
		name);
}

void xsp_recorder_look_for_dropped(struct xsp_recorder *r)
{
	struct xsp_recorder_status s = {0};
	const uint64_t start = xsp_now_ns();

	/* sites that are released or were refused have the file's pages again */
	xsp_overhead_status(r, &s);
	if (s.let_go > 0 || s.paused || r->gaps[XSP_GAP_SITES].count > 0 ||
	    r->gaps[XSP_GAP_FUNCTIONS].count > 0)
		return;
	for (size_t i = 0; i < r->process_count; i++)
		for (size_t j = 0; j < r->plan.count && xsp_now_ns() - start < LOOK_NS; j++)
			look_at(r, &r->processes[i], r->plan.modules[j]);
}
