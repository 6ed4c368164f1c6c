/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of --max-overhead: how long they last, and the shares of what is seen in them. */
#include "capture_builder.h"

#include <math.h>

#include "analysis/names/summary.h"
#include "base/units.h"
#include "record/brake/overhead.h"

#define MS 1000000ULL

/* ---- the longest outermost call ---- */

static void see(struct xsp_calls *c, enum xsp_event_kind kind, uint32_t probe, uint64_t sp,
		uint64_t ms)
{
	xsp_calls_see(c, &(struct xsp_event){.kind = (uint8_t)kind,
					     .probe = probe,
					     .sp = sp,
					     .tid = 7,
					     .time_ns = ms * MS});
}

Test(windows, the_longest_call)
{
	static struct xsp_calls c;

	xsp_calls_begin(&c, 0);
	see(&c, XSP_EVENT_END, 9, 0, 20); /* began before */
	cr_expect_eq(c.longest_ns, 20 * MS);
	see(&c, XSP_EVENT_ENTRY, 1, 1000, 100);
	see(&c, XSP_EVENT_ENTRY, 2, 900, 101);
	see(&c, XSP_EVENT_ENTRY, 1, 800, 102); /* recursion */
	see(&c, XSP_EVENT_EXIT, 1, 800, 110);
	see(&c, XSP_EVENT_EXIT, 2, 900, 120);
	see(&c, XSP_EVENT_EXIT, 1, 1000, 130);
	cr_expect_eq(c.longest_ns, 30 * MS);
	cr_expect_eq(c.longest_probe, 1);
	see(&c, XSP_EVENT_ENTRY, 3, 1000, 200); /* its exit is not seen */
	see(&c, XSP_EVENT_ENTRY, 3, 1000, 300);
	see(&c, XSP_EVENT_EXIT, 3, 1000, 301);
	cr_expect_eq(c.longest_ns, 30 * MS);
	see(&c, XSP_EVENT_BEGIN, 9, 0, 400);
	see(&c, XSP_EVENT_BEGIN, 9, 0, 401);
	see(&c, XSP_EVENT_END, 9, 0, 402);
	xsp_calls_end(&c, 440 * MS);
	cr_expect_eq(c.longest_ns, 40 * MS);
	see(&c, XSP_EVENT_END, 9, 0, 455);
	cr_expect_eq(c.longest_ns, 55 * MS);
	see(&c, XSP_EVENT_BEGIN, 9, 0, 1000); /* a main loop */
	see(&c, XSP_EVENT_BEGIN, 9, 0, 9000);
	see(&c, XSP_EVENT_END, 9, 0, 9060);
	xsp_calls_end(&c, 9100 * MS);
	cr_expect_eq(c.longest_ns, 60 * MS);
}

/* ---- --windows ---- */

Test(windows, a_schedule)
{
	const struct xsp_schedule s = {
		.length_ns = 2000 * MS, .every_ns = 60000 * MS, .origin_ns = 7 * MS};
	char text[XSP_SCHEDULE_TEXT];

	cr_expect(xsp_is_scheduled(&s) && !xsp_is_scheduled(&(struct xsp_schedule){.count = 5}));
	cr_expect_eq(xsp_schedule_next(&s, 0), 7 * MS, "the first one");
	cr_expect_eq(xsp_schedule_next(&s, 7 * MS), 60007 * MS);
	cr_expect_eq(xsp_schedule_next(&s, 60006 * MS), 60007 * MS);
	cr_expect_eq(xsp_schedule_next(&s, 200000 * MS), 240007 * MS,
		     "those that were missed do not come");
	cr_expect_str_eq(xsp_schedule_text(&s, text), "windows of 2.00 s, one every 60.0 s");
}

Test(windows, two_of_the_longest_calls)
{
	static struct xsp_overhead o;

	cr_expect_eq(xsp_window_length_ns(&o), WINDOW_NS);
	o.calls.longest_ns = 300 * MS;
	cr_expect_geq(xsp_window_length_ns(&o), 600 * MS);
	cr_expect_leq(xsp_window_length_ns(&o), 700 * MS);
	o.calls.longest_ns = 9000 * MS;
	cr_expect_eq(xsp_window_length_ns(&o), 3000 * MS);
}

