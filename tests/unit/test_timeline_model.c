/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random programs against the timeline: threads with fibers call, return, tail-call, throw,
 * begin and end ranges. The program knows its spans; where nothing is lost the timeline must
 * find exactly those, otherwise its promises must hold.
 */
#include "capture_builder.h"

#define FUNCTIONS 12U
#define RANGE_PROBE FUNCTIONS
#define THREADS 3U
#define FIBERS 6U
#define DEPTH 40U

struct frame {
	uint64_t sp; /* at entry */
	uint64_t rsp; /* in its body */
	uint64_t start, child;
	uint32_t probe;
	bool range;
};

struct stack {
	uint64_t top; /* highest address */
	struct frame frames[DEPTH + 1];
	size_t depth;
};

struct task {
	struct stack stacks[FIBERS];
	unsigned running;
};

struct truth {
	uint64_t start, end, self;
	uint32_t tid, probe, flags;
};

struct model {
	struct builder b;
	uint64_t random;
	struct task tasks[THREADS];
	struct truth *truth;
	size_t count, capacity;
	/* what may happen, in 1/1000 */
	unsigned loss, fibers, throws, unmarked;
	bool adjacent;
	uint64_t lost_entries, lost_exits;
};

static uint64_t rnd(struct model *m, uint64_t below)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return (m->random >> 11) % below;
}

static bool chance(struct model *m, unsigned per_mille)
{
	return rnd(m, 1000) < per_mille;
}

static struct stack *stack_of(struct model *m, unsigned tid)
{
	struct task *t = &m->tasks[tid];
	return &t->stacks[t->running];
}

static void tell(struct model *m, const struct frame *f, unsigned tid, uint64_t end_ns,
		 uint32_t flags)
{
	if (m->count == m->capacity) {
		m->capacity = m->capacity * 2 + 64;
		m->truth = realloc(m->truth, m->capacity * sizeof(*m->truth));
		cr_assert_not_null(m->truth);
	}
	m->truth[m->count++] = (struct truth){.start = f->start,
					      .end = end_ns,
					      .self = end_ns - f->start - f->child,
					      .tid = tid,
					      .probe = f->probe,
					      .flags = flags};
}

/* Ends the innermost frame of a stack at m->b.now. */
static void drop(struct model *m, struct stack *s, unsigned tid, uint32_t flags)
{
	struct frame *f = &s->frames[--s->depth];
	uint64_t now = m->b.now;
	tell(m, f, tid, now, flags);
	if (s->depth > 0)
		s->frames[s->depth - 1].child += now - f->start;
}

static void emit(struct model *m, unsigned tid, enum xsp_event_kind kind, uint32_t probe,
		 uint64_t sp, uint8_t flags)
{
	m->b.tid = 100 + tid;
	m->b.ring = tid;
	if (kind == XSP_EVENT_BEGIN)
		begin(&m->b, probe, sp, 77);
	else
		builder_event(&m->b, kind, probe, sp, flags);
}

static bool lose(struct model *m, uint64_t *counter)
{
	if (!chance(m, m->loss))
		return false;
	m->b.now++;
	(*counter)++;
	return true;
}

static uint64_t body(const struct stack *s)
{
	return s->depth == 0 ? s->top : s->frames[s->depth - 1].rsp;
}

static void call(struct model *m, unsigned tid)
{
	struct stack *s = stack_of(m, tid);
	if (s->depth == DEPTH)
		return;
	/* sometimes through functions that are not traced, or a frame with alloca */
	uint64_t sp = body(s) - 8 - (chance(m, 300) ? 16 * rnd(m, 8) : 0);
	struct frame f = {.sp = sp,
			  .rsp = sp - 8 - 16 * rnd(m, 12),
			  .start = m->b.now,
			  .probe = (uint32_t)rnd(m, FUNCTIONS)};
	if (chance(m, 50)) { /* one hit */
		emit(m, tid, XSP_EVENT_POINT, f.probe, sp, XSP_EVENT_SP_EXACT);
		tell(m, &f, tid, f.start, XSP_SPAN_POINT);
		return;
	}
	s->frames[s->depth++] = f;
	if (!lose(m, &m->lost_entries))
		emit(m, tid, XSP_EVENT_ENTRY, f.probe, sp, XSP_EVENT_SP_EXACT);
}

static void open_range(struct model *m, unsigned tid)
{
	struct stack *s = stack_of(m, tid);
	if (s->depth == DEPTH)
		return;
	struct frame f = {.sp = body(s) - 8,
			  .rsp = body(s),
			  .start = m->b.now,
			  .probe = RANGE_PROBE,
			  .range = true};
	s->frames[s->depth++] = f;
	if (!lose(m, &m->lost_entries))
		emit(m, tid, XSP_EVENT_BEGIN, RANGE_PROBE, f.sp, 0);
}

