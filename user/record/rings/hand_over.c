/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rings/hand_over.h"

#include "base/clock.h"

/* So long we wait for a record that was begun before later ones and is not there: a signal handler runs in its middle, or
 * has left it by a jump. */
#define STUCK_NS 1000000000ULL

void xsp_ring_pass_over(struct xsp_agent_rings *a, struct agent *g, unsigned i, uint64_t head)
{
	struct reader *r = &g->ring[i];

	a->totals.bad++;
	r->tail = r->mark = head;
	xsp_ring_read_up_to(g->memory, i, head);
}

bool xsp_ring_has_waited(const struct xsp_agent_rings *a, struct reader *r, uint64_t most_ns)
{
	if (r->since_ns == 0)
		r->since_ns = a->now_ns;
	if (a->now_ns - r->since_ns < most_ns)
		return false;
	r->since_ns = 0;
	return true;
}

bool xsp_ring_is_plausible(const struct reader *r, uint64_t head)
{
	return head - r->tail <= XSP_RING_SLOTS;
}

/* Fills time and thread. False: it is not handed over. */
static bool place(struct xsp_agent_rings *a, const struct agent *g, struct reader *r,
		  uint64_t time_ns, struct xsp_event *e)
{
	if (time_ns > a->now_ns)
		a->now_ns = xsp_now_ns();
	if (time_ns > a->now_ns + 1000000) {
		a->totals.bad++;
		r->last = 0;
		return false;
	}
	if (time_ns < a->from_ns || time_ns > a->to_ns)
		return false;
	/* as a later pair of the clocks may have it by some ns */
	if (time_ns < r->last_ns)
		time_ns = r->last_ns;
	r->last_ns = time_ns;
	e->time_ns = time_ns;
	e->tid = r->tid;
	e->tgid = (uint32_t)g->pid;
	return true;
}

/* Who gets an event, and the stack that is added to it. */
struct putting {
	struct xsp_agent_rings *a;
	struct xsp_stack_section stack;
};

static int put(void *ctx, const struct xsp_event *e)
{
	const struct putting *p = ctx;

	return p->stack.head.size != 0 && e->kind != XSP_EVENT_NAME
		       ? xsp_put_with_stack(&p->stack, e, p->a->put, p->a->put_ctx)
		       : p->a->put(p->a->put_ctx, e);
}

/* A range of PyTorch ends where its object does: in any order, and on any thread. */
static int put_range(struct putting *p, struct agent *g, struct reader *r,
		     const struct xsp_ring_record *record, const struct xsp_event *e)
{
	struct xsp_range_end_event end;

	if (e->kind == XSP_EVENT_END && xsp_open_range_end(&g->open, record->value, e, &end))
		return put(p, &end.head);
	if (e->kind == XSP_EVENT_END ||
	    (g->functions.ranges_until_ns != 0 && e->time_ns >= g->functions.ranges_until_ns))
		return 0;
	if (g->functions.rows[record->word >> 48].named &&
	    xsp_open_range_begin(&g->open, record->value, e))
		return xsp_put_named(&p->a->names, &r->text, record, e, put, p);
	p->a->totals.bad++; /* the function has no ranges, or there are too many */
	return 0;
}

/* What a callback tells: an operator, or a node with the numbers that its own range has told. */
static int put_placed(struct xsp_agent_rings *a, struct agent *g, struct reader *r,
		      const struct xsp_ring_record *record, struct xsp_event *e)
{
	const bool node = !g->functions.rows[record->word >> 48].operators;
	const bool enters = e->kind == XSP_EVENT_ENTRY;
	uint64_t hash, value = record->value;
	union xsp_numbered_event all;
	int rc;

	if (g->functions.ranges_until_ns != 0 && e->time_ns >= g->functions.ranges_until_ns)
		return 0;
	if (node && enters && a->options.numbers)
		xsp_open_nodes_enter(&r->nodes, record->sp);
	if (node)
		value = enters ? record->value & XSP_RING_NUMBER_MAX
			       : xsp_open_nodes_leave(&r->nodes, record->sp);
	if (!enters) {
		xsp_numbered_exit(&all, e, node, value);
		return a->put(a->put_ctx, &all.head);
	}
	rc = xsp_put_name(&g->names, &a->names, g->memory, value & XSP_RING_NUMBER_MAX, e, &hash,
			  a->put, a->put_ctx);
	xsp_numbered_entry(&all, e, hash, value);
	return rc < 0 ? rc : a->put(a->put_ctx, &all.head);
}

/* Which scope of XSigma's begins or ends is said by the object that does it. */
static int put_guard(struct putting *p, struct agent *g, uint64_t value, uint64_t name,
		     union xsp_ring_event *e)
{
	/* not a place where a range of PyTorch may be */
	const uint64_t object =
		1ULL << 63 | (value >> XSP_RING_GUARD_AT ^ (uint64_t)e->head.probe << 45);
	struct xsp_range_end_event end;

