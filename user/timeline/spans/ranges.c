/* SPDX-License-Identifier: BSD-2-Clause */
/* ranges.c - a program's own marks: a range begins and ends by events of its own, perhaps on
 * another stack. */
#include "timeline/spans/spans.h"

#include <errno.h>

#include "base/rows/grow.h"
#include "catalog/relay.h"

/* ---- begins ---- */

/* At a range's beginning a function with the call's very stack pointer is gone. The exception is
 * the called function itself, if it is traced, too. */
static uint64_t passed_by_begin(const struct xsp_timeline *t, const struct row *row,
				const struct xsp_event *e)
{
	const struct open_span *s = row->count > 0 ? &row->spans[row->count - 1] : NULL;
	if (s == NULL || s->range || s->sp != e->sp)
		return e->sp;
	const struct xsp_capture_probe *f = &t->probes[s->probe], *enter = &t->probes[e->probe];
	return f->module == enter->module && f->addr == enter->addr ? e->sp - 1 : e->sp;
}

/* A range that is already shown only costs the spans around it a hit. */
static void pay_for_relayed(const struct thread *th, uint32_t ns)
{
	struct row *row = th->rows[th->current];

	if (row->count == 0)
		return;
	row->spans[row->count - 1].probe_ns += ns;
	row->spans[row->count - 1].self_probe_ns += ns;
}

/* Does this function pass on the range that was begun or named last? Then the function that did so
 * is still running. This one lies deeper, and no other range has begun or ended since. */
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

int xsp_pair_begin(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	struct row *row = NULL;
	xsp_name_id name;
	int rc = xsp_event_name(t, e, &name);
	if (rc == 0)
		rc = xsp_row_for(t, th, e->sp, &row);
	if (rc == 0)
		rc = xsp_settle(t, th, row, passed_by_begin(t, row, e), e->time_ns);
	if (rc != 0)
		return rc;
	th->relayed = 0;
	if (begin_relayed(t, th, row, e, name))
		return 0;
	th->relaying = t->serial + 1;
	const uint8_t relay = t->probes[e->probe].relay;
	struct open_span s = xsp_begun_by(
		e, row->count > 0 ? row->spans[row->count - 1].limit : UINT64_MAX, name);
	s.event_ns = e->time_ns;
	s.range = true;
	s.relay = relay != XSP_RELAY_LABEL ? relay : XSP_RELAY_NONE;
	return xsp_open_span(t, th, row, e, &s);
}

/* ---- which range ---- */

/* The range that an END closes: on a row or in a parked run. */
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

/* An exception has landed above the range's beginning, so it may be gone. Then a range further out
 * ends, whose beginning was nearer to this end. */
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
 * A scope guard begins and ends its range from one frame, at one stack pointer. That separates
 * ranges of different fibers, and holds after a lost END. Otherwise (begun and ended in different
 * functions) it is the last range to begin, on the present stack if it has one. If the API says
 * that a thread's ranges nest, the stack pointer only serves after lost events.
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
	/* one left by a longjmp is gone, unless no other fits */
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
int xsp_pair_label(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
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
		xsp_path_cut(r.row, r.index);
	} else {
		struct parked *p = th->parked[r.parked];
		p->spans[r.index].name = name;
		p->names[p->prefix + r.index] = xsp_cut_name(t, e->probe, name);
	}
	return 0;
}

/* ---- ends ---- */

/* Drops ranges of deeper frames above the ending one. Their ENDs were lost, if any event was, or an
 * exception left them. */
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
	/* no row is left for it: the spans above it cannot stay */
	rc = xsp_row_pop_to(t, th, row, i + 1, e->time_ns, XSP_SPAN_EXIT_LOST);
	return rc < 0 ? rc : xsp_row_pop(t, th, row, e->time_ns, 0);
}

static int end_parked(struct xsp_timeline *t, struct thread *th, size_t which, size_t i,
		      const struct xsp_event *e)
{
	struct row *row;
	int rc = xsp_resume_for(t, th, which, i + 1, &row);
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

/* The range belongs to another thread, whose events may not yet be read up to this time, or even up
 * to its BEGIN. Keeps the end for later. */
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
		f.end.sp = 0; /* its stack pointer is of another stack */
		f.end.flags = 0;
		rc = end_range(t, th, &r, &f.end);
	}
	return rc;
}

int xsp_pair_end(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e)
{
	struct row *row;
	uint64_t begin_ns;
	uint32_t tid;
	const bool keyed = xsp_event_ends(e, &begin_ns, &tid);
	th->relaying = 0;
	if (end_relayed(t, th, e))
		return 0;
	t->counts.exits++;
	int rc = xsp_row_for(t, th, e->sp, &row);
	if (rc == 0 && e->sp > 0) /* not the ending function itself, if it is traced too */
		rc = xsp_settle(t, th, row, e->sp - 1, e->time_ns);
	if (rc < 0)
		return rc;
	if (keyed && tid != e->tid)
		return keep_far_end(t, e, begin_ns, tid);
	struct range_at r = keyed ? find_begun(th, e->probe, begin_ns) : find_range(t, th, row, e);
	return end_range(t, th, &r, e);
}
