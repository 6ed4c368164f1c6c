/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rows.c - the mechanics of rows and parked runs. Why a row never holds overlapping spans:
 * - a span opens on a row at or after row.last_ns, and only the innermost one closes;
 * - a parked run that is gone is shown where it was, and ended at the time of its parking;
 *   row.last_ns was raised to that time, and its parents were open then;
 * - a run returns to its row if that holds exactly the spans that were beneath it, and no older
 *   run has come back there: then everything there in between lies inside its spans;
 * - otherwise it goes to an empty row on which nothing happened since its outermost span began.
 */
#include "timeline/spans/spans.h"

#include <errno.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/search.h"

/* Calls the sinks, and before and after them the listeners that add or want something. */
static int notify(struct xsp_timeline *t, const struct thread *th, struct xsp_span *span)
{
	int rc = 0;

	for (size_t i = 0; i < t->listener_count && rc == 0; i++)
		if (t->listeners[i]->note != NULL)
			rc = t->listeners[i]->note(t, th->rows[span->row], span);
	if (rc == 0 && t->probe_left_out != NULL)
		rc = xsp_cut_ancestors(t, span, true);
	if (rc == 0)
		rc = xsp_notify_span(t, span);
	for (size_t i = 0; i < t->listener_count && rc == 0; i++)
		if (t->listeners[i]->listen != NULL)
			rc = t->listeners[i]->listen(t, span);
	return rc;
}

/* The kernel's filters are for functions, and pass what they cannot decide. */
static bool left_out(const struct xsp_timeline *t, uint64_t duration, size_t depth)
{
	return duration < t->min_duration_ns || (t->max_depth > 0 && depth >= t->max_depth);
}

static void count(struct xsp_timeline *t, const struct thread *th, const struct xsp_span *span)
{
	if (span->left_out != 0) {
		t->counts.cut++;
		return;
	}
	t->counts.spans++;
	t->records[th->record]->thread_info.has_spans = true;
	t->counts.unfinished += (span->flags & XSP_SPAN_UNFINISHED) != 0;
	t->counts.unwound += (span->flags & XSP_SPAN_UNWOUND) != 0;
	t->counts.exit_lost += (span->flags & XSP_SPAN_EXIT_LOST) != 0;
}

/* Between a thread's sums at two times; XSP_OFF_UNKNOWN if one of them is. */
static uint64_t off_between(uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns == XSP_OFF_UNKNOWN || end_ns == XSP_OFF_UNKNOWN)
		return XSP_OFF_UNKNOWN;
	return end_ns > start_ns ? end_ns - start_ns : 0;
}

static uint64_t sum_of_off(uint64_t a, uint64_t b)
{
	return a == XSP_OFF_UNKNOWN || b == XSP_OFF_UNKNOWN ? XSP_OFF_UNKNOWN : a + b;
}

/* The part of a span in the cut, up to a time before which its thread was off its CPU for
 * off_ns. */
static struct length length_in_cut(const struct xsp_timeline *t, const struct thread *th,
				   const struct open_span *s, uint64_t end_ns, uint64_t off_ns)
{
	struct length l = {.ns = xsp_cut_clip(t, end_ns) - xsp_cut_clip(t, s->start_ns)};
	const uint64_t off_start =
		s->start_ns < t->cut.from_ns ? xsp_off_at_cut(t, th, 0) : s->off_ns;
	const uint64_t off_end = end_ns > t->cut.to_ns ? xsp_off_at_cut(t, th, 1) : off_ns;

	l.off_ns = off_between(off_start, off_end);
	return l;
}

/* The innermost of `count` spans that -e keeps, or NULL. */
static const struct open_span *innermost_kept(const struct open_span *spans,
					      const xsp_name_id *names, size_t count)
{
	while (count > 0 && names[count - 1] & XSP_NAME_LEFT_OUT)
		count--;
	return count > 0 ? &spans[count - 1] : NULL;
}

