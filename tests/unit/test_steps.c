/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps: what marks them, what counts, and what must not be reported of them. Numbers are counted
 * by hand. */
#include <criterion/criterion.h>

#include "analysis/names/summary.h"
#include "base/text.h"
#include "capture_builder.h"

/* Probe 0 opens ranges, probe 1 is a function that they call. */
static void open_capture(struct builder *b)
{
	builder_begin(b, 1);
	const struct xsp_capture_probe f = {.id = 1,
					    .module = UINT32_MAX,
					    .provider = "function",
					    .symbol = "",
					    .name = "work",
					    .exit_complete = true};
	cr_assert_eq(xsp_capture_put_probe(b->w, &f), 0);
}

static void put_call(struct builder *b, uint64_t start, uint64_t end_ns)
{
	b->now = start;
	entry(b, 1, 5000);
	b->now = end_ns;
	leave(b, 1, 5000);
}

/* A range of that name from start to end_ns, with one call of `work` in it. */
static void put_range(struct builder *b, const char *text, uint64_t start, uint64_t end_ns,
		      uint64_t work_ns)
{
	const uint64_t hash = xsp_text_hash(text, strlen(text));

	b->now = start;
	name(b, hash, text, 0);
	b->now = start;
	begin(b, 0, 9000, hash);
	if (work_ns > 0)
		put_call(b, start + 10, start + 10 + work_ns);
	b->now = end_ns;
	end(b, 0, 9000);
}

static char *text_of(struct builder *b, const char *marker, bool json)
{
	struct xsp_capture_reader *r;
	struct xsp_timeline *t;
	struct xsp_summary *s;
	struct xsp_error err = {0};
	char *text;
	size_t size;

	builder_end(b);
	cr_assert_eq(xsp_capture_open(b->path, &r, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new(r, &t, &err), 0);
	xsp_timeline_mark_steps(t, marker);
	cr_assert_eq(xsp_summary_new(t, &s), 0);
	const struct xsp_timeline_sink sink = xsp_summary_sink(s);
	cr_assert_eq(xsp_timeline_run(t, &sink, 1, &err), 0);
	FILE *f = open_memstream(&text, &size);
	if (json)
		cr_assert_eq(xsp_summary_write_json(s, r, f), 0);
	else
		cr_assert_eq(xsp_summary_write(s, r, f, &(struct xsp_summary_print){0}), 0);
	fclose(f);
	xsp_summary_free(s);
	xsp_timeline_free(t);
	xsp_capture_close(r);
	unlink(b->path);
	return text;
}

static void expect(const char *text, const char *part)
{
	cr_expect_not_null(strstr(text, part), "\"%s\" is not in:\n%s", part, text);
}

static void expect_none(const char *text, const char *part)
{
	cr_expect_null(strstr(text, part), "\"%s\" is in:\n%s", part, text);
}

/* Threads without end: the steps of 16,384 are counted, and the report says that there were
 * more. */
Test(steps, more_threads_than_are_followed)
{
	struct builder b;

	open_capture(&b);
	for (uint32_t i = 0; i < 16384 + 3; i++) {
		b.tid = 1000 + i;
		put_range(&b, "ProfilerStep#1", 1000 + 10 * i, 1005 + 10 * i, 0);
	}
	char *text = text_of(&b, NULL, true);
	/* not by expect(): the text is too long to print */
	cr_expect(strstr(text, "\"steps\": 16384") != NULL);
	cr_expect(strstr(text, "\"left_out\": 3") != NULL);
	free(text);
}

Test(steps, figures_and_what_was_longer)
{
	struct builder b;
	char text[32];

	open_capture(&b);
	for (int i = 0; i < 20; i++) { /* 1,000 ns each, one of 3,000, of which 2,000 in work */
		const bool slow = i == 12;
		snprintf(text, sizeof(text), "ProfilerStep#%d", i);
		put_range(&b, text, 10000 + 5000 * (uint64_t)i,
			  11000 + 5000 * (uint64_t)i + (slow ? 2000 : 0), slow ? 2100 : 100);
		put_call(&b, 13500 + 5000 * (uint64_t)i,
			 13600 + 5000 * (uint64_t)i); /* between two */
	}
	char *out = text_of(&b, NULL, false);
	expect(out, "ProfilerStep#*     20  ");
	/* mean (19 x 1000 + 3000) / 20; std of that */
	expect(out,
	       "steps (ProfilerStep#*): 20, mean 1.10 us, std 447 ns, min 1.00 us, p50 1.00 us, "
	       "p99 ");
	expect(out, ", max 3.00 us; calls a step: 1\n");
	expect(out, "slowest: step 12, 3.00 us, 1.90 us over the mean: work +1.90 us\n");
	expect_none(out, "warm-up");
	expect_none(out, "not recorded");
	expect_none(out, "uncertain");
	free(out);
}

/* A step with many calls is longer by their cost under the probes, which is not the program's
 * time. */
Test(steps, time_of_probes_is_told)
{
	const struct xsp_capture_probe dear = {.id = 1,
					       .module = UINT32_MAX,
					       .provider = "function",
					       .symbol = "",
					       .name = "work",
					       .exit_complete = true,
					       .entry_cost_ns = 40,
					       .exit_cost_ns = 60};
	struct builder b;
	char text[32];

	builder_begin(&b, 1);
	cr_assert_eq(xsp_capture_put_probe(b.w, &dear), 0);
	for (int i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "ProfilerStep#%d", i);
		put_range(&b, text, 10000 + 5000 * (uint64_t)i, 11000 + 5000 * (uint64_t)i, 300);
	}
	char *out = text_of(&b, NULL, false);
	expect(out, "; calls a step: 1; estimated 100 ns a step of it in probes\n");
	free(out);
}