static void give_back(struct model *m, unsigned tid)
{
	struct stack *s = stack_of(m, tid);
	if (s->depth == 0)
		return;
	struct frame f = s->frames[s->depth - 1];
	bool tail = !f.range && chance(m, 100);
	drop(m, s, tid, tail ? XSP_SPAN_TAIL : 0);
	if (lose(m, &m->lost_exits))
		return;
	if (f.range)
		emit(m, tid, XSP_EVENT_END, f.probe, f.sp, 0);
	else
		emit(m, tid, XSP_EVENT_EXIT, f.probe, f.sp,
		     (uint8_t)(XSP_EVENT_SP_EXACT | (tail ? XSP_EVENT_TAIL : 0)));
	if (tail && s->depth < DEPTH) {
		struct frame g = {.sp = f.sp,
				  .rsp = f.sp - 8 - 16 * rnd(m, 12),
				  .start = m->b.now,
				  .probe = (uint32_t)rnd(m, FUNCTIONS)};
		s->frames[s->depth++] = g;
		if (!lose(m, &m->lost_entries))
			emit(m, tid, XSP_EVENT_ENTRY, g.probe, g.sp, XSP_EVENT_SP_EXACT);
	}
}

/* An exception or longjmp that lands in a function some frames up. */
static void throw(struct model * m, unsigned tid)
{
	struct stack *s = stack_of(m, tid);
	size_t land = s->depth;
	for (size_t left = 1 + rnd(m, 6); land > 0 && left > 0; left--)
		land--;
	while (land > 0 && s->frames[land - 1].range)
		land--;
	if (land == 0)
		return;
	/* ranges that the landing frame itself began stay open */
	size_t keep = land;
	uint64_t mark = s->frames[land - 1].rsp;
	while (keep < s->depth && s->frames[keep].range)
		keep++;
	if (keep == s->depth)
		return;
	while (s->depth > keep)
		drop(m, s, tid, XSP_SPAN_UNWOUND);
	if (chance(m, m->unmarked))
		m->b.now++;
	else
		emit(m, tid, XSP_EVENT_UNWIND, 0, mark, XSP_EVENT_SP_EXACT);
}

static void step(struct model *m)
{
	unsigned tid = (unsigned)rnd(m, THREADS);
	if (chance(m, m->fibers))
		m->tasks[tid].running = (unsigned)rnd(m, FIBERS);
	uint64_t what = rnd(m, 1000);
	if (what < 420)
		call(m, tid);
	else if (what < 480)
		open_range(m, tid);
	else if (what < 480 + m->throws)
		throw(m, tid);
	else
		give_back(m, tid);
}

static void begin_model(struct model *m, uint64_t seed)
{
	m->random = seed * 0x9e3779b97f4a7c15ULL + 1;
	builder_begin(&m->b, FUNCTIONS + 1);
	for (unsigned t = 0; t < THREADS; t++) {
		for (unsigned f = 0; f < FIBERS; f++) {
			uint64_t heap = 0x7f1000000000ULL + ((uint64_t)t << 32) +
					(m->adjacent ? 65536ULL : 0x4000000ULL) * f;
			m->tasks[t].stacks[f].top =
				f == 0 ? 0x7fff00000000ULL + ((uint64_t)t << 24) : heap;
		}
	}
}

