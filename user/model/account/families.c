/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * families.c - adds the account up: threads that do the same work become a family; what has no place is shared out (share.c); what
 * is left are rows, which functions gather.
 */
#include "model/account/sum.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/share_interval.h"
#include "base/rows/u64map.h"
#include "base/text.h"

#define PAUSED_SHARE 10U /* steps are not used where pauses are more than 1/10 of the time */
#define PEER_AHEAD 0.5 /* of a row's time: so much more of it was for its peer than for any other */
#define MOST_FAMILIES 32U /* with rows; of others the times alone are known */

/* ---- families ---- */

/* Adds a text to a hash without its numbers: workers differ in these. */
static uint64_t mix_text(uint64_t hash, const char *text)
{
	char plain[1024];
	size_t n = 0;

	for (; text != NULL && *text != '\0' && n < sizeof(plain); text++)
		if (!isdigit((unsigned char)*text))
			plain[n++] = *text;
	return xsp_u64_mix(hash ^ xsp_text_hash(plain, n));
}

static uint64_t family_of(const struct xsp_account *a, const struct account_thread *th,
			  const char *comm)
{
	const struct xsp_capture_process *p = xsp_capture_process_of(a->reader, th->pid);
	const bool is_main = th->tid == th->pid;
	uint64_t hash = xsp_u64_pair(p != NULL ? p->parent : 0, is_main);

	hash = mix_text(hash, p != NULL ? p->exe : "");
	hash = mix_text(hash, p != NULL ? p->cmdline : "");
	return is_main ? hash : mix_text(hash, comm);
}

static const char *comm_of(const struct xsp_account *a, const struct account_thread *th)
{
	const struct xsp_timeline_thread *t = xsp_timeline_thread(a->timeline, th->tid);

	return t != NULL ? t->comm : "";
}

