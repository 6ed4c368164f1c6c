/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pairing.c - the rules by which events open and close spans.
 *
 * Stacks grow down. What is certain: an entry at the very stack pointer of an open span means
 * that this span is gone; an exit at it closes it. What is only likely: an event at a higher
 * stack pointer means that the open spans below it are gone, for they may belong to another
 * stack of the thread (fiber, ucontext, sigaltstack). Such spans are parked (rows.c): shown as
 * ended at that time unless they come back.
 */
#include "timeline/timeline_private.h"

#include <errno.h>
#include <string.h>

#include "base/grow.h"
#include "catalog/relay.h"

/* ---- which row ---- */

/* Distance from x up to the innermost span of the row that lies above it; on a row without
 * functions, to where the last one lay. */
static uint64_t distance(const struct row *row, uint64_t x)
{
	size_t below = xsp_row_below(row, x);
	if (below > 0 && row->spans[below - 1].limit != UINT64_MAX)
		return row->spans[below - 1].limit - x;
	if (below < row->count || row->base == 0)
		return UINT64_MAX;
	return row->base > x ? row->base - x : x - row->base;
}

/* For the row that is current a little above its functions is near as well: exits are lost
 * more often than stacks are switched. */
static uint64_t distance_current(const struct row *row, uint64_t x)
{
	uint64_t d = distance(row, x);
	size_t below = xsp_row_below(row, x);
	if (d == UINT64_MAX && below < row->count)
		d = x - row->spans[below].limit;
	return d;
}

/* Of the parked runs, the one whose innermost span above x is nearest, within `most`. */
static bool nearest_parked(const struct thread *th, uint64_t x, uint64_t most, bool far_only,
			   size_t *which, size_t *below)
{
	bool found = false;
	for (size_t i = 0; i < th->parked_count; i++) {
		const struct parked *p = th->parked[i];
		if (far_only && !p->far)
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

static int resume_for(struct xsp_timeline *t, struct thread *th, size_t which, size_t below,
		      struct row **row)
{
	int rc = xsp_parked_split(t, th, which, below);
	return rc < 0 ? rc : xsp_parked_resume(t, th, which, row);
}

/* The row on which something at stack pointer x happens. */
static int choose_row(struct xsp_timeline *t, struct thread *th, uint64_t x, struct row **out)
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
			int rc = resume_for(t, th, which, below, out);
			return rc == -E2BIG ? 0 : rc;
		}
	}
	if (chosen != th->current) {
		th->current = chosen;
		t->counts.stack_switches++;
	}
	return 0;
}

static inline int row_for(struct xsp_timeline *t, struct thread *th, uint64_t x, struct row **out)
{
	struct row *row = th->rows[th->current];
	*out = row;
	if (!th->many_stacks && th->parked_count == 0)
		return 0;
	return choose_row(t, th, x, out);
}

/* ---- what an event at stack pointer x says about open spans ---- */

/* A span whose slot is used anew is gone; what was deeper is passed over. */
static int slot_reused(struct xsp_timeline *t, struct thread *th, struct row *row, size_t i,
		       uint64_t now)
{
	int rc = xsp_park(t, th, row, i + 1, now, false, false);
	return rc < 0 ? rc : xsp_row_pop(t, th, row, now, XSP_SPAN_EXIT_LOST);
}

/* The same for spans that are parked or lie on other rows. */
static int slot_reused_elsewhere(struct xsp_timeline *t, struct thread *th, const struct row *row,
				 uint64_t x, uint64_t now)
{
	int rc = 0;
	for (size_t i = th->parked_count; i > 0 && rc == 0; i--) {
		const struct parked *p = th->parked[i - 1];
		if (p->spans[p->count - 1].limit > x)
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
			rc = slot_reused(t, th, other, below, now);
	}
	return rc;
}

/* An event passed over what lies at or below x. */
static inline int settle(struct xsp_timeline *t, struct thread *th, struct row *row, uint64_t x,
			 uint64_t now)
{
	if (row->count == 0 || row->spans[row->count - 1].limit > x)
		return 0;
	size_t i = xsp_row_below(row, x);
	if (row->spans[i].sp == x && !row->spans[i].range)
		return slot_reused(t, th, row, i, now);
	return xsp_park(t, th, row, i, now, x - row->spans[i].limit > XSP_FAR, false);
}

