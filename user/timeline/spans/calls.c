/* SPDX-License-Identifier: BSD-2-Clause */
/* calls.c - entries and exits of functions: an exit closes the open span with its very stack
 * pointer. */
#include "timeline/spans/spans.h"

#include <errno.h>
#include <string.h>

/* ---- entries ---- */

int xsp_event_name(struct xsp_timeline *t, const struct xsp_event *e, xsp_name_id *name)
{
	const struct xsp_event_range *named = (const void *)e;
	*name = t->probe_names[e->probe];
	if (e->size < sizeof(*named) ||
	    (named->name_hash == 0 && !(e->flags & XSP_EVENT_NAME_LOST)))
		return 0;
	return xsp_names_of_hash(t, named->name_hash, name);
}

/* Adds the event's sections; most events have none. */
static int add_details(struct xsp_timeline *t, struct open_span *s, const struct xsp_event *e)
{
	if (!(e->flags & XSP_EVENT_SECTIONS))
		return 0;
	int rc = xsp_details_add(&s->details, e);
	t->stacks = t->stacks || xsp_details_find(s->details, XSP_SECTION_STACK, NULL) != NULL ||
		    xsp_details_find(s->details, XSP_SECTION_PYTHON, NULL) != NULL;
	return rc;
}

int xsp_open_span(struct xsp_timeline *t, struct thread *th, struct row *row,
		  const struct xsp_event *e, struct open_span *s)
{
	int rc = add_details(t, s, e);
	if (rc < 0)
		return rc;
	s->start_ns = xsp_max_u64(s->start_ns, row->last_ns);
	s->off_ns = xsp_off_at(t, th, s->start_ns);
	s->serial = t->serial++;
	if (s->details != NULL)
		xsp_python_note(t, row, s);
	rc = xsp_charge_place(t, row, s);
	if (rc < 0) {
		xsp_details_unref(s->details);
		return rc;
	}
	t->counts.entries++;
	if (row->count < XSP_MAX_DEPTH) {
		rc = xsp_row_push(t, row, s);
		if (rc < 0)
			xsp_details_unref(s->details);
		return rc;
	}
	/* deeper than any stack: dropped from memory, but counted */
	row->last_ns = s->start_ns;
	const struct around around = {
		.spans = row->spans, .names = row->names, .depth = row->count};
	return xsp_emit(t, th, row->index, s, s->start_ns, XSP_SPAN_EXIT_LOST, &around);
}

int xsp_pair_entry(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	struct row *row = NULL;
	xsp_name_id name, text = 0;
	int rc = xsp_event_name(t, e, &name);
	if (rc == 0 && name != t->probe_names[e->probe] && xsp_timeline_cuda(t, e->probe) != NULL) {
		text = name + 1; /* an argument of the call, not its name */
		name = t->probe_names[e->probe];
	}
	if (rc == 0)
		rc = xsp_row_for(t, th, e->sp, &row);
	if (rc == 0 && (th->parked_count > 0 || th->used_rows > 1))
		rc = xsp_slot_reused_elsewhere(t, th, row, e->sp, e->time_ns);
	if (rc == 0)
		rc = xsp_settle(t, th, row, e->sp, e->time_ns);
	if (rc != 0)
		return rc;
	struct open_span s = xsp_begun_by(e, e->sp, name);
	s.text = text;
	return xsp_open_span(t, th, row, e, &s);
}

int xsp_pair_point(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	int rc = xsp_pair_entry(t, th, e);
	if (rc < 0)
		return rc;
	struct row *row = th->rows[th->current];
	t->counts.exits++;
	if (row->count == 0 || row->spans[row->count - 1].serial != t->serial - 1)
		return 0; /* too deep to keep */
	t->counts.points++;
	return xsp_row_pop(t, th, row, e->time_ns,
			   XSP_SPAN_POINT | (e->flags & XSP_EVENT_TAIL ? XSP_SPAN_TAIL : 0));
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
	xsp_path_cut(row, row->count);
	xsp_path_cut(other, 0);
	return 0;
}

/* Clears what lies above a returning function: ranges go on, on a row of their own; functions are
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
 * Several functions may return at one instruction, if one falls or jumps into the other. It then
 * reports an exit of each, directly after each other and from the same stack pointer. The frame
 * belongs to one; the others were never entered, so they have not ended. If events were lost it may
 * be another call from the same place.
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
	/* everything entered since we watch the thread lies further down */
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

/* Notes that the hit was an exit after all. */
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

int xsp_pair_last_exit(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	struct row *row = th->rows[th->current];
	const bool orphan = th->exit == EXIT_ORPHAN || th->exit == EXIT_BEGUN_BEFORE;

	if (e != NULL && same_hit(t, th, e))
		return 0;
	th->exit = EXIT_NONE;
	if (!orphan)
		return 0;
	/* its slot was released: another function there is surely gone */
	size_t i = xsp_row_below(row, th->exit_sp);
	if (i < row->count && row->spans[i].sp == th->exit_sp && !row->spans[i].range)
		return xsp_slot_reused(t, th, row, i, th->exit_ns);
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
		if (i == p->count || p->gone)
			continue;
		int rc = xsp_resume_for(t, th, k - 1, i + 1, &row);
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
		if (d < parked_best && !th->parked[k]->gone) {
			parked_best = d;
			which = k;
			parked_at = i;
		}
	}
	if (parked_best < best) {
		int rc = xsp_resume_for(t, th, which, parked_at + 1, &row);
		if (rc == -E2BIG)
			return orphan_exit(t, th, e);
		return rc < 0 ? rc : close_at(t, th, row, row->count - 1, e);
	}
	return best == UINT64_MAX ? orphan_exit(t, th, e) : close_at(t, th, row, at, e);
}

int xsp_pair_exit(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
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