	if (e->head.kind == XSP_EVENT_END)
		return xsp_open_range_end(&g->open, object, &e->head, &end) ? put(p, &end.head) : 0;
	if (xsp_open_range_begin(&g->open, object, &e->head))
		return xsp_put_region(&g->names, &p->a->names, g->memory, name, e, put, p);
	p->a->totals.bad++; /* there are too many */
	return 0;
}

/* The place of an event's stack, in itself or in the record before, + 1; 0: it has none. */
static uint64_t stack_of(struct reader *r, const struct xsp_ring_record *record,
			 enum xsp_ring_record_is is)
{
	const uint64_t before = r->stack;

	r->stack = 0;
	if (is == XSP_RECORD_SECTIONS)
		return record->word >> 40 & XSP_RING_STACK ? 1 + (record->value >> 32) : 0;
	return before;
}

static int put_record(struct xsp_agent_rings *a, struct agent *g, struct reader *r,
		      const struct xsp_ring_record *record, enum xsp_ring_record_is is,
		      uint64_t stack, uint64_t name, union xsp_ring_event *e)
{
	const struct xsp_ring_row *row = &g->functions.rows[record->word >> 48];
	struct putting p = {.a = a};
	const int rc = stack != 0 ? xsp_put_stack(&g->stacks, &a->names, g->memory, stack - 1,
						  &e->head, a->put, a->put_ctx, &p.stack)
				  : 0;

	if (rc < 0)
		return rc;
	if (is == XSP_RECORD_SECTIONS && (record->word >> 40 & XSP_RING_ARGS))
		return xsp_put_args(&g->names, g->memory, (uint32_t)name, &e->head, put, &p);
	if (is == XSP_RECORD_PLACED || is == XSP_RECORD_NUMBERED)
		return put_placed(a, g, r, record, &e->head);
	if (row->guard)
		return put_guard(&p, g, record->value, name, e);
	if (row->region == XSP_EVENT_BEGIN || row->region == XSP_EVENT_VALUE)
		return xsp_put_region(&g->names, &a->names, g->memory, name, e, put, &p);
	if (is == XSP_RECORD_RANGE)
		return put_range(&p, g, r, record, &e->head);
	if (row->named && e->head.kind == XSP_EVENT_ENTRY)
		return xsp_put_named(&a->names, &r->text, record, &e->head, put, &p);
	return put(&p, &e->head);
}

static int hand_over_one(struct xsp_agent_rings *a, struct agent *g, struct reader *r,
			 const struct xsp_ring_record *record, uint64_t time_ns)
{
	union xsp_ring_event e;
	uint64_t name = 0;
	const enum xsp_ring_record_is is =
		xsp_ring_convert(record, g->functions.rows, g->functions.count, &e, &name);

	a->totals.records++;
	if (record->time < r->last) {
		a->totals.bad++;
		return 0;
	}
	r->last = record->time;
	if (is == XSP_RECORD_BAD)
		/* a function that came later has a number as well, and another probe */
		a->totals.bad += (record->word >> 48) >= xsp_ring_memory_functions(g->memory) ||
				 (record->word >> 48) < g->functions.count;
	if (is == XSP_RECORD_PART)
		xsp_node_text_add(&r->text, (uint8_t)(record->word >> 40), record);
	if (is == XSP_RECORD_NODE)
		xsp_open_nodes_tell(&r->nodes, record->value);
	if (is == XSP_RECORD_STACK)
		r->stack = name < XSP_RING_NO_NAME ? name + 1 : 0;
	if (is == XSP_RECORD_PART || is == XSP_RECORD_NODE || is == XSP_RECORD_STACK)
		return 0;
	const uint64_t stack = stack_of(r, record, is);
	if (is == XSP_RECORD_BAD || is == XSP_RECORD_UNWANTED || !place(a, g, r, time_ns, &e.head))
		return 0;
	return put_record(a, g, r, record, is, stack, name, &e);
}

int xsp_ring_hand_over(struct xsp_agent_rings *a, struct agent *g, unsigned i, uint64_t head,
		       uint64_t before_ns, bool last)
{
	struct reader *r = &g->ring[i];
	struct xsp_ring_record record;
	int rc = 0;

	if (!xsp_ring_is_plausible(r, head)) {
		xsp_ring_pass_over(a, g, i, head);
		return 0;
	}
	const uint64_t begin = r->tail;
	while (rc == 0 && r->tail != head) {
		if (!xsp_ring_copy(g->memory, i, r->tail, &record)) {
			if (!last && !xsp_ring_has_waited(a, r, STUCK_NS))
				break;
			a->totals.bad += !last;
			r->tail++;
			continue;
		}
		const uint64_t ns = g->tsc ? xsp_tsc_ns(&a->tsc, record.time) : record.time;
		if (before_ns != UINT64_MAX && ns >= before_ns)
			break;
		r->since_ns = 0;
		rc = hand_over_one(a, g, r, &record, ns);
		r->tail++;
	}
	if (r->tail != begin)
		xsp_ring_read_up_to(g->memory, i, r->tail);
	return rc;
}