/* ---- entries ---- */

/* All members: else all of it is set to 0 first, which takes longer. */
static inline struct open_span begun_by(const struct xsp_event *e, uint64_t limit, xsp_name_id name)
{
	return (struct open_span){
		.sp = e->sp,
		.limit = limit,
		.start_ns = e->time_ns,
		.event_ns = 0,
		.child = {0, 0},
		.same = {0, 0},
		.has_same = false,
		.probe_ns = 0,
		.self_probe_ns = 0,
		.off_ns = 0,
		.serial = 0,
		.probe = e->probe,
		.name = name,
		.text = 0,
		.range = false,
		.relay = XSP_RELAY_NONE,
		.passed = false,
		.let_go = false,
		.python = NULL,
		.python_first = 0,
		.python_calls = false,
		.details = NULL,
	};
}

static int open_span(struct xsp_timeline *t, struct thread *th, struct row *row,
		     struct open_span *s)
{
	s->start_ns = xsp_max_u64(s->start_ns, row->last_ns);
	s->off_ns = xsp_off_at(t, th, s->start_ns);
	s->serial = t->serial++;
	if (s->details != NULL)
		xsp_python_note(t, row, s);
	t->counts.entries++;
	if (row->count < XSP_MAX_DEPTH) {
		int rc = xsp_row_push(t, row, s);
		if (rc < 0)
			xsp_details_unref(s->details);
		return rc;
	}
	/* deeper than any stack: kept out of memory, but not out of the counts */
	row->last_ns = s->start_ns;
	const struct around around = {
		.spans = row->spans, .names = row->names, .depth = row->count};
	return xsp_emit(t, th, row->index, s, s->start_ns, XSP_SPAN_EXIT_LOST, &around);
}

int xsp_event_name(struct xsp_timeline *t, const struct xsp_event *e, xsp_name_id *name)
{
	const struct xsp_event_range *named = (const void *)e;
	*name = t->probe_names[e->probe];
	if (e->size < sizeof(*named) ||
	    (named->name_hash == 0 && !(e->flags & XSP_EVENT_NAME_LOST)))
		return 0;
	return xsp_names_of_hash(t, named->name_hash, name);
}

/* What the event brings beside its fixed part; most bring nothing. */
static int add_details(struct xsp_timeline *t, struct open_span *s, const struct xsp_event *e)
{
	if (!(e->flags & XSP_EVENT_SECTIONS))
		return 0;
	int rc = xsp_details_add(&s->details, e);
	t->stacks = t->stacks || xsp_details_find(s->details, XSP_SECTION_STACK, NULL) != NULL ||
		    xsp_details_find(s->details, XSP_SECTION_PYTHON, NULL) != NULL;
	return rc;
}

static int pair_entry(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	struct row *row = NULL;
	xsp_name_id name, text = 0;
	int rc = xsp_event_name(t, e, &name);
	if (rc == 0 && name != t->probe_names[e->probe] && xsp_timeline_cuda(t, e->probe) != NULL) {
		text = name + 1; /* an argument of the call, not its name */
		name = t->probe_names[e->probe];
	}
	if (rc == 0)
		rc = row_for(t, th, e->sp, &row);
	if (rc == 0 && (th->parked_count > 0 || th->used_rows > 1))
		rc = slot_reused_elsewhere(t, th, row, e->sp, e->time_ns);
	if (rc == 0)
		rc = settle(t, th, row, e->sp, e->time_ns);
	if (rc != 0)
		return rc;
	struct open_span s = begun_by(e, e->sp, name);
	s.text = text;
	rc = add_details(t, &s, e);
	return rc < 0 ? rc : open_span(t, th, row, &s);
}

static int pair_point(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	int rc = pair_entry(t, th, e);
	if (rc < 0)
		return rc;
	struct row *row = th->rows[th->current];
	t->counts.exits++;
	if (row->count == 0 || row->spans[row->count - 1].serial != t->serial - 1)
		return 0; /* too deep to be kept */
	t->counts.points++;
	return xsp_row_pop(t, th, row, e->time_ns,
			   XSP_SPAN_POINT | (e->flags & XSP_EVENT_TAIL ? XSP_SPAN_TAIL : 0));
}

