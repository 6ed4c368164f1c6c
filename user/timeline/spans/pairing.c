/* SPDX-License-Identifier: BSD-2-Clause */
/* pairing.c - the rule for each event, and the rule for what an exception or longjmp has
 * unwound. */
#include "timeline/spans/spans.h"

/* ---- unwinding ---- */

/* A call from the landing frame itself pushes one word: a range begun there stays open. */
#define ENTER_DISTANCE 8U

static bool below_landing(const struct open_span *s, uint64_t mark)
{
	return s->sp < mark && mark - s->sp <= XSP_UNWIND_REACH;
}

/*
 * The stack pointer at a range's beginning does not show its owner: an interpreter, or a guard's
 * constructor, has returned from there long ago. A range goes with the function around it.
 * Otherwise it ends with its own end, which the destructors that an exception runs bring about.
 */
static bool unwound(const struct open_span *s, uint64_t mark)
{
	return !s->range && below_landing(s, mark);
}

/*
 * Did the exception that landed at `mark` leave this function, whose slot a destructor reused? The
 * landing frame called both, and nothing that it called is open now: else that has thrown. If the
 * mark is further out, the function has ended in a way that nobody saw.
 */
static bool left_by(const struct parked *p, const struct row *row, uint64_t mark)
{
	return mark - p->spans[0].sp <= ENTER_DISTANCE &&
	       (row->count == 0 || !unwound(&row->spans[row->count - 1], mark));
}

static int unwind_parked(struct xsp_timeline *t, struct thread *th, const struct row *row,
			 uint64_t mark)
{
	for (size_t i = th->parked_count; i > 0; i--) {
		struct parked *p = th->parked[i - 1];
		size_t k = 0;
		if (p->row != row->index)
			continue;
		while (k < p->count && !unwound(&p->spans[k], mark))
			k++;
		if (k == p->count)
			continue;
		if (p->gone) {
			p->marked = left_by(p, row, mark);
			int rc = xsp_parked_gone(t, th, i - 1, 0);
			if (rc < 0)
				return rc;
			continue;
		}
		if (th->many_stacks) {
			/* the run may only sleep; if it is gone, then by this unwinding */
			p->marked = p->marked || k == 0;
			continue;
		}
		p->marked = true;
		int rc = xsp_parked_gone(t, th, i - 1, k);
		if (rc < 0)
			return rc;
		if (k > 0)
			p->marked = false;
	}
	return 0;
}

static int pair_unwind(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	struct row *row;
	int rc = xsp_row_for(t, th, e->sp, &row);
	if (rc == 0 && th->parked_count > 0)
		rc = unwind_parked(t, th, row, e->sp);
	if (rc < 0)
		return rc;
	size_t first = row->count, range = row->count;
	for (size_t i = row->count; i > 0; i--) {
		struct open_span *s = &row->spans[i - 1];
		if (!s->range && s->sp >= e->sp)
			break;
		if (unwound(s, e->sp))
			first = i - 1;
		if (!s->range || !below_landing(s, e->sp - ENTER_DISTANCE))
			continue;
		s->passed = true;
		range = i - 1;
	}
	if (th->many_stacks)
		return xsp_park(t, th, row, first, e->time_ns, false, true);
	rc = xsp_row_pop_to(t, th, row, first, e->time_ns, XSP_SPAN_UNWOUND);
	/* longjmp runs no destructors: a guard's range is gone, unless its end comes all the
	 * same */
	return rc == 0 && (e->flags & XSP_EVENT_JUMP)
		       ? xsp_park(t, th, row, range, e->time_ns, false, true)
		       : rc;
}

/* ---- all of them ---- */

static int (*const rules[])(struct xsp_timeline *t, struct thread *th,
			    const struct xsp_event *e) = {
	[XSP_EVENT_ENTRY] = xsp_pair_entry, [XSP_EVENT_EXIT] = xsp_pair_exit,
	[XSP_EVENT_POINT] = xsp_pair_point, [XSP_EVENT_UNWIND] = pair_unwind,
	[XSP_EVENT_BEGIN] = xsp_pair_begin, [XSP_EVENT_END] = xsp_pair_end,
	[XSP_EVENT_LABEL] = xsp_pair_label,
};

int xsp_pair(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	int rc = 0;

	if (th->exit != EXIT_NONE)
		rc = xsp_pair_last_exit(t, th, e);
	if (rc == 0 && e->kind < sizeof(rules) / sizeof(rules[0]) && rules[e->kind] != NULL)
		rc = rules[e->kind](t, th, e);
	th->top_sp = xsp_max_u64(th->top_sp, e->sp);
	return rc;
}

int xsp_pair_close(struct xsp_timeline *t, struct thread *th, uint64_t end_ns, uint32_t flags)
{
	int rc = xsp_pair_last_exit(t, th, NULL);

	th->top_sp = 0;
	th->relaying = 0;
	th->relayed = 0;
	return rc < 0 ? rc : xsp_thread_close(t, th, end_ns, flags);
}