/* The id of the innermost span that -e keeps; 0: none. */
static uint64_t parent_of(const struct open_span *spans, const xsp_name_id *names, size_t count)
{
	const struct open_span *s = innermost_kept(spans, names, count);

	return s != NULL ? s->serial + 1 : 0;
}

const struct open_span *xsp_row_innermost_kept(const struct row *row)
{
	return innermost_kept(row->spans, row->names, row->count);
}

/* The id of the innermost kept span around; 0: none. */
static uint64_t parent_around(const struct around *a)
{
	const uint64_t parent = parent_of(a->spans, a->names + a->prefix, a->depth - a->prefix);

	return parent != 0 ? parent : a->kept_parent;
}

/*
 * Totals count recursion once. The next call of the same name around it keeps a call's part until
 * its own end. If that end is seen, the total gets its own time, otherwise that part.
 */
static void add_to_total(const struct xsp_timeline *t, const struct around *a,
			 const struct open_span *s, struct xsp_span *span)
{
	const bool measured = xsp_span_has_duration(span);
	const struct length whole = {xsp_cut_clip(t, span->end_ns) -
					     xsp_cut_clip(t, span->start_ns),
				     off_between(span->off_start_ns, span->off_end_ns)};
	const struct length l = measured ? whole : s->same;
	size_t i = a->depth;

	if (!measured && !s->has_same)
		return;
	while (i > 0 && a->names[i - 1] != span->name)
		i--;
	if (i > a->prefix) {
		struct open_span *outer = &a->spans[i - 1 - a->prefix];
		outer->has_same = true;
		outer->same.ns += l.ns;
		outer->same.off_ns = sum_of_off(outer->same.off_ns, l.off_ns);
	}
	span->in_total = i == 0;
	span->total_ns = i == 0 ? l.ns : 0;
	span->total_off_ns = l.off_ns;
}

int xsp_emit(struct xsp_timeline *t, const struct thread *th, uint32_t row,
	     const struct open_span *s, uint64_t end_ns, uint32_t flags, const struct around *a)
{
	const size_t depth = a->depth;

	end_ns = xsp_max_u64(end_ns, s->start_ns);
	uint64_t duration = end_ns - s->start_ns;
	if (left_out(t, duration, depth)) {
		t->counts.filtered++;
		xsp_details_unref(s->details);
		return 0;
	}
	uint64_t exit_ns = s->probe < t->probe_count ? t->probes[s->probe].exit_cost_ns : 0;
	const uint64_t ns_in_cut = xsp_cut_clip(t, end_ns) - xsp_cut_clip(t, s->start_ns);
	struct xsp_span span = {
		/* all members: otherwise all of it is set to 0 first, which takes longer */
		.start_ns = s->start_ns,
		.end_ns = end_ns,
		.self_ns = ns_in_cut > s->child.ns ? ns_in_cut - s->child.ns : 0,
		.probe_ns = s->probe_ns + exit_ns,
		.self_probe_ns = s->self_probe_ns + exit_ns,
		.pid = th->pid,
		.tid = th->tid,
		.row = row,
		.probe = s->probe,
		.name = s->name,
		.text = s->text,
		.flags = flags,
		.depth = (uint32_t)depth,
		.ancestors = a->names,
		.serial = s->serial,
		.parent = parent_around(a),
		.details = s->details,
		.op = 0,
		.user = 0,
		.op_name = 0,
		.user_name = 0,
		.outer_ns = 0,
		.call_follows = false,
		.path = t->path,
		.path_length = t->path_length,
		.cpu_ns = XSP_CPU_UNKNOWN,
		.self_cpu_ns = XSP_CPU_UNKNOWN,
		.child_off_ns = s->child.off_ns,
		.off_start_ns = s->start_ns < t->cut.from_ns ? xsp_off_at_cut(t, th, 0) : s->off_ns,
		.off_end_ns = end_ns > t->cut.to_ns ? xsp_off_at_cut(t, th, 1)
						    : xsp_off_at(t, th, end_ns),
		.python = s->python,
		.python_first = s->python_first,
		.python_calls = s->python_calls,
		.left_out = 0,
		.in_total = false,
		.total_ns = 0,
		.total_off_ns = 0,
		.total_cpu_ns = XSP_CPU_UNKNOWN,
	};
	if (t->is_cut)
		span.left_out = xsp_cut_span(t, s, duration, a->names, depth) |
				xsp_cut_time(t, s->start_ns, end_ns) | xsp_cut_thread(t, th->tid);
	count(t, th, &span);
	if (span.left_out == 0)
		add_to_total(t, a, s, &span);
	int rc = notify(t, th, &span);
	if (s->details != NULL)
		xsp_details_unref(s->details);
	return rc;
}