/* At a range's beginning a function with the very stack pointer of the call is gone, unless it is
 * the called function itself, traced as well. */
static uint64_t passed_by_begin(const struct xsp_timeline *t, const struct row *row,
				const struct xsp_event *e)
{
	const struct open_span *s = row->count > 0 ? &row->spans[row->count - 1] : NULL;
	if (s == NULL || s->range || s->sp != e->sp)
		return e->sp;
	const struct xsp_capture_probe *f = &t->probes[s->probe], *enter = &t->probes[e->probe];
	return f->module == enter->module && f->addr == enter->addr ? e->sp - 1 : e->sp;
}

/* A range that is shown already costs what is around it a hit, and nothing else. */
static void pay_for_relayed(const struct thread *th, uint32_t ns)
{
	struct row *row = th->rows[th->current];

	if (row->count == 0)
		return;
	row->spans[row->count - 1].probe_ns += ns;
	row->spans[row->count - 1].self_probe_ns += ns;
}

/* Is it the range that was begun or named last, passed on? The function that did so is still running: this one
 * lies deeper, and no other range has begun or ended since. */
static bool begin_relayed(struct xsp_timeline *t, const struct thread *th, struct row *row,
			  const struct xsp_event *e, xsp_name_id name)
{
	const uint8_t relay = t->probes[e->probe].relay;
	size_t i = row->count;

	if (relay < XSP_RELAY_BEGIN || th->relaying == 0)
		return false;
	while (i > 0 && row->spans[i - 1].serial >= th->relaying)
		i--;
	struct open_span *s = i > 0 ? &row->spans[i - 1] : NULL;
	if (s == NULL || s->serial + 1 != th->relaying || s->relay != relay - 1 ||
	    s->name != name || e->sp >= s->sp)
		return false;
	s->relay = relay;
	t->counts.relayed++;
	pay_for_relayed(th, t->probes[e->probe].entry_cost_ns);
	return true;
}

static int pair_begin(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	struct row *row = NULL;
	xsp_name_id name;
	int rc = xsp_event_name(t, e, &name);
	if (rc == 0)
		rc = row_for(t, th, e->sp, &row);
	if (rc == 0)
		rc = settle(t, th, row, passed_by_begin(t, row, e), e->time_ns);
	if (rc != 0)
		return rc;
	th->relayed = 0;
	if (begin_relayed(t, th, row, e, name))
		return 0;
	th->relaying = t->serial + 1;
	const uint8_t relay = t->probes[e->probe].relay;
	struct open_span s =
		begun_by(e, row->count > 0 ? row->spans[row->count - 1].limit : UINT64_MAX, name);
	s.event_ns = e->time_ns;
	s.range = true;
	s.relay = relay != XSP_RELAY_LABEL ? relay : XSP_RELAY_NONE;
	rc = add_details(t, &s, e);
	return rc < 0 ? rc : open_span(t, th, row, &s);
}

/* ---- exits ---- */

/* Moves the row's innermost span, a range, beneath those that `other` holds. */
static int move_under(struct xsp_timeline *t, struct row *row, struct row *other)
{
	struct open_span s = row->spans[row->count - 1];
	s.limit = UINT64_MAX;
	int rc = xsp_row_push(t, other, &s);
	if (rc < 0)
		return rc;
	memmove(other->spans + 1, other->spans, (other->count - 1) * sizeof(*other->spans));
	memmove(other->names + 1, other->names, (other->count - 1) * sizeof(*other->names));
	other->spans[0] = s;
	other->names[0] = xsp_cut_name(t, s.probe, s.name);
	row->count--;
	return 0;
}

/* What lies above a function that returns: ranges go on, on a row of their own; functions are
 * passed over. */