static int by_start(const void *a, const void *b)
{
	const struct truth *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int seen_by_start(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;
	return x->span.start_ns < y->span.start_ns ? -1 : x->span.start_ns > y->span.start_ns;
}

static void end_model(struct model *m, struct result *r)
{
	for (unsigned t = 0; t < THREADS; t++) {
		for (unsigned f = 0; f < FIBERS; f++) {
			struct stack *s = &m->tasks[t].stacks[f];
			while (s->depth > 0)
				drop(m, s, t, XSP_SPAN_UNFINISHED);
		}
	}
	builder_result(&m->b, r);
	qsort(m->truth, m->count, sizeof(*m->truth), by_start);
}

/* Every span as it was; returns false and says so at the first difference. */
static bool same(struct model *m, struct result *r, bool self, uint64_t seed)
{
	qsort(r->spans, r->count, sizeof(*r->spans), seen_by_start);
	if (r->count != m->count) {
		cr_expect_fail("seed %lu: %zu spans instead of %zu", seed, r->count, m->count);
		return false;
	}
	for (size_t i = 0; i < m->count; i++) {
		const struct truth *t = &m->truth[i];
		const struct xsp_span *s = &r->spans[i].span;
		if (s->start_ns == t->start && s->end_ns == t->end && s->flags == t->flags &&
		    s->probe == t->probe && s->tid == 100 + t->tid &&
		    (!self || s->self_ns == t->self))
			continue;
		cr_expect_fail(
			"seed %lu, span %zu: [%lu, %lu] self %lu flags %u probe %u, instead of "
			"[%lu, %lu] self %lu flags %u probe %u",
			seed, i, s->start_ns, s->end_ns, s->self_ns, s->flags, s->probe, t->start,
			t->end, t->self, t->flags, t->probe);
		return false;
	}
	return true;
}

static size_t seeds(void)
{
	const char *s = getenv("XSP_MODEL_SEEDS");
	return s == NULL ? 150 : strtoul(s, NULL, 10);
}

typedef bool (*check_fn)(struct model *m, struct result *r, uint64_t seed);

static void run_models(const struct model *kind, check_fn check)
{
	for (uint64_t seed = 1; seed <= seeds(); seed++) {
		struct model m = *kind;
		struct result r;
		begin_model(&m, seed);
		for (int i = 0; i < 3000; i++)
			step(&m);
		end_model(&m, &r);
		bool good = check(&m, &r, seed);
		const char *wrong = broken_invariant(&r);
		cr_expect_null(wrong, "seed %lu: %s", seed, wrong);
		result_free(&r);
		free(m.truth);
		if (!good || wrong != NULL)
			return;
	}
}

static bool exact(struct model *m, struct result *r, uint64_t seed)
{
	cr_expect_eq(r->counts.orphan_exits + r->counts.exit_lost + r->counts.stack_switches, 0);
	return same(m, r, true, seed);
}

Test(timeline_model, one_stack_with_marks_is_exact)
{
	struct model m = {.throws = 60};
	run_models(&m, exact);
}

/* What is open at the end and sleeps is shown as ended when it was last seen; all else is exact. */
static bool exact_but_sleeping(struct model *m, struct result *r, uint64_t seed)
{
	qsort(r->spans, r->count, sizeof(*r->spans), seen_by_start);
	if (r->count != m->count || r->counts.orphan_exits != 0) {
		cr_expect_fail("seed %lu: %zu spans instead of %zu, %lu orphans", seed, r->count,
			       m->count, r->counts.orphan_exits);
		return false;
	}
	for (size_t i = 0; i < m->count; i++) {
		struct truth *t = &m->truth[i];
		const struct xsp_span *s = &r->spans[i].span;
		if (t->flags == XSP_SPAN_UNFINISHED && s->flags == XSP_SPAN_EXIT_LOST) {
			t->flags = s->flags;
			t->end = s->end_ns;
		}
	}
	return same(m, r, false, seed);
}

Test(timeline_model, fibers_far_apart)
{
	struct model m = {.fibers = 100};
	run_models(&m, exact_but_sleeping);
}

Test(timeline_model, fibers_that_touch)
{
	struct model m = {.fibers = 100, .adjacent = true};
	run_models(&m, exact_but_sleeping);
}

Test(timeline_model, fibers_that_switch_all_the_time)
{
	struct model m = {.fibers = 900, .adjacent = true};
	run_models(&m, exact_but_sleeping);
}

/* Without marks the end of what was left is only bounded; what returned is exact. */
static bool exact_returns(struct model *m, struct result *r, uint64_t seed)
{
	qsort(r->spans, r->count, sizeof(*r->spans), seen_by_start);
	cr_expect_eq(r->counts.orphan_exits, 0);
	if (r->count != m->count)
		return same(m, r, false, seed);
	for (size_t i = 0; i < m->count; i++) {
		struct truth *t = &m->truth[i];
		const struct xsp_span *s = &r->spans[i].span;
		if (t->flags != XSP_SPAN_UNWOUND || s->end_ns < t->end)
			continue;
		t->end = s->end_ns;
		t->flags = s->flags;
	}
	return same(m, r, false, seed);
}

Test(timeline_model, one_stack_without_marks)
{
	struct model m = {.throws = 60, .unmarked = 1000};
	run_models(&m, exact_returns);
}

static size_t total, total_wrong;

static bool adds_up(struct model *m, struct result *r, uint64_t seed)
{
	cr_expect_eq(r->counts.spans + m->lost_entries, m->count, "seed %lu", seed);
	return true;
}

Test(timeline_model, losses)
{
	struct model m = {.throws = 40, .unmarked = 300, .loss = 50};
	run_models(&m, adds_up);
}

Test(timeline_model, losses_with_fibers)
{
	struct model m = {
		.throws = 40, .unmarked = 500, .loss = 100, .fibers = 200, .adjacent = true};
	run_models(&m, adds_up);
}

/* Which stack a mark belongs to can only be guessed; the guesses must be good ones. */
static bool nearly_exact(struct model *m, struct result *r, uint64_t seed)
{
	size_t wrong = 0;
	qsort(r->spans, r->count, sizeof(*r->spans), seen_by_start);
	for (size_t i = 0; i < m->count && i < r->count; i++) {
		const struct truth *t = &m->truth[i];
		const struct xsp_span *s = &r->spans[i].span;
		if (t->flags & XSP_SPAN_UNFINISHED)
			continue; /* sleeps at the end: see exact_but_sleeping() */
		wrong += s->end_ns != t->end || s->flags != t->flags;
	}
	total_wrong += wrong;
	total += m->count;
	return adds_up(m, r, seed);
}

static void run_nearly_exact(const struct model *kind, double most)
{
	total = total_wrong = 0;
	run_models(kind, nearly_exact);
	cr_expect_leq((double)total_wrong, most * (double)total, "%zu of %zu", total_wrong, total);
}

Test(timeline_model, fibers_with_exceptions_far_apart)
{
	struct model m = {.throws = 40, .fibers = 200};
	run_nearly_exact(&m, 0.005);
}

Test(timeline_model, fibers_with_exceptions_that_touch)
{
	struct model m = {.throws = 40, .fibers = 200, .adjacent = true};
	run_nearly_exact(&m, 0.015);
}