/* ---- rows ---- */

int xsp_row_get(struct xsp_timeline *t, struct thread *th, uint32_t index, struct row **out)
{
	if (index >= XSP_MAX_ROWS)
		return -E2BIG;
	while (th->row_count <= index) {
		struct row *row = XSP_APPEND_ZEROED(th->rows, th->row_capacity, th->row_count);
		if (row == NULL)
			return -ENOMEM;
		row->index = (uint32_t)th->row_count - 1;
	}
	struct xsp_timeline_thread *thread_info = &t->records[th->record]->thread_info;
	for (; th->used_rows <= index; th->used_rows++)
		th->rows[th->used_rows]->last_ns = th->born_ns;
	if (thread_info->rows <= index)
		thread_info->rows = index + 1;
	*out = th->rows[index];
	return 0;
}

int xsp_row_free_since(struct xsp_timeline *t, struct thread *th, uint64_t start_ns,
		       struct row **out)
{
	for (uint32_t i = 0; i < th->used_rows; i++) {
		if (th->rows[i]->count == 0 && th->rows[i]->last_ns <= start_ns)
			return xsp_row_get(t, th, i, out);
	}
	return xsp_row_get(t, th, (uint32_t)th->used_rows, out);
}

int xsp_row_push(struct xsp_timeline *t, struct row *row, const struct open_span *s)
{
	size_t need = row->count + 1;
	if (xsp_grow(&row->spans, &row->spans_capacity, need) < 0 ||
	    xsp_grow(&row->names, &row->names_capacity, need) < 0)
		return -ENOMEM;
	row->spans[row->count] = *s;
	row->names[row->count] =
		t->probe_left_out != NULL ? xsp_cut_name(t, s->probe, s->name) : s->name;
	row->count++;
	row->last_ns = xsp_max_u64(row->last_ns, s->start_ns);
	return 0;
}

/* The total time of spans with `depth` others beneath them. */
static struct length *children_under(struct row *row, size_t depth)
{
	return depth > 0 ? &row->spans[depth - 1].child : &row->child;
}

/* Adds `s` to the time of its parent's children. `names` are those of its ancestors, and then its
 * own. The time of a dropped span belongs to the span around it, but not the time of kept spans
 * inside a span that -e drops. */
static void add_child(struct xsp_timeline *t, const struct thread *th, struct length *children,
		      const struct open_span *s, const xsp_name_id *names, size_t depth,
		      uint64_t end_ns, uint64_t off_ns)
{
	struct length l = {.ns = end_ns - s->start_ns};
	const unsigned out = t->is_cut ? xsp_cut_span(t, s, l.ns, names, depth) : 0;

	if (left_out(t, l.ns, depth) || (out & (XSP_LEFT_OUT_SHORT | XSP_LEFT_OUT_DEEP)))
		return;
	if (names[depth] & XSP_NAME_LEFT_OUT)
		l = s->child;
	else if (t->is_cut)
		l = length_in_cut(t, th, s, end_ns, off_ns);
	else
		l.off_ns = off_between(s->off_ns, off_ns);
	children->ns += l.ns;
	children->off_ns = sum_of_off(children->off_ns, l.off_ns);
}

/* The same for a parked run. */
static void add_run(struct xsp_timeline *t, const struct thread *th, struct length *children,
		    struct parked *p)
{
	bool kept = false;