static int clear_above(struct xsp_timeline *t, struct thread *th, struct row *row, size_t i,
		       uint64_t now)
{
	struct row *other = NULL;
	size_t range = i + 1;
	while (range < row->count && !row->spans[range].range)
		range++;
	if (range < row->count) {
		int rc = xsp_row_free_since(t, th, row->spans[range].start_ns, &other);
		if (rc < 0 && rc != -E2BIG)
			return rc;
	}
	while (other != NULL && row->count > range) {
		size_t k = row->count;
		while (!row->spans[k - 1].range)
			k--;
		int rc = xsp_park(t, th, row, k, now, false, false);
		if (rc == 0)
			rc = move_under(t, row, other);
		if (rc < 0)
			return rc;
		row->last_ns = xsp_max_u64(row->last_ns, now);
	}
	return xsp_park(t, th, row, i + 1, now, false, false);
}

/*
 * An instruction at which several functions return (one falls or jumps into the other) tells of an exit of
 * each of them, one right behind the other and from the same stack pointer. The frame is
 * that of one; the others were not left, since they were not entered. Where events were lost it may as well be
 * another call from the same place.
 */
static bool same_hit(const struct xsp_timeline *t, const struct thread *th,
		     const struct xsp_event *e)
{
	return !t->lossy && th->exit != EXIT_NONE && e->kind == XSP_EVENT_EXIT &&
	       e->probe != th->exit_probe && (e->flags & XSP_EVENT_SP_EXACT) &&
	       e->sp == th->exit_sp;
}

static int orphan_exit(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	if (same_hit(t, th, e)) {
		t->counts.exits--;
		return 0;
	}
	t->counts.orphan_exits++;
	/* whatever was entered since the thread is watched lies further down */
	if (e->sp > th->top_sp)
		t->counts.begun_before++;
	if (!(e->flags & XSP_EVENT_SP_EXACT))
		return 0;
	th->exit = e->sp > th->top_sp ? EXIT_BEGUN_BEFORE : EXIT_ORPHAN;
	th->exit_sp = e->sp;
	th->exit_probe = e->probe;
	th->exit_ns = e->time_ns;
	return 0;
}

/* The hit was that of an exit after all. */
static void note_exit(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	if (same_hit(t, th, e) && th->exit != EXIT_PAIRED) {
		t->counts.exits--;
		t->counts.orphan_exits--;
		t->counts.begun_before -= th->exit == EXIT_BEGUN_BEFORE;
	}
	th->exit = e->flags & XSP_EVENT_SP_EXACT ? EXIT_PAIRED : EXIT_NONE;
	th->exit_sp = e->sp;
	th->exit_probe = e->probe;
}

/* No more exits come from the place of the last one. */
static int settle_last_exit(struct xsp_timeline *t, struct thread *th)
{
	struct row *row = th->rows[th->current];
	const bool orphan = th->exit == EXIT_ORPHAN || th->exit == EXIT_BEGUN_BEFORE;

	th->exit = EXIT_NONE;
	if (!orphan)
		return 0;
	/* its slot was given back: another function that lay there is gone for certain */
	size_t i = xsp_row_below(row, th->exit_sp);
	if (i < row->count && row->spans[i].sp == th->exit_sp && !row->spans[i].range)
		return slot_reused(t, th, row, i, th->exit_ns);
	return 0;
}

static int close_at(struct xsp_timeline *t, struct thread *th, struct row *row, size_t i,
		    const struct xsp_event *e)
{
	note_exit(t, th, e);
	if (row->index != th->current) {
		th->current = row->index;
		t->counts.stack_switches++;
	}
	int rc = e->flags & XSP_EVENT_SECTIONS ? xsp_details_add(&row->spans[i].details, e) : 0;
	if (rc == 0 && i + 1 < row->count)
		rc = clear_above(t, th, row, i, e->time_ns);
	if (rc < 0)
		return rc;
	return xsp_row_pop(t, th, row, e->time_ns,
			   (e->flags & XSP_EVENT_TAIL ? XSP_SPAN_TAIL : 0) |
				   (e->flags & XSP_EVENT_CUT ? XSP_SPAN_CUT : 0));
}

static bool matches(const struct open_span *s, const struct xsp_event *e)
{
	return s->sp == e->sp && s->probe == e->probe && !s->range;
}

static bool find_exact(const struct row *row, const struct xsp_event *e, size_t *at)
{
	for (size_t i = row->count; i > 0 && row->spans[i - 1].limit <= e->sp; i--) {
		if (matches(&row->spans[i - 1], e)) {
			*at = i - 1;
			return true;
		}
	}
	return false;
}