/* Pitfall 6: the first steps are outliers. */
Test(steps, warm_up_is_left_out_and_said)
{
	struct builder b;
	char text[32];

	open_capture(&b);
	for (int i = 0; i < 12; i++) {
		snprintf(text, sizeof(text), "ProfilerStep#%d", i);
		put_range(&b, text, 100000 * (uint64_t)(i + 1),
			  100000 * (uint64_t)(i + 1) + (i == 0	 ? 50000
							: i == 1 ? 2100
							: i == 3 ? 9000
								 : 1000),
			  0);
	}
	char *out = text_of(&b, NULL, false);
	expect(out, "steps (ProfilerStep#*): 10, mean 1.80 us");
	expect(out, "left out as warm-up: step 0 (50.0 us), step 1 (2.10 us): more than twice the "
		    "median");
	expect(out, "slowest: step 3, 9.00 us"); /* none of the first ones in a row */
	free(out);
}

/* A thread whose steps are slow by nature does not warm up: the median is that of its own steps. */
Test(steps, a_slower_thread_is_not_warm_up)
{
	struct builder b;
	char text[32];

	open_capture(&b);
	for (int i = 0; i < 300; i++) {
		snprintf(text, sizeof(text), "ProfilerStep#%d", i);
		put_range(&b, text, 10000 + 2000 * (uint64_t)i, 11000 + 2000 * (uint64_t)i, 0);
	}
	b.tid++;
	for (int i = 0; i < 10; i++) {
		snprintf(text, sizeof(text), "ProfilerStep#%d", i);
		put_range(&b, text, 10000 + 70000 * (uint64_t)i, 40000 + 70000 * (uint64_t)i, 0);
	}
	char *out = text_of(&b, NULL, false);
	expect(out, "steps (ProfilerStep#*): 310, ");
	expect_none(out, "warm-up");
	free(out);
}

/* What an optimizer's step ends begins where the previous one ended; the first and the last are cut
 * off. */
Test(steps, between_the_ends_of_optimizer_steps)
{
	struct builder b;

	open_capture(&b);
	for (uint64_t i = 0; i < 6; i++) {
		put_call(&b, 10000 * i + 2000, 10000 * i + 2500);
		put_call(&b, 10000 * i + 3000, 10000 * i + 3500);
		put_range(&b, "Optimizer.step#SGD.step", 10000 * i + 8000, 10000 * i + 9000, 100);
		put_range(&b, "Optimizer.step#Adam.step", 10000 * i + 9300, 10000 * i + 9400, 0);
	}
	b.now = 70000;
	char *out = text_of(&b, NULL, true);
	expect(out, "\"marker\": \"Optimizer.step#SGD.step\"");
	expect(out,
	       "\"steps\": 5,\n    \"calls\": 25,\n    \"not_whole\": 2,\n    \"mean_ns\": 10000,\n"
	       "    \"std_ns\": 0");
	free(out);
}

/* Where the profiler begins later than the recording, its steps count; what was between optimizer
 * steps does not. */
Test(steps, spans_that_are_steps_come_before_ends)
{
	struct builder b;

	open_capture(&b);
	for (uint64_t i = 0; i < 6; i++) {
		put_call(&b, 10000 * i + 2000, 10000 * i + 2500);
		put_range(&b, "Optimizer.step#SGD.step", 10000 * i + 8000, 10000 * i + 9000, 0);
	}
	for (uint64_t i = 0; i < 3; i++)
		put_range(&b,
			  i == 0   ? "ProfilerStep#7"
			  : i == 1 ? "ProfilerStep#8"
				   : "ProfilerStep#9",
			  100000 + 5000 * i, 104000 + 5000 * i, 100);
	char *out = text_of(&b, NULL, true);
	expect(out, "\"marker\": \"ProfilerStep#*\"");
	expect(out,
	       "\"steps\": 3,\n    \"calls\": 3,\n    \"not_whole\": 0,\n    \"mean_ns\": 4000");
	free(out);
}