/* A known routine of each group of threads, as an index of one of them: whose own is not known is taken to be of it. */
static int find_routines(struct xsp_account *a, struct xsp_u64map *known)
{
	for (size_t i = 0; i < a->threads.count; i++) {
		const struct account_thread *th = &a->threads.rows[i];
		const uint64_t group = family_of(a, th, comm_of(a, th));
		if (th->routine.what != 0 && xsp_u64map_get(known, group) == NULL &&
		    xsp_u64map_set(known, group, (uint32_t)i) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int find_families(struct xsp_account *a)
{
	struct xsp_u64map known = {0};
	int rc = find_routines(a, &known);

	for (size_t i = 0; i < a->threads.count && rc == 0; i++) {
		struct account_thread *th = &a->threads.rows[i];
		const char *comm = comm_of(a, th);
		const uint64_t group = family_of(a, th, comm);
		th->group = group;
		const uint32_t *at = th->routine.what == 0 ? xsp_u64map_get(&known, group) : NULL;
		const uint64_t routine =
			at != NULL ? a->threads.rows[*at].routine.what : th->routine.what;
		struct account_family *f =
			xsp_tally_row(&a->families, xsp_u64_mix(group ^ routine),
				      &(struct account_family){.shown = {.comm = comm}});
		rc = f != NULL ? 0 : a->families.tally.error;
		if (f != NULL)
			th->family = xsp_tally_index(&a->families, f);
	}
	xsp_u64map_free(&known);
	return rc;
}

/* ---- a thread's totals ---- */

struct total {
	uint64_t cpu_ns, ready_ns;
	bool idle;
};

static void add_total(struct total *t, const struct account_cell *c)
{
	if (c->kind == XSP_ACCOUNT_READY)
		t->ready_ns += (uint64_t)c->ns;
	else if (c->kind != XSP_ACCOUNT_WAIT && c->kind != XSP_ACCOUNT_OFF)
		t->cpu_ns += c->ns > 0 ? (uint64_t)c->ns : 0;
}

/* Finds members that rest, and adds up the others. */
static void total_families(struct xsp_account *a, struct total *totals)
{
	for (size_t i = 0; i < a->cells.count; i++)
		add_total(&totals[a->cells.rows[i].thread], &a->cells.rows[i]);
	for (size_t i = 0; i < a->threads.count; i++) {
		const struct account_thread *th = &a->threads.rows[i];
		struct account_family *f = &a->families.rows[th->family];
		const uint64_t busy = totals[i].cpu_ns + totals[i].ready_ns;
		if (f->shown.tid != 0 && busy <= f->busiest_ns)
			continue;
		f->busiest_ns = busy;
		f->shown.pid = th->pid;
		f->shown.tid = th->tid;
	}
	for (size_t i = 0; i < a->threads.count; i++) {
		const struct account_thread *th = &a->threads.rows[i];
		struct account_family *f = &a->families.rows[th->family];
		const uint64_t busy = totals[i].cpu_ns + totals[i].ready_ns;
		totals[i].idle = busy < f->busiest_ns / XSP_ACCOUNT_IDLE;
		a->threads.rows[i].idle = totals[i].idle;
		f->shown.idle += totals[i].idle;
		if (totals[i].idle)
			continue;
		f->shown.members++;
		f->shown.all_ns += th->ns;
		f->shown.all_cpu_ns += totals[i].cpu_ns;
		f->shown.all_ready_ns += totals[i].ready_ns;
		f->shown.paused_ns += th->paused_ns;
		f->shown.steps += th->steps;
	}
}

/* ---- sharing out ---- */

/* In whole slices, of which the last one is not full. */
static void put_thirds(const struct account_thread *th, const struct account_cell *c,
		       struct part *p)
{
	const size_t width = th->slice > 0 ? th->later / th->slice / XSP_ACCOUNT_THIRDS : 0;

	for (size_t i = 0; i < width * XSP_ACCOUNT_THIRDS && c->slices != NULL; i++)
		p->thirds[i / width] += c->slices->part[i] / (double)(width * th->slice);
}

static int put_cell(struct sum *s, const struct account_cell *c)
{
	struct part p = {.kind = c->kind,
			 .why = c->why,
			 .place = c->place,
			 .callee = c->callee,
			 .peer = c->peer,
			 .loop_ns = c->loop_ns,
			 .thread = c->thread,
			 .pool = c->paused,
			 .ns = s->steps ? c->step_ns : c->ns,
			 .count = s->steps ? c->step_count : c->count,
			 .steps = c->steps,
			 .longest_ns = c->longest_ns,
			 .period = c->period};

	if (p.ns == 0 && p.count == 0)
		return 0;
	if (s->steps)
		put_thirds(&s->a->threads.rows[c->thread], c, &p);
	if (c->sampled)
		return c->kind == XSP_ACCOUNT_SPAN ? XSP_PUT(&s->lines, p)
						   : XSP_PUT(&s->weights, p);
	if (c->kind == XSP_ACCOUNT_CPU)
		return XSP_PUT(&s->pools,
			       (struct pool){.thread = c->thread, .paused = c->paused, .ns = p.ns});
	p.pool = NO_POOL;
	if (c->kind == XSP_ACCOUNT_SPAN && c->callee == 0)
		return XSP_PUT(&s->spans, p);
	return c->kind == XSP_ACCOUNT_WAIT && c->place == 0 ? XSP_PUT(&s->homeless, p)
							    : XSP_PUT(&s->parts, p);
}

/* ---- rows ---- */

static uint64_t function_of(const struct xsp_account *a, const struct part *p)
{
	if (p->kind >= XSP_ACCOUNT_READY || p->place == 0)
		return p->kind >= XSP_ACCOUNT_READY ? UINT64_MAX - p->kind : p->kind;
	return account_function(a, p->place - 1);
}

static XSP_ORDER(by_row, struct part,
		 XSP_RISING(function) ?: XSP_RISING(kind) ?: XSP_RISING(why) ?: XSP_RISING(place)
			 ?: XSP_RISING(callee) ?: XSP_RISING(thread) ?: XSP_RISING(pool));
static XSP_ORDER(rows_by_ns, struct xsp_account_row,
		 XSP_FALLING(ns) ?: XSP_RISING(kind) ?: XSP_RISING(place) ?: XSP_RISING(callee));
static XSP_ORDER(places_by_ns, struct xsp_account_place,
		 XSP_COMPARE(x->kind >= XSP_ACCOUNT_READY ? x->kind : 0,
			     y->kind >= XSP_ACCOUNT_READY ? y->kind : 0)
			 ?: XSP_FALLING(ns) ?: XSP_RISING(name));

static bool same_row(const struct part *x, const struct part *y)
{
	return x->function == y->function && x->kind == y->kind && x->why == y->why &&
	       x->place == y->place && x->callee == y->callee;
}

/* One row of the parts from `i` on that are the same but for their threads; *next: what follows them. */
static struct xsp_account_row row_at(const struct sum *s, size_t i, size_t *next, size_t members)
{
	const struct part *first = &s->parts.rows[i];
	struct xsp_account_row row = {.kind = first->kind,
				      .why = first->why,
				      .place = first->place,
				      .callee = first->callee,
				      .least_ns = INT64_MAX};
	struct account_lead peer = {0};
	bool all_known = true;
	size_t threads = 0;

	while (i < s->parts.count && same_row(first, &s->parts.rows[i])) {
		const uint32_t thread = s->parts.rows[i].thread;
		int64_t ns = 0;
		for (; i < s->parts.count && same_row(first, &s->parts.rows[i]) &&
		       s->parts.rows[i].thread == thread;
		     i++) {
			const struct part *p = &s->parts.rows[i];
			ns = account_sum(ns, p->ns);
			row.loop_ns = account_sum(row.loop_ns, p->loop_ns);
			account_vote(&peer, p->peer.what, p->peer.ahead);
			row.samples += p->count;
			row.steps += p->steps;
			if (p->longest_ns > row.longest_ns)
				row.longest_ns = p->longest_ns;
			if (p->period != 0 && (row.period == 0 || p->period < row.period))
				row.period = p->period;
		}
		row.ns = account_sum(row.ns, ns);
		all_known = all_known && thread != NO_THREAD;
		if (all_known && (ns > row.most_ns || threads == 0)) {
			row.most_ns = ns;
			row.most = s->a->threads.rows[thread].tid;
		}
		row.least_ns = ns < row.least_ns ? ns : row.least_ns;
		threads++;
	}
	if (threads < members && row.least_ns > 0)
		row.least_ns = 0;
	row.peer = peer.ahead >= account_part_of(row.ns, PEER_AHEAD) ? (uint32_t)peer.what : 0;
	if (!all_known)
		row.least_ns = row.most_ns = row.most = 0;
	*next = i;
	return row;
}

/* Of the samples in the parts [from, end), which are one function's. */
static uint64_t error_of(const struct sum *s, size_t from, size_t end)
{
	double squares = 0;

	for (size_t i = from; i < end; i++)
		if (s->parts.rows[i].pool != NO_POOL)
			s->pools.rows[s->parts.rows[i].pool].here += s->parts.rows[i].count;
	for (size_t i = from; i < end; i++) {
		struct pool *pool = s->parts.rows[i].pool != NO_POOL
					    ? &s->pools.rows[s->parts.rows[i].pool]
					    : NULL;
		if (pool == NULL || pool->here == 0)
			continue;
		const double all =
			(double)(pool->samples > pool->here ? pool->samples : pool->here);
		double low, high;
		xsp_share_interval((double)pool->here / all, all, &low, &high);
		const double e = (high - low) / 2 * (double)pool->ns;
		squares += e * e;
		pool->here = 0;
	}
	return (uint64_t)sqrt(squares);
}

static int put_place(const struct sum *s, struct account_family *f, size_t from, size_t end)
{
	struct xsp_account_place place = {.count = f->rows.count};
	int64_t most = INT64_MIN;
	int rc = 0;

	for (size_t i = from; i < end; i++)
		for (size_t k = 0; k < XSP_ACCOUNT_THIRDS; k++)
			place.thirds[k] += s->parts.rows[i].thirds[k];
	for (size_t i = from; i < end && rc == 0;) {
		const struct xsp_account_row row = row_at(s, i, &i, f->shown.members);
		place.ns = account_sum(place.ns, row.ns);
		rc = XSP_PUT(&f->rows, row);
		if (row.ns > most) {
			most = row.ns;
			place.name = row.place;
			place.kind = row.kind;
		}
	}
	place.error_ns = error_of(s, from, end);
	/* rows may move: their addresses are filled in when all are there */
	const size_t first = place.count;
	place.count = f->rows.count - first;
	place.rows = (const void *)first;
	return rc == 0 ? XSP_PUT(&f->places, place) : rc;
}

static int put_places(const struct sum *s, struct account_family *f)
{
	int rc = 0;

	for (size_t i = 0, end; i < s->parts.count && rc == 0; i = end) {
		for (end = i + 1; end < s->parts.count &&
				  s->parts.rows[end].function == s->parts.rows[i].function;)
			end++;
		rc = put_place(s, f, i, end);
	}
	for (size_t i = 0; i < f->places.count && rc == 0; i++) {
		struct xsp_account_place *p = &f->places.rows[i];
		struct xsp_account_row *rows = f->rows.rows + (size_t)p->rows;
		XSP_SORT(rows, p->count, rows_by_ns);
		p->rows = rows;
	}
	XSP_SORT(f->places.rows, f->places.count, places_by_ns);
	f->shown.places = f->places.rows;
	f->shown.count = f->places.count;
	return rc;
}

static void add_to_head(struct xsp_account_family *f, const struct part *p)
{
	f->ns += (uint64_t)p->ns;
	f->samples += p->count;
	if (p->kind == XSP_ACCOUNT_WAIT)
		f->wait_ns += (uint64_t)p->ns;
	else if (p->kind == XSP_ACCOUNT_READY)
		f->ready_ns += (uint64_t)p->ns;
	else if (p->kind == XSP_ACCOUNT_OFF)
		f->off_ns += (uint64_t)p->ns;
	else
		f->cpu_ns += (uint64_t)p->ns;
}

static int sum_family(struct xsp_account *a, const struct total *totals, uint32_t index)
{
	struct account_family *f = &a->families.rows[index];
	struct sum s = {.a = a,
			.steps = f->shown.steps > 0 &&
				 f->shown.paused_ns <= f->shown.all_ns / PAUSED_SHARE};
	int rc = 0;

	f->shown.index = index;
	if (!s.steps)
		f->shown.steps = 0;
	for (size_t i = 0; i < a->cells.count && rc == 0; i++) {
		const struct account_cell *c = &a->cells.rows[i];
		if (a->threads.rows[c->thread].family == index && !totals[c->thread].idle)
			rc = put_cell(&s, c);
	}
	for (size_t i = 0; i < s.parts.count; i++)
		f->shown.stack_ns +=
			s.parts.rows[i].kind == XSP_ACCOUNT_WAIT ? (uint64_t)s.parts.rows[i].ns : 0;
	if (rc == 0)
		rc = account_place_waits(&s);
	if (rc == 0)
		rc = account_share_pools(&s);
	if (rc == 0)
		rc = account_place_spans(&s);
	for (size_t i = 0; i < s.parts.count && rc == 0; i++) {
		s.parts.rows[i].function = function_of(a, &s.parts.rows[i]);
		if (s.parts.rows[i].kind == XSP_ACCOUNT_READY)
			s.parts.rows[i].place = s.parts.rows[i].callee = 0;
		add_to_head(&f->shown, &s.parts.rows[i]);
	}
	XSP_SORT(s.parts.rows, s.parts.count, by_row);
	if (rc == 0)
		rc = put_places(&s, f);
	if (rc == 0)
		rc = account_find_callers(a, f, index);
	XSP_FREE(&s.parts);
	XSP_FREE(&s.weights);
	XSP_FREE(&s.homeless);
	XSP_FREE(&s.chosen);
	XSP_FREE(&s.spans);
	XSP_FREE(&s.lines);
	XSP_FREE(&s.pools);
	return rc;
}

/* Programs of a moment come last: who starts them is the answer. With steps first; then those with most time on a CPU, or ready. */
static XSP_ORDER(to_show, struct xsp_account_family,
		 XSP_RISING(brief)
			 ?: XSP_COMPARE(y->steps > 0, x->steps > 0)
			 ?: XSP_COMPARE(y->all_cpu_ns + y->all_ready_ns,
					x->all_cpu_ns + x->all_ready_ns)
			 ?: XSP_RISING(pid) ?: XSP_RISING(tid));

static uint64_t life_of(const struct xsp_account_family *f)
{
	return f->members > 0 ? f->all_ns / f->members : 0;
}

static uint64_t longest_life(const struct xsp_account *a)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < a->families.count; i++)
		if (life_of(&a->families.rows[i].shown) > ns)
			ns = life_of(&a->families.rows[i].shown);
	return ns;
}

int xsp_account_end(struct xsp_account *a)
{
	struct total *totals = calloc(a->threads.count + 1, sizeof(*totals));
	int rc = totals != NULL ? xsp_account_add_off(a) : -ENOMEM;

	if (rc == 0)
		rc = find_families(a);
	if (rc == 0) {
		total_families(a, totals);
		account_find_habits(a);
	}
	if (rc == 0 && (a->shown = calloc(a->families.count + 1, sizeof(*a->shown))) == NULL)
		rc = -ENOMEM;
	const uint64_t longest_ns = longest_life(a);
	for (size_t i = 0; i < a->families.count && rc == 0; i++) {
		struct xsp_account_family *f = &a->families.rows[i].shown;
		f->brief = f->members > XSP_ACCOUNT_MANY && life_of(f) < XSP_ACCOUNT_BRIEF_NS &&
			   life_of(f) < longest_ns / 4;
		a->shown[i] = *f;
		a->shown[i].index = (uint32_t)i;
	}
	if (rc == 0)
		XSP_SORT(a->shown, a->families.count, to_show);
	for (size_t i = 0; i < a->families.count && i < MOST_FAMILIES && rc == 0; i++) {
		rc = sum_family(a, totals, a->shown[i].index);
		a->shown[i] = a->families.rows[a->shown[i].index].shown;
	}
	free(totals);
	return rc;
}

size_t xsp_account_families(const struct xsp_account *a, const struct xsp_account_family **out)
{
	*out = a->shown;
	return a->shown != NULL ? a->families.count : 0;
}