static int exit_elsewhere(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	size_t i;
	struct row *row;
	for (size_t k = 0; k < th->used_rows; k++) {
		if (k != th->current && find_exact(th->rows[k], e, &i))
			return close_at(t, th, th->rows[k], i, e);
	}
	for (size_t k = th->parked_count; k > 0; k--) {
		struct parked *p = th->parked[k - 1];
		for (i = 0; i < p->count && !matches(&p->spans[i], e); i++)
			;
		if (i == p->count)
			continue;
		int rc = resume_for(t, th, k - 1, i + 1, &row);
		if (rc == 0)
			return close_at(t, th, row, row->count - 1, e);
		if (rc != -E2BIG)
			return rc;
		rc = xsp_parked_gone(t, th, k - 1, i);
		return rc < 0 ? rc : orphan_exit(t, th, e);
	}
	return orphan_exit(t, th, e);
}

/* Innermost span of the probe at or above e->sp; the nearer the better. */
static uint64_t find_loose(const struct open_span *spans, size_t count, const struct xsp_event *e,
			   size_t *at)
{
	for (size_t i = count; i > 0; i--) {
		const struct open_span *s = &spans[i - 1];
		if (s->probe == e->probe && s->sp >= e->sp && !s->range) {
			*at = i - 1;
			return s->sp - e->sp;
		}
	}
	return UINT64_MAX;
}

static int exit_loose(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	size_t i = 0, at = 0, parked_at = 0, which = 0;
	struct row *row = th->rows[th->current];
	uint64_t best = find_loose(row->spans, row->count, e, &at);
	uint64_t parked_best = UINT64_MAX;
	for (size_t k = 0; k < th->used_rows && th->used_rows > 1; k++) {
		struct row *other = th->rows[k];
		uint64_t d = find_loose(other->spans, other->count, e, &i);
		if (d < best) {
			best = d;
			row = other;
			at = i;
		}
	}
	for (size_t k = 0; k < th->parked_count; k++) {
		uint64_t d = find_loose(th->parked[k]->spans, th->parked[k]->count, e, &i);
		if (d < parked_best) {
			parked_best = d;
			which = k;
			parked_at = i;
		}
	}
	if (parked_best < best) {
		int rc = resume_for(t, th, which, parked_at + 1, &row);
		if (rc == -E2BIG)
			return orphan_exit(t, th, e);
		return rc < 0 ? rc : close_at(t, th, row, row->count - 1, e);
	}
	return best == UINT64_MAX ? orphan_exit(t, th, e) : close_at(t, th, row, at, e);
}

static int pair_exit(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	t->counts.exits++;
	if (!(e->flags & XSP_EVENT_SP_EXACT))
		return exit_loose(t, th, e);
	struct row *row = th->rows[th->current];
	size_t i;
	if (row->count > 0 && matches(&row->spans[row->count - 1], e))
		return close_at(t, th, row, row->count - 1, e);
	if (find_exact(row, e, &i))
		return close_at(t, th, row, i, e);
	return exit_elsewhere(t, th, e);
}

/* ---- the end of a range ---- */

/* Where the range is that an END closes: on a row or in a parked run. */
struct range_at {
	struct row *row;
	size_t parked; /* if row is NULL */
	size_t index;
	uint64_t serial;
	bool found;
};

static void look(const struct open_span *spans, size_t count, const struct xsp_event *e,
		 struct range_at here, struct range_at *same_sp, struct range_at *latest)
{
	for (size_t i = count; i > 0; i--) {
		const struct open_span *s = &spans[i - 1];
		if (!s->range || s->probe != e->probe)
			continue;
		here.index = i - 1;
		here.serial = s->serial;
		here.found = true;
		if (!latest->found || s->serial > latest->serial)
			*latest = here;
		if (s->sp != e->sp)
			continue;
		if (!same_sp->found || s->serial > same_sp->serial)
			*same_sp = here;
		return;
	}
}

/* An exception has landed above where the range was begun: perhaps it is gone, and one further out ends. That
 * one was begun nearer to where it ends. */