	for (size_t i = 0; i < p->count && !kept; i++) {
		add_child(t, th, children, &p->spans[i], p->names, p->prefix + i, p->park_ns,
			  p->park_off_ns);
		kept = !(p->names[p->prefix + i] & XSP_NAME_LEFT_OUT);
	}
	p->charged = *children;
}

/* The path was not made of the spans from `level` on. */
void xsp_path_cut(struct row *row, size_t level)
{
	if (row->path_levels > level)
		row->path_levels = level;
	if (row->call_levels > level)
		row->call_levels = level;
}

static void drop_last(struct row *row)
{
	const struct open_span *s = &row->spans[--row->count];
	xsp_path_cut(row, row->count);
	if (!s->range && (row->count == 0 || row->spans[row->count - 1].limit == UINT64_MAX))
		row->base = s->sp;
}

/* What the span's own hits cost, ns. */
static uint64_t probes_of(const struct xsp_timeline *t, const struct open_span *s)
{
	if (s->probe >= t->probe_count)
		return 0;
	return (uint64_t)t->probes[s->probe].entry_cost_ns + t->probes[s->probe].exit_cost_ns;
}

int xsp_row_pop(struct xsp_timeline *t, struct thread *th, struct row *row, uint64_t end_ns,
		uint32_t flags)
{
	size_t depth = row->count - 1;
	struct open_span *s = &row->spans[depth];
	end_ns = xsp_max_u64(end_ns, row->last_ns);
	row->last_ns = end_ns;
	add_child(t, th, children_under(row, depth), s, row->names, depth, end_ns,
		  xsp_off_at(t, th, end_ns));
	if (depth > 0) {
		row->spans[depth - 1].probe_ns += s->probe_ns + probes_of(t, s);
		row->spans[depth - 1].self_probe_ns += probes_of(t, s);
	}
	drop_last(row);
	/* s stays valid: no span is pushed before it is handed on */
	if (t->stacks) {
		int rc = xsp_path_to(t, th->pid, row, depth, s);
		if (rc < 0)
			return rc;
		t->path = row->path.ids;
		t->path_length = row->path.length;
	}
	const struct around around = {.spans = row->spans, .names = row->names, .depth = depth};
	int rc = xsp_emit(t, th, row->index, s, end_ns, flags, &around);
	t->path = NULL;
	return rc;
}

int xsp_row_pop_to(struct xsp_timeline *t, struct thread *th, struct row *row, size_t count,
		   uint64_t end_ns, uint32_t flags)
{
	int rc = 0;

	while (row->count > count && rc == 0)
		rc = xsp_row_pop(t, th, row, end_ns, flags);
	return rc;
}

int xsp_row_remove(struct xsp_timeline *t, struct thread *th, struct row *row, size_t i,
		   uint64_t end_ns, uint32_t flags)
{
	if (i + 1 == row->count && row->last_ns <= end_ns)
		return xsp_row_pop(t, th, row, end_ns, flags);
	struct row *other;
	int rc = xsp_row_free_since(t, th, row->spans[i].start_ns, &other);
	if (rc < 0)
		return rc;
	struct open_span s = row->spans[i];
	size_t above = row->count - i - 1;
	memmove(&row->spans[i], &row->spans[i + 1], above * sizeof(*row->spans));
	memmove(&row->names[i], &row->names[i + 1], above * sizeof(*row->names));
	xsp_path_cut(row, i);
	row->count--;
	rc = xsp_row_push(t, other, &s);
	return rc < 0 ? rc : xsp_row_pop(t, th, other, end_ns, flags);
}

size_t xsp_row_below(const struct row *row, uint64_t x)
{
	/* nearly always the innermost few */
	size_t i = row->count;
	for (int tries = 0; tries < 8; tries++) {
		if (i == 0 || row->spans[i - 1].limit > x)
			return i;
		i--;
	}
	size_t low = 0; /* limits never rise along the row */
	XSP_LOWER_BOUND(low, i, k, row->spans[k].limit > x);
	return low;
}

