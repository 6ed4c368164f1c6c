/* SPDX-License-Identifier: BSD-2-Clause */
/* Begins and ends in order of time, for spans that are reported when they end, and some later than
 * that. */
#include <criterion/criterion.h>

#include "model/rows/ordered.h"

#define SPANS 3000U /* several blocks */

struct made {
	struct xsp_ordered_span spans[SPANS]; /* names are their indexes */
	uint32_t count;
	uint64_t now;
	unsigned seed, least; /* ns from one begin or end to the next */
};

struct told {
	const struct made *made;
	uint32_t open[64], depth, begins;
	uint64_t last_ns;
	bool ended[SPANS];
};

static unsigned chance(struct made *m, unsigned below)
{
	m->seed = m->seed * 1103515245U + 12345U;
	return (m->seed >> 16) % below;
}

/* Children first, as the timeline reports them; some take no time, so that times are equal. */
static void grow(struct made *m, uint32_t depth)
{
	struct xsp_ordered_span s = {.start_ns = m->now, .depth = depth};

	for (unsigned n = chance(m, 4); n > 0 && depth < 20 && m->count < SPANS - 40; n--) {
		m->now += m->least + chance(m, 3);
		grow(m, depth + 1);
	}
	m->now += m->least + chance(m, 3);
	s.end_ns = m->now;
	s.name = m->count;
	m->spans[m->count++] = s;
}

static int on_event(void *ctx, bool begins, uint32_t name, uint64_t time_ns)
{
	struct told *t = ctx;
	const struct xsp_ordered_span *s = &t->made->spans[name];

	cr_assert_geq(time_ns, t->last_ns, "times never fall");
	t->last_ns = time_ns;
	if (begins) {
		cr_assert_eq(time_ns, s->start_ns);
		cr_assert_eq(s->depth, t->depth, "it lies in %u others, and should in %u", t->depth,
			     s->depth);
		t->open[t->depth++] = name;
		t->begins++;
		return 0;
	}
	cr_assert_eq(time_ns, s->end_ns);
	cr_assert_eq(t->open[--t->depth], name, "what ends is what began last");
	cr_assert(!t->ended[name]);
	t->ended[name] = true;
	return 0;
}

/* Every `later`th span comes after this many others have come; 0: none. */
static void try(unsigned seed, unsigned later)
{
	static struct made made;
	static struct told told;
	struct xsp_ordered *o;
	struct xsp_ordered_span held[SPANS];
	uint32_t held_count = 0;

	made = (struct made){.seed = seed, .now = 1000, .least = later > 0};
	while (made.count < SPANS - 40)
		grow(&made, 0);
	cr_assert_eq(xsp_ordered_new("/tmp/xsp-ordered", &o), 0);
	for (uint32_t i = 0; i < made.count; i++) {
		if (later > 0 && i % later == 0)
			held[held_count++] = made.spans[i];
		else
			cr_assert_eq(xsp_ordered_add(o, 1, &made.spans[i], false), 0);
		if (held_count == 16)
			while (held_count > 0)
				cr_assert_eq(xsp_ordered_add(o, 1, &held[--held_count], false), 0);
	}
	while (held_count > 0)
		cr_assert_eq(xsp_ordered_add(o, 1, &held[--held_count], false), 0);
	told = (struct told){.made = &made};
	cr_assert_eq(xsp_ordered_emit(o, 0, on_event, &told), 0);
	cr_assert_eq(told.begins, 0, "a row without spans");
	cr_assert_eq(xsp_ordered_emit(o, 1, on_event, &told), 0);
	cr_assert_eq(told.begins, made.count);
	cr_assert_eq(told.depth, 0);
	xsp_ordered_free(o);
}

Test(ordered, in_order_of_their_ends)
{
	for (unsigned seed = 1; seed < 20; seed++)
		try(seed, 0);
}

/* Stacks that prove to be abandoned. */
Test(ordered, some_come_late)
{
	for (unsigned seed = 1; seed < 20; seed++)
		try(seed, 1 + seed % 7);
}

/* A function is left by what begins at its end and comes after it, and after what was around it. */
Test(ordered, passed_over_at_the_moment_of_another_begin)
{
	static struct made made = {.count = 6,
				   .spans = {{10, 20, 0, 1},
					     {30, 50, 1, 1},
					     {0, 50, 2, 0},
					     {50, 50, 3, 0},
					     {45, 50, 4, 3},
					     {40, 50, 5, 2}}};
	struct told told = {.made = &made};
	struct xsp_ordered *o;

	cr_assert_eq(xsp_ordered_new("/tmp/xsp-ordered", &o), 0);
	for (uint32_t i = 0; i < made.count; i++)
		cr_assert_eq(xsp_ordered_add(o, 0, &made.spans[i], i > 3), 0);
	cr_assert_eq(xsp_ordered_emit(o, 0, on_event, &told), 0);
	cr_assert_eq(told.begins, made.count);
	cr_assert_eq(told.depth, 0);
	xsp_ordered_free(o);
}

/* What was around the first one is shown on another row. */
Test(ordered, deeper_than_what_is_on_the_row)
{
	static struct made made = {.count = 3,
				   .spans = {{10, 20, 0, 4}, {30, 40, 1, 0}, {25, 50, 2, 3}}};
	struct told told = {.made = &made, .depth = 0};
	struct xsp_ordered *o;

	cr_assert_eq(xsp_ordered_new("/tmp/xsp-ordered", &o), 0);
	for (uint32_t i = 0; i < made.count; i++)
		cr_assert_eq(xsp_ordered_add(o, 0, &made.spans[i], false), 0);
	made.spans[0].depth = made.spans[2].depth = 0; /* as they are shown */
	made.spans[1].depth = 1;
	cr_assert_eq(xsp_ordered_emit(o, 0, on_event, &told), 0);
	cr_assert_eq(told.begins, made.count);
	xsp_ordered_free(o);
}

struct rising {
	uint64_t last_ns, ends;
};

static int rise(void *ctx, bool begins, uint32_t name, uint64_t time_ns)
{
	struct rising *t = ctx;

	cr_assert_geq(time_ns, t->last_ns, "times never fall");
	cr_assert_eq(time_ns, 10ULL * name + (begins ? 0 : 5));
	t->last_ns = time_ns;
	t->ends += !begins;
	return 0;
}

/* From the last one to the first: all but one of each row come late. */
Test(ordered, more_come_late_than_memory_holds)
{
	const uint32_t spans = XSP_ORDERED_LATE + XSP_ORDERED_LATE / 5;
	struct xsp_ordered *o;

	cr_assert_eq(xsp_ordered_new("/tmp/xsp-ordered", &o), 0);
	for (uint32_t i = spans; i > 0; i--)
		for (uint32_t row = 0; row < 2; row++) {
			const struct xsp_ordered_span s = {
				.start_ns = 10ULL * i, .end_ns = 10ULL * i + 5, .name = i};
			cr_assert_eq(xsp_ordered_add(o, row, &s, false), 0);
		}
	for (uint32_t row = 0; row < 2; row++) {
		struct rising t = {0};
		cr_assert_eq(xsp_ordered_emit(o, row, rise, &t), 0);
		cr_assert_eq(t.ends, spans);
	}
	xsp_ordered_free(o);
}