static struct range_at nearest_out(const struct thread *th, struct range_at r,
				   const struct xsp_event *e)
{
	const struct open_span *spans = r.row != NULL ? r.row->spans
					: r.found     ? th->parked[r.parked]->spans
						      : NULL;
	uint64_t least = UINT64_MAX;

	if (spans == NULL || !spans[r.index].passed)
		return r;
	for (size_t i = r.index + 1; i > 0; i--) {
		const struct open_span *s = &spans[i - 1];
		uint64_t away = s->sp > e->sp ? s->sp - e->sp : e->sp - s->sp;
		if (!s->range || s->probe != e->probe || away >= least)
			continue;
		least = away;
		r.index = i - 1;
	}
	return r;
}

/*
 * A scope guard begins and ends its range with calls from one frame, at one stack pointer: that
 * tells ranges of different fibers apart, and holds when an END was lost. Otherwise (begun and
 * ended in different functions) it is the range begun last, on the stack at hand if it has one. Where the
 * API says that a thread's ranges nest, the stack pointer is for those whose events were lost.
 */
static struct range_at find_range(const struct xsp_timeline *t, struct thread *th, struct row *row,
				  const struct xsp_event *e)
{
	struct range_at same_sp = {0}, latest = {0}, latest_here = {0}, none = {0};
	look(row->spans, row->count, e, (struct range_at){.row = row}, &same_sp, &latest_here);
	const bool nests = t->probes[e->probe].nests && !t->lossy;
	if (!nests && same_sp.found && same_sp.index + 1 == row->count && th->parked_count == 0 &&
	    th->used_rows == 1)
		return same_sp; /* nearly always */
	same_sp = none;
	for (size_t i = 0; i < th->used_rows; i++)
		look(th->rows[i]->spans, th->rows[i]->count, e,
		     (struct range_at){.row = th->rows[i]}, &same_sp, &latest);
	if (nests && latest.found)
		return latest;
	/* one that a longjmp has left is gone, unless nothing else can be meant */
	struct range_at latest_open = latest, jumped = {0};
	for (size_t i = 0; i < th->parked_count; i++) {
		const struct parked *p = th->parked[i];
		bool gone = p->marked && !th->many_stacks;
		look(p->spans, p->count, e, (struct range_at){.parked = i},
		     gone ? &jumped : &same_sp, gone ? &jumped : &latest);
	}
	if (same_sp.found)
		return same_sp;
	if (th->many_stacks && latest_here.found)
		return latest_here;
	latest = latest_open.found ? latest_open : latest;
	return nearest_out(th, latest.found ? latest : jumped, e);
}

static bool find_begin(const struct open_span *spans, size_t count, uint32_t probe,
		       uint64_t begin_ns, size_t *at)
{
	for (size_t i = count; i > 0; i--) {
		const struct open_span *s = &spans[i - 1];
		*at = i - 1;
		if (s->range && s->probe == probe && s->event_ns == begin_ns)
			return true;
	}
	return false;
}

/* The range whose BEGIN had that time. */
static struct range_at find_begun(const struct thread *th, uint32_t probe, uint64_t begin_ns)
{
	struct range_at r = {0};

	for (size_t i = 0; i < th->used_rows; i++) {
		r.row = th->rows[i];
		r.found = find_begin(r.row->spans, r.row->count, probe, begin_ns, &r.index);
		if (r.found)
			return r;
	}
	r.row = NULL;
	for (size_t i = 0; i < th->parked_count && !r.found; i++) {
		r.parked = i;
		r.found = find_begin(th->parked[i]->spans, th->parked[i]->count, probe, begin_ns,
				     &r.index);
	}
	return r;
}

/* A range's name arrives later than the range. */
static int pair_label(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	const struct xsp_event_label *l = (const void *)e;
	xsp_name_id name;

	if (e->flags & XSP_EVENT_NAME_LOST)
		return 0;
	int rc = xsp_names_of_hash(t, l->name_hash, &name);
	struct range_at r = find_begun(th, e->probe, l->begin_ns);
	if (rc < 0 || !r.found)
		return rc;
	if (r.row != NULL) {
		r.row->spans[r.index].name = name;
		r.row->names[r.index] = xsp_cut_name(t, e->probe, name);
		r.row->spans[r.index].relay = t->probes[e->probe].relay;
		th->relaying = r.row->spans[r.index].serial + 1;
		xsp_path_cut(r.row, 0);
	} else {
		struct parked *p = th->parked[r.parked];
		p->spans[r.index].name = name;
		p->names[p->prefix + r.index] = xsp_cut_name(t, e->probe, name);
	}
	return 0;
}

