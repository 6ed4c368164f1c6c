/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of --max-overhead: how long they last, and the shares of what is seen in them. */
#include "capture_builder.h"

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

#define LENGTH (675 * MS)
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

/* Is it in a window? Each begins at a random time in its cycle. */
static bool is_on(const uint64_t *from, size_t count, uint64_t ns)
{
	const size_t i = ns / CYCLE;

	return i < count && ns >= from[i] && ns < from[i] + LENGTH;
}

/* Steps of 300 ms, half of which is one call. Seen in `count` windows; returns the true share. */
static double put_steps(struct builder *b, size_t count, uint64_t seed)
{
	uint64_t from[64], busy = 0, now = 1000;

	for (size_t i = 0; i < count; i++)
		from[i] = i * CYCLE + 2000 +
			  (uint64_t)(drawn(&seed) * (double)(CYCLE - LENGTH - 4000));
	while (now < count * CYCLE) {
		const uint64_t half = (uint64_t)((140 + 20 * drawn(&seed)) * (double)MS);
		const uint64_t rest = (uint64_t)((140 + 20 * drawn(&seed)) * (double)MS);
		const uint64_t end = now + half + rest;
		put_at(b, is_on(from, count, now), now, XSP_EVENT_ENTRY, 0, 2000);
		put_at(b, is_on(from, count, now + 1), now + 1, XSP_EVENT_ENTRY, 1, 1000);
		put_at(b, is_on(from, count, now + half), now + half, XSP_EVENT_EXIT, 1, 1000);
		put_at(b, is_on(from, count, end - 1), end - 1, XSP_EVENT_EXIT, 0, 2000);
		busy += half;
		now = end;
	}
	for (size_t i = 0; i < count; i++)
		cr_assert_eq(xsp_capture_put_window(
				     b->w, &(struct xsp_capture_window){from[i], from[i] + LENGTH}),
			     0);
	b->now = count * CYCLE;
	return (double)busy / (double)now;
}

/* Does the interval of the call hold the true share? *error gets its half width. */
static bool holds(size_t count, uint64_t seed, double *error)
{
	struct xsp_error err = {0};
	const struct xsp_summary_row *rows;
	struct xsp_summary *s;
	struct builder b;
	struct result r = {0};
	bool found = false, held = false;

	builder_begin(&b, 2);
	const double truth = put_steps(&b, count, seed);
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
		double error; /* at most, on average */
	} cases[] = {{5, 0.4}, {12, 0.1}, {48, 0.05}};

	for (size_t i = 0; i < 3; i++) {
		unsigned held = 0;
		double errors = 0, error = 0;
		for (uint64_t seed = 1; seed <= 100; seed++) {
			held += holds(cases[i].windows, seed, &error);
			errors += error;
		}
		cr_expect_geq(held, 95, "%zu windows: %u of 100", cases[i].windows, held);
		cr_expect_leq(errors / 100, cases[i].error, "%zu windows: +-%f", cases[i].windows,
			      errors / 100);
	}
}