/* Of a step of 300 ms windows of 150 ms show parts, or nothing: each is twice as long as the one before. */
Test(windows, a_call_that_is_never_seen_whole)
{
	static struct xsp_overhead o;

	o.calls.cut = true;
	o.calls.longest_ns = 40 * MS;
	o.prepaid_ns = 150 * MS;
	cr_expect_eq(xsp_window_length_ns(&o), 300 * MS);
	o.calls.longest_ns = MS; /* surely one of many short ones */
	cr_expect_eq(xsp_window_length_ns(&o), WINDOW_NS);
	o.calls.longest_ns = 1400 * MS;
	o.prepaid_ns = 3000 * MS;
	cr_expect_eq(xsp_window_length_ns(&o), 3000 * MS);
}

/* ---- shares ---- */

#define CYCLE (3000 * MS)

static double drawn(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*state >> 11) * 0x1p-53;
}

static void put_at(struct builder *b, bool seen, uint64_t ns, enum xsp_event_kind kind,
		   uint32_t probe, uint64_t sp)
{
	if (!seen)
		return;
	b->now = ns;
	builder_event(b, kind, probe, sp, XSP_EVENT_SP_EXACT);
}

struct steps {
	size_t windows;
	uint64_t from[64], length;
	uint64_t hit_ns; /* estimated */
	double factor; /* what it costs is that much more */
	uint64_t now, hits;
};

/* Is it in a window? Each begins at a random time in its cycle. */
static bool is_on(const struct steps *s, uint64_t ns)
{
	const size_t i = ns / CYCLE;

	return i < s->windows && ns >= s->from[i] && ns < s->from[i] + s->length;
}

#define HITS 10 /* pairs in the half of a step that is no call */
#define SAMPLE_NS (10 * MS)

/* What hits cost in the target, by samples that come by chance. */
static void put_prices(struct builder *b, double true_ns, double counted_ns, uint64_t *seed)
{
	struct xsp_capture_prices p = {.of = {{1, 0.3, 0}, {1, 0.3, 0}}};
	double ns = 0;

	while ((ns -= log(drawn(seed)) * (double)SAMPLE_NS) < true_ns)
		p.of[0].samples++;
	p.of[0].factor = xsp_brake_price_factor(p.of[0].samples * SAMPLE_NS, p.of[0].samples,
						(uint64_t)counted_ns, &p.of[0].error);
	p.error = p.of[0].error;
	cr_assert_eq(xsp_capture_put_prices(b->w, &p), 0);
}

/* A hit takes its time, then its event is written. */
static void put_hit(struct builder *b, struct steps *s, enum xsp_event_kind kind)
{
	if (!is_on(s, s->now))
		return;
	s->now += (uint64_t)(s->factor * (double)s->hit_ns);
	s->hits++;
	put_at(b, is_on(s, s->now), s->now, kind, 2, 900);
}

static void put_step(struct builder *b, struct steps *s, uint64_t half, uint64_t rest)
{
	const uint64_t now = s->now;

	put_at(b, is_on(s, now), now, XSP_EVENT_ENTRY, 0, 2000);
	put_at(b, is_on(s, now + 1), now + 1, XSP_EVENT_ENTRY, 1, 1000);
	s->now += half;
	put_at(b, is_on(s, s->now), s->now, XSP_EVENT_EXIT, 1, 1000);
	for (int i = 0; s->hit_ns > 0 && i < HITS; i++) {
		s->now += rest / HITS / 2;
		put_hit(b, s, XSP_EVENT_ENTRY);
		s->now += rest / HITS / 2;
		put_hit(b, s, XSP_EVENT_EXIT);
	}
	if (s->hit_ns == 0)
		s->now += rest;
	put_at(b, is_on(s, s->now), s->now, XSP_EVENT_EXIT, 0, 2000);
	s->now += 1;
}