/* Ranges of deeper frames above the one that ends: their ENDs were lost, if any event was, or did not come
 * because an exception left them. */
static int drop_inner_ranges(struct xsp_timeline *t, struct thread *th, struct row *row, size_t i,
			     const struct xsp_event *e)
{
	while (!th->many_stacks && row->count > i + 1) {
		const struct open_span *s = &row->spans[row->count - 1];
		if (!s->range || s->sp >= e->sp || !(t->lossy || s->passed))
			break;
		int rc = xsp_row_pop(t, th, row, e->time_ns, XSP_SPAN_EXIT_LOST);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int end_on_row(struct xsp_timeline *t, struct thread *th, struct row *row, size_t i,
		      const struct xsp_event *e)
{
	int rc = drop_inner_ranges(t, th, row, i, e);
	if (rc == 0)
		rc = xsp_details_add(&row->spans[i].details, e);
	if (rc == 0)
		rc = xsp_row_remove(t, th, row, i, e->time_ns, 0);
	if (rc != -E2BIG)
		return rc;
	/* no row left to show it on: what lies above it cannot stay */
	while (row->count > i + 1) {
		rc = xsp_row_pop(t, th, row, e->time_ns, XSP_SPAN_EXIT_LOST);
		if (rc < 0)
			return rc;
	}
	return xsp_row_pop(t, th, row, e->time_ns, 0);
}

static int end_parked(struct xsp_timeline *t, struct thread *th, size_t which, size_t i,
		      const struct xsp_event *e)
{
	struct row *row;
	int rc = resume_for(t, th, which, i + 1, &row);
	if (rc == -E2BIG) {
		t->counts.orphan_exits++;
		return xsp_parked_gone(t, th, which, i);
	}
	if (rc == 0)
		rc = xsp_details_add(&row->spans[row->count - 1].details, e);
	return rc < 0 ? rc : xsp_row_pop(t, th, row, e->time_ns, 0);
}

/* Does the function that ends a range pass that on? */
static bool end_relayed(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	if (th->relayed_ended >= th->relayed || e->sp > th->relay_sp ||
	    t->probes[e->probe].relay != th->relayed_ended + 1)
		return false;
	th->relayed_ended++;
	pay_for_relayed(th, t->probes[e->probe].exit_cost_ns);
	return true;
}

static int end_range(struct xsp_timeline *t, struct thread *th, const struct range_at *r,
		     const struct xsp_event *e)
{
	if (!r->found) {
		t->counts.orphan_exits++;
		t->counts.begun_before += !t->lossy;
		return 0;
	}
	if (r->row != NULL) {
		th->relayed = r->row->spans[r->index].relay;
		th->relayed_ended = t->probes[e->probe].relay;
		th->relay_sp = e->sp;
	}
	return r->row != NULL ? end_on_row(t, th, r->row, r->index, e)
			      : end_parked(t, th, r->parked, r->index, e);
}

/* The range of another thread. That one's events may not have been read up to this time, or even up to
 * its BEGIN. */
static int keep_far_end(struct xsp_timeline *t, const struct xsp_event *e, uint64_t begin_ns,
			uint32_t tid)
{
	if (t->far_end_count == XSP_MAX_FAR_ENDS) {
		t->counts.orphan_exits++;
		return 0;
	}
	return XSP_APPEND(t->far_ends, t->far_end_capacity, t->far_end_count,
			  (struct far_end){.end = *e, .begin_ns = begin_ns, .tid = tid});
}

/* The earliest one that is due. */
static bool next_far_end(struct xsp_timeline *t, const struct thread *th, uint64_t now,
			 struct far_end *out)
{
	size_t best = t->far_end_count;

	for (size_t i = 0; i < t->far_end_count; i++) {
		const struct far_end *f = &t->far_ends[i];
		if (f->tid == th->tid && f->end.tgid == th->pid && f->end.time_ns <= now &&
		    (best == t->far_end_count || f->end.time_ns < t->far_ends[best].end.time_ns))
			best = i;
	}
	if (best == t->far_end_count)
		return false;
	*out = t->far_ends[best];
	t->far_ends[best] = t->far_ends[--t->far_end_count];
	return true;
}

int xsp_pair_far_ends(struct xsp_timeline *t, struct thread *th, uint64_t now)
{
	struct far_end f;
	int rc = 0;

	while (rc == 0 && next_far_end(t, th, now, &f)) {
		struct range_at r = find_begun(th, f.end.probe, f.begin_ns);
		f.end.sp = 0; /* of another stack */
		f.end.flags = 0;
		rc = end_range(t, th, &r, &f.end);
	}
	return rc;
}

static int pair_end(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	struct row *row;
	uint64_t begin_ns;
	uint32_t tid;
	const bool keyed = xsp_event_ends(e, &begin_ns, &tid);
	th->relaying = 0;
	if (end_relayed(t, th, e))
		return 0;
	t->counts.exits++;
	int rc = row_for(t, th, e->sp, &row);
	if (rc == 0 && e->sp > 0) /* not the ending function itself, if it is traced too */
		rc = settle(t, th, row, e->sp - 1, e->time_ns);
	if (rc < 0)
		return rc;
	if (keyed && tid != e->tid)
		return keep_far_end(t, e, begin_ns, tid);
	struct range_at r = keyed ? find_begun(th, e->probe, begin_ns) : find_range(t, th, row, e);
	return end_range(t, th, &r, e);
}

/* ---- unwinding ---- */

/* A call from the landing frame itself pushes one word: a range begun there stays open. */
#define ENTER_DISTANCE 8U

static bool below_landing(const struct open_span *s, uint64_t mark)
{
	return s->sp < mark && mark - s->sp <= XSP_UNWIND_REACH;
}

/*
 * The stack pointer at a range's beginning does not tell whose range it is: an interpreter, or a guard's
 * constructor, has returned from there long ago. A range goes with the function around it; else it
 * ends when its end comes, which the destructors that an exception runs see to.
 */
static bool unwound(const struct open_span *s, uint64_t mark)
{
	return !s->range && below_landing(s, mark);
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
		if (th->many_stacks) {
			/* perhaps; if it is gone, then this way */
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
	int rc = row_for(t, th, e->sp, &row);
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
	while (row->count > first) {
		rc = xsp_row_pop(t, th, row, e->time_ns, XSP_SPAN_UNWOUND);
		if (rc < 0)
			return rc;
	}
	/* longjmp runs no destructors: a guard's range is gone, unless its end comes all the same */
	return e->flags & XSP_EVENT_JUMP ? xsp_park(t, th, row, range, e->time_ns, false, true) : 0;
}

/* ---- all of them ---- */

static int (*const rules[])(struct xsp_timeline *t, struct thread *th,
			    const struct xsp_event *e) = {
	[XSP_EVENT_ENTRY] = pair_entry, [XSP_EVENT_EXIT] = pair_exit,
	[XSP_EVENT_POINT] = pair_point, [XSP_EVENT_UNWIND] = pair_unwind,
	[XSP_EVENT_BEGIN] = pair_begin, [XSP_EVENT_END] = pair_end,
	[XSP_EVENT_LABEL] = pair_label,
};

int xsp_pair(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	int rc = 0;

	if (th->exit != EXIT_NONE && !same_hit(t, th, e))
		rc = settle_last_exit(t, th);
	if (rc == 0 && e->kind < sizeof(rules) / sizeof(rules[0]) && rules[e->kind] != NULL)
		rc = rules[e->kind](t, th, e);
	th->top_sp = xsp_max_u64(th->top_sp, e->sp);
	return rc;
}

int xsp_pair_close(struct xsp_timeline *t, struct thread *th, uint64_t end_ns, uint32_t flags)
{
	int rc = settle_last_exit(t, th);

	th->top_sp = 0;
	th->relaying = 0;
	th->relayed = 0;
	return rc < 0 ? rc : xsp_thread_close(t, th, end_ns, flags);
}