/* Pitfall 7: windows that were not recorded, and what was open at an end. */
Test(steps, only_what_was_recorded_whole_counts)
{
	struct builder b;

	open_capture(&b);
	cr_assert_eq(xsp_capture_put_window(b.w, &(struct xsp_capture_window){1000, 30000}), 0);
	cr_assert_eq(xsp_capture_put_window(b.w, &(struct xsp_capture_window){50000, 90000}), 0);
	put_range(&b, "Optimizer.step#SGD.step", 8000, 9000, 0);
	put_range(&b, "Optimizer.step#SGD.step", 18000, 19000, 0);
	put_range(&b, "Optimizer.step#SGD.step", 58000, 59000, 0); /* a pause lies between */
	put_range(&b, "Optimizer.step#SGD.step", 68000, 69000, 0);
	b.now = 90000;
	char *out = text_of(&b, NULL, false);
	expect(out, "steps (Optimizer.step#SGD.step): 2, mean 10.0 us");
	expect(out, "left out as not recorded from beginning to end: 3 steps");
	free(out);

	open_capture(&b);
	put_range(&b, "ProfilerStep#3", 2000, 3000, 0);
	b.now = 4000;
	name(&b, 77, "ProfilerStep#4", 0);
	begin(&b, 0, 9000, 77); /* open at the end */
	b.now = 9000;
	out = text_of(&b, NULL, false);
	expect(out, "steps (ProfilerStep#*): 1, mean 1.00 us, std -");
	expect(out, "left out as not recorded from beginning to end: 1 step\n");
	free(out);
}

/* Pitfall 8: with lost events counts are lower bounds. */
Test(steps, losses_are_said)
{
	struct builder b;

	open_capture(&b);
	put_range(&b, "Optimizer.step#SGD.step", 8000, 9000, 0);
	put_range(&b, "Optimizer.step#SGD.step", 18000, 19000, 0);
	cr_assert_eq(xsp_capture_put_stats(
			     b.w, &(struct xsp_capture_stats){.events = 4, .lost_entries = 2}),
		     0);
	char *out = text_of(&b, NULL, false);
	expect(out,
	       "uncertain: events were lost, calls a step are lower bounds, and two steps may have "
	       "been taken for one");
	free(out);
}

/* Pitfalls 2 and 3: one rank does not stand for all, and the steps of the slowest one are those
 * that count. */
Test(steps, the_slowest_thread_is_named)
{
	struct builder b;
	char text[32];

	open_capture(&b);
	for (int i = 0; i < 5; i++)
		for (uint32_t rank = 0; rank < 2; rank++) {
			snprintf(text, sizeof(text), "ProfilerStep#%d", i);
			b.pid = b.tid = 100 + rank;
			put_range(&b, text, 10000 * (uint64_t)(i + 1),
				  10000 * (uint64_t)(i + 1) + 1000 * (rank + 1), 0);
		}
	char *out = text_of(&b, NULL, false);
	expect(out,
	       "of 2 threads; the slowest,  (101), takes 2.00 us in the mean, the fastest,  (100), "
	       "1.00 us");
	free(out);
}

Test(steps, marked_by_name)
{
	struct builder b;

	open_capture(&b);
	put_range(&b, "turn 7", 2000, 3000, 100);
	put_range(&b, "turn 8", 4000, 6000, 100);
	put_range(&b, "turning", 7000, 8000, 0);
	put_range(&b, "ProfilerStep#1", 8000, 9000, 0);
	char *out = text_of(&b, "turn", false);
	expect(out, "steps (turn *): 2, mean 1.50 us");
	expect(out, "turn *              2"); /* one row, "turning" has its own */
	expect(out, "turning             1");
	free(out);

	open_capture(&b); /* names that differ by a number are one row only where that is certain */
	put_range(&b, "layer 1", 2000, 3000, 0);
	put_range(&b, "layer 2", 4000, 6000, 0);
	put_range(&b, "job#1", 7000, 8000, 0);
	put_range(&b, "job#2", 8000, 9000, 0);
	out = text_of(&b, NULL, false);
	expect(out, "layer 1  ");
	expect(out, "layer 2  ");
	expect(out, "job#*        2");
	expect_none(out, "steps (");
	free(out);
}