/* ---- parked runs ---- */

static int new_parked(struct thread *th, struct parked **out)
{
	if (th->parked_count == th->parked_made &&
	    XSP_APPEND_ZEROED(th->parked, th->parked_capacity, th->parked_made) == NULL)
		return -ENOMEM;
	*out = th->parked[th->parked_count++];
	return 0;
}

/* The emptied struct goes to the spare ones at the end of the array. */
static void remove_parked(struct thread *th, size_t which)
{
	struct parked *p = th->parked[which];
	th->parked_count--;
	memmove(&th->parked[which], &th->parked[which + 1],
		(th->parked_count - which) * sizeof(*th->parked));
	th->parked[th->parked_count] = p;
	p->count = 0;
}

static int fill_parked(struct parked *p, const struct open_span *spans, size_t count,
		       const xsp_name_id *names, size_t prefix)
{
	if (xsp_grow(&p->spans, &p->spans_capacity, count) < 0 ||
	    xsp_grow(&p->names, &p->names_capacity, prefix + count) < 0)
		return -ENOMEM;
	memcpy(p->spans, spans, count * sizeof(*spans));
	memcpy(p->names, names, (prefix + count) * sizeof(*names));
	p->count = count;
	p->prefix = prefix;
	return 0;
}

int xsp_park(struct xsp_timeline *t, struct thread *th, struct row *row, size_t from, uint64_t now,
	     bool far, bool marked)
{
	if (from >= row->count)
		return 0;
	struct parked *p;
	int rc = new_parked(th, &p);
	if (rc == 0)
		rc = fill_parked(p, row->spans + from, row->count - from, row->names, from);
	if (rc < 0)
		return rc;
	now = xsp_max_u64(now, row->last_ns);
	row->last_ns = now;
	p->park_ns = now;
	p->row = row->index;
	p->far = far;
	p->marked = marked;
	p->homeless = false;
	p->gone = false;
	p->parent_serial = from > 0 ? row->spans[from - 1].serial : 0;
	p->kept_parent = parent_of(row->spans, row->names, from);
	p->park_off_ns = xsp_off_at(t, th, now);
	p->parent_child = *children_under(row, from);
	/* as if it were gone; come_home() undoes that */
	add_run(t, th, children_under(row, from), p);
	while (row->count > from)
		drop_last(row);
	const size_t most = th->many_stacks ? XSP_MAX_PARKED_MANY : XSP_MAX_PARKED;
	return th->parked_count > most ? xsp_parked_gone(t, th, 0, 0) : 0;
}

/* The ancestors of its span at `i`. */
static struct around around_parked(const struct parked *p, size_t i)
{
	return (struct around){.spans = p->spans,
			       .names = p->names,
			       .prefix = p->prefix,
			       .depth = p->prefix + i,
			       .kept_parent = p->kept_parent};
}

int xsp_parked_gone(struct xsp_timeline *t, struct thread *th, size_t which, size_t i)
{
	struct parked *p = th->parked[which];
	const uint32_t flags = p->marked ? XSP_SPAN_UNWOUND : XSP_SPAN_EXIT_LOST;
	while (p->count > i) {
		size_t at = --p->count;
		const struct open_span *s = &p->spans[at];
		if (at > 0)
			add_child(t, th, &p->spans[at - 1].child, s, p->names, p->prefix + at,
				  p->park_ns, p->park_off_ns);
		const struct around around = around_parked(p, at);
		int rc = xsp_emit(t, th, p->row, s, p->park_ns, flags, &around);
		if (rc < 0)
			return rc;
	}
	if (p->count == 0)
		remove_parked(th, which);
	return 0;
}