/* Steps of 300 ms, half of which is one call. The other half may have hits, with a price that is wrong by up to 40 %. Seen in
 * windows; returns the true share. */
static double put_steps(struct builder *b, size_t count, uint64_t hit_ns, uint64_t seed)
{
	struct steps s = {.windows = count,
			  .hit_ns = hit_ns,
			  .factor = 0.8 + 0.6 * drawn(&seed),
			  .now = 1000};
	uint64_t busy = 0, own = 0;

	/* two of the longest steps, and some more */
	s.length = 675 * MS + (uint64_t)(2.25 * 2 * HITS * s.factor * (double)hit_ns);
	for (size_t i = 0; i < count; i++)
		s.from[i] = i * CYCLE + 2000 +
			    (uint64_t)(drawn(&seed) * (double)(CYCLE - s.length - 4000));
	while (s.now < count * CYCLE) {
		const uint64_t half = (uint64_t)((140 + 20 * drawn(&seed)) * (double)MS);
		const uint64_t rest = (uint64_t)((140 + 20 * drawn(&seed)) * (double)MS);
		put_step(b, &s, half, rest);
		busy += half;
		own += half + rest;
	}
	for (size_t i = 0; i < count; i++)
		cr_assert_eq(xsp_capture_put_window(
				     b->w,
				     &(struct xsp_capture_window){s.from[i], s.from[i] + s.length}),
			     0);
	b->now = s.now;
	const double counted_ns = (double)(s.hits * hit_ns);
	if (hit_ns > 0)
		put_prices(b, s.factor * counted_ns, counted_ns, &seed);
	return (double)busy / (double)own;
}

/* Does the interval of the call hold the true share? *error gets its half width. */
static bool holds(size_t count, uint64_t hit_ns, uint64_t seed, double *error)
{
	struct xsp_error err = {0};
	const struct xsp_summary_row *rows;
	struct xsp_summary *s;
	struct builder b;
	struct result r = {0};
	bool found = false, held = false;

	builder_begin(&b, 2);
	const struct xsp_capture_probe other = {.id = 2,
						.module = UINT32_MAX,
						.provider = "function",
						.symbol = "",
						.name = "other",
						.entry_cost_ns = (uint32_t)hit_ns,
						.exit_cost_ns = (uint32_t)hit_ns,
						.exit_complete = true};
	cr_assert_eq(xsp_capture_put_probe(b.w, &other), 0);
	const double truth = put_steps(&b, count, hit_ns, seed);
	builder_end(&b);
	cr_assert_eq(xsp_capture_open(b.path, &r.reader, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new(r.reader, &r.timeline, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_summary_new(r.timeline, &s), 0);
	const struct xsp_timeline_sink sink = xsp_summary_sink(s);
	cr_assert_eq(xsp_timeline_run(r.timeline, &sink, 1, &err), 0, "%s", err.text);
	const size_t n = xsp_summary_rows(s, &rows);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(xsp_timeline_name(r.timeline, rows[i].name), "f1") != 0)
			continue;
		found = rows[i].share_known;
		*error = rows[i].share_error;
		held = rows[i].share - *error <= truth && truth <= rows[i].share + *error;
	}
	cr_assert(found);
	xsp_summary_free(s);
	result_free(&r);
	unlink(b.path);
	return held;
}

Test(windows, shares_hold)
{
	static const struct {
		size_t windows;
		uint64_t hit_ns;
		double error; /* at most, on average */
	} cases[] = {
		{5, 0, 0.4}, {12, 0, 0.1}, {48, 0, 0.05}, {12, 5 * MS, 0.15}, {48, 5 * MS, 0.08}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned held = 0;
		double errors = 0, error = 0;
		for (uint64_t seed = 1; seed <= 100; seed++) {
			held += holds(cases[i].windows, cases[i].hit_ns, seed, &error);
			errors += error;
		}
		cr_expect_geq(held, 95, "%zu windows: %u of 100", cases[i].windows, held);
		cr_expect_leq(errors / 100, cases[i].error, "%zu windows: +-%f", cases[i].windows,
			      errors / 100);
	}
}
