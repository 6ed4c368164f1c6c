/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * choose.c - which stack of a thread an event is on, by its stack pointer, and which open spans
 * there are gone. Stacks grow down. It is certain that a span is gone when an entry has its very
 * stack pointer. It is only likely that spans are gone below an event with a higher stack pointer:
 * they may belong to another stack of the thread (fiber, ucontext, sigaltstack). Such spans are
 * parked (rows.c): shown as ended at that time unless they come back.
 */
#include "timeline/spans/spans.h"

#include <errno.h>

/* ---- which row ---- */

/* Distance from x up to the innermost span above it on the row; without functions, to where the
 * last one was. */
static uint64_t distance(const struct row *row, uint64_t x)
{
	size_t below = xsp_row_below(row, x);
	if (below > 0 && row->spans[below - 1].limit != UINT64_MAX)
		return row->spans[below - 1].limit - x;
	if (below < row->count || row->base == 0)
		return UINT64_MAX;
	return row->base > x ? row->base - x : x - row->base;
}

/* On the current row a place a little above its functions is near, too: lost exits are more
 * frequent than stack switches. */
static uint64_t distance_current(const struct row *row, uint64_t x)
{
	uint64_t d = distance(row, x);
	size_t below = xsp_row_below(row, x);
	if (d == UINT64_MAX && below < row->count)
		d = x - row->spans[below].limit;
	return d;
}

/* The parked run whose innermost span above x is nearest, within `most`. */
static bool nearest_parked(const struct thread *th, uint64_t x, uint64_t most, bool far_only,
			   size_t *which, size_t *below)
{
	bool found = false;
	for (size_t i = 0; i < th->parked_count; i++) {
		const struct parked *p = th->parked[i];
		if (p->gone || (far_only && !p->far))
			continue;
		size_t k = p->count;
		while (k > 0 && p->spans[k - 1].limit <= x)
			k--;
		if (k == 0 || p->spans[k - 1].limit - x > most)
			continue;
		most = p->spans[k - 1].limit - x;
		*which = i;
		*below = k;
		found = true;
	}
	return found;
}

int xsp_resume_for(struct xsp_timeline *t, struct thread *th, size_t which, size_t below,
		   struct row **row)
{
	int rc = xsp_parked_split(t, th, which, below);
	return rc < 0 ? rc : xsp_parked_resume(t, th, which, row);
}

int xsp_choose_row(struct xsp_timeline *t, struct thread *th, uint64_t x, struct row **out)
{
	size_t below = 0, which = 0;
	uint64_t best = distance_current(th->rows[th->current], x);
	uint32_t chosen = th->current;
	if (th->many_stacks && th->used_rows > 1) {
		for (uint32_t i = 0; i < th->used_rows; i++) {
			uint64_t d = i == th->current ? best : distance(th->rows[i], x);
			if (d < best && d <= XSP_FAR) {
				best = d;
				chosen = i;
			}
		}
	}
	*out = th->rows[chosen];
	if (th->parked_count > 0 && (best > XSP_FAR || th->many_stacks)) {
		uint64_t most = best > XSP_FAR ? XSP_FAR : best;
		if (most > 0 && nearest_parked(th, x, most - 1, best <= XSP_FAR, &which, &below)) {
			int rc = xsp_resume_for(t, th, which, below, out);
			return rc == -E2BIG ? 0 : rc;
		}
	}
	if (chosen != th->current) {
		th->current = chosen;
		t->counts.stack_switches++;
	}
	return 0;
}

/* ---- what an event at stack pointer x proves about open spans ---- */

int xsp_slot_reused(struct xsp_timeline *t, struct thread *th, struct row *row, size_t i,
		    uint64_t now)
{
	int rc = xsp_park(t, th, row, i + 1, now, false, false);
	return rc < 0 ? rc : xsp_row_pop(t, th, row, now, XSP_SPAN_EXIT_LOST);
}

/*
 * The same for an entry from the row. An exception may have left the function, and its caller's
 * landing pad now calls a destructor, which reports its entry before the pad reports its landing
 * (pair_unwind()). So the function waits for that.
 */
static int slot_reused_by_entry(struct xsp_timeline *t, struct thread *th, struct row *row,
				size_t i, uint64_t now)
{
	int rc = xsp_park(t, th, row, i + 1, now, false, false);

	/* none that is as deep waits any longer */
	for (size_t k = th->parked_count; k > 0 && rc == 0; k--)
		if (th->parked[k - 1]->gone && th->parked[k - 1]->row == row->index &&
		    th->parked[k - 1]->prefix >= i)
			rc = xsp_parked_gone(t, th, k - 1, 0);
	if (rc == 0)
		rc = xsp_park(t, th, row, i, now, false, false);
	if (rc == 0)
		th->parked[th->parked_count - 1]->gone = true;
	return rc;
}

int xsp_slot_reused_elsewhere(struct xsp_timeline *t, struct thread *th, const struct row *row,
			      uint64_t x, uint64_t now)
{
	int rc = 0;
	for (size_t i = th->parked_count; i > 0 && rc == 0; i--) {
		const struct parked *p = th->parked[i - 1];
		if (p->gone || p->spans[p->count - 1].limit > x)
			continue;
		for (size_t k = 0; k < p->count && p->spans[k].limit >= x; k++) {
			if (p->spans[k].sp == x && !p->spans[k].range) {
				rc = xsp_parked_gone(t, th, i - 1, k);
				break;
			}
		}
	}
	for (size_t i = 0; i < th->used_rows && rc == 0; i++) {
		struct row *other = th->rows[i];
		if (other == row || other->count == 0)
			continue;
		size_t below = xsp_row_below(other, x);
		if (below < other->count && other->spans[below].sp == x &&
		    !other->spans[below].range)
			rc = xsp_slot_reused(t, th, other, below, now);
	}
	return rc;
}

int xsp_pass_over(struct xsp_timeline *t, struct thread *th, struct row *row, uint64_t x,
		  uint64_t now)
{
	const size_t i = xsp_row_below(row, x);
	if (row->spans[i].sp == x && !row->spans[i].range)
		return slot_reused_by_entry(t, th, row, i, now);
	return xsp_park(t, th, row, i, now, x - row->spans[i].limit > XSP_FAR, false);
}