int xsp_parked_split(struct xsp_timeline *t, struct thread *th, size_t which, size_t from)
{
	struct parked *p = th->parked[which], *deeper;
	if (from >= p->count || from == 0)
		return 0;
	int rc = new_parked(th, &deeper);
	if (rc == 0)
		rc = fill_parked(deeper, p->spans + from, p->count - from, p->names,
				 p->prefix + from);
	if (rc < 0)
		return rc;
	deeper->park_ns = p->park_ns;
	deeper->park_off_ns = p->park_off_ns;
	deeper->row = p->row;
	deeper->far = p->far;
	deeper->marked = p->marked;
	deeper->homeless = p->homeless;
	deeper->gone = p->gone;
	deeper->parent_serial = p->spans[from - 1].serial;
	const struct around around = around_parked(p, from);
	deeper->kept_parent = parent_around(&around);
	deeper->parent_child = p->spans[from - 1].child;
	add_run(t, th, &p->spans[from - 1].child, deeper);
	p->count = from;
	return 0;
}

/*
 * A run returns to its row. Its parent gets back what it was charged since then. The run will
 * charge it when it closes. Meanwhile the row's time was not the parent's but the innermost span's
 * of the run, which waited for it. As far as is known, runs that began later lie inside this one;
 * if they went on after its end they would overlap with it.
 */
static void come_home(struct thread *th, struct row *row, struct parked *p)
{
	struct length *children = children_under(row, p->prefix);
	struct length *waited = &p->spans[p->count - 1].child;
	const struct length charged = p->charged;
	waited->ns += children->ns - charged.ns;
	if (children->off_ns == XSP_OFF_UNKNOWN || charged.off_ns == XSP_OFF_UNKNOWN)
		waited->off_ns = XSP_OFF_UNKNOWN;
	else
		waited->off_ns = sum_of_off(waited->off_ns, children->off_ns - charged.off_ns);
	*children = p->parent_child;
	for (size_t i = 0; i < th->parked_count; i++) {
		struct parked *other = th->parked[i];
		if (other->row == p->row && other->spans[0].start_ns >= p->spans[0].start_ns)
			other->homeless = true;
	}
}

int xsp_parked_resume(struct xsp_timeline *t, struct thread *th, size_t which, struct row **out)
{
	struct parked *p = th->parked[which];
	struct row *row = th->rows[p->row];
	int rc;
	bool home = !p->homeless && row->count == p->prefix &&
		    (p->prefix == 0 || row->spans[p->prefix - 1].serial == p->parent_serial);
	if (home) {
		come_home(th, row, p);
	} else {
		rc = xsp_row_free_since(t, th, p->spans[0].start_ns, &row);
		if (rc < 0)
			return rc;
		/* ranges whose function stays open */
		for (size_t i = 0; i < p->count && p->spans[i].range; i++)
			p->spans[i].limit = UINT64_MAX;
	}
	for (size_t i = 0; i < p->count; i++) {
		rc = xsp_row_push(t, row, &p->spans[i]);
		if (rc < 0)
			return rc;
	}
	/* a range that a longjmp did not end after all proves nothing about stacks */
	if (!p->marked || th->many_stacks) {
		th->many_stacks = true;
		t->counts.stack_switches++;
	}
	remove_parked(th, which);
	th->current = row->index;
	*out = row;
	return 0;
}

int xsp_thread_close(struct xsp_timeline *t, struct thread *th, uint64_t end_ns, uint32_t flags)
{
	int rc;
	/* If stacks have come back before, a sleeping stack far away is another stack; the rest
	 * counts as gone. */
	for (size_t i = th->parked_count; i > 0; i--) {
		const struct parked *p = th->parked[i - 1];
		struct row *row;
		if (!th->many_stacks || !p->far || p->marked)
			continue;
		rc = xsp_parked_resume(t, th, i - 1, &row);
		if (rc < 0 && rc != -E2BIG)
			return rc;
		if (rc == 0)
			t->counts.stack_switches--; /* it did not really run again */
	}
	rc = 0;
	while (th->parked_count > 0 && rc == 0)
		rc = xsp_parked_gone(t, th, 0, 0);
	for (size_t i = 0; i < th->used_rows && rc == 0; i++)
		rc = xsp_row_pop_to(t, th, th->rows[i], 0, end_ns, flags);
	return rc;
}
