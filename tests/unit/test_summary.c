/* SPDX-License-Identifier: BSD-2-Clause */
/* The summary: its numbers against numbers counted here, its text, and that it hides no loss. */
#include "capture_builder.h"

#include "base/histogram.h"
#include "analysis/names/summary.h"
#include "base/units.h"

/* ---- histogram and units ---- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

Test(summary, percentiles_within_one_percent)
{
	static uint64_t values[20000];
	static const double shares[] = {0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1};
	uint64_t random = 1;
	for (size_t n = 1; n <= 20000; n = n * 3 + 1) {
		struct xsp_histogram h = {0};
		for (size_t i = 0; i < n; i++) {
			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			values[i] = random >> (random >> 58); /* of every size */
			cr_assert_eq(xsp_histogram_add(&h, values[i]), 0);
		}
		qsort(values, n, sizeof(*values), by_value);
		for (size_t k = 0; k < 8; k++) {
			double wanted = shares[k] * (double)n;
			size_t rank = (size_t)wanted;
			if ((double)rank < wanted || rank == 0)
				rank++;
			double truth = (double)values[rank - 1];
			double got = (double)xsp_histogram_quantile(&h, shares[k]);
			double off = got > truth ? got - truth : truth - got;
			cr_expect_leq(off, truth * 0.01, "%zu values, share %f: %f, not %f", n,
				      shares[k], got, truth);
		}
		xsp_histogram_clear(&h);
	}
	struct xsp_histogram none = {0};
	cr_expect_eq(xsp_histogram_quantile(&none, 0.5), 0);
}

Test(summary, extreme_values)
{
	struct xsp_histogram h = {0};
	for (int i = 0; i < 10; i++)
		cr_assert_eq(xsp_histogram_add(&h, i < 5 ? 0 : UINT64_MAX), 0);
	cr_expect_eq(xsp_histogram_quantile(&h, 0.5), 0);
	cr_expect_geq(xsp_histogram_quantile(&h, 0.99), UINT64_MAX / 128 * 127);
	xsp_histogram_clear(&h);
}

/* Steps of the histogram are wide; a quantile still lies among the values. */
Test(summary, percentiles_within_least_and_greatest)
{
	struct xsp_histogram h = {0};
	for (int i = 0; i < 40; i++)
		cr_assert_eq(xsp_histogram_add(&h, 100000), 0);
	cr_expect_eq(xsp_histogram_quantile(&h, 0.5), 100000);
	cr_expect_eq(xsp_histogram_quantile(&h, 0.99), 100000);
	xsp_histogram_clear(&h);
	for (int i = 0; i < 40; i++)
		cr_assert_eq(xsp_histogram_add(&h, 65537), 0); /* the second of its step's 1024 */
	cr_expect_eq(xsp_histogram_quantile(&h, 0.5), 65537);
	xsp_histogram_clear(&h);
}

static void expect_ns(uint64_t ns, const char *text)
{
	char buf[XSP_UNITS_SIZE];
	cr_expect_str_eq(xsp_format_ns(buf, ns), text);
}

Test(summary, numbers_for_people)
{
	char buf[XSP_UNITS_SIZE];
	expect_ns(0, "0 ns");
	expect_ns(999, "999 ns");
	expect_ns(1000, "1.00 us");
	expect_ns(1234567, "1.23 ms");
	expect_ns(45678901, "45.7 ms");
	expect_ns(999960000, "1.00 s");
	expect_ns(3600000000000, "3600 s");
	cr_expect_str_eq(xsp_format_count(buf, 0), "0");
	cr_expect_str_eq(xsp_format_count(buf, 999), "999");
	cr_expect_str_eq(xsp_format_count(buf, 1234567), "1,234,567");
	cr_expect_str_eq(xsp_format_count(buf, UINT64_MAX), "18,446,744,073,709,551,615");
	cr_expect_str_eq(xsp_format_bytes(buf, 1536), "1.50 KiB");
}

static void expect_printable(const char *text, size_t columns, const char *wanted)
{
	char buf[128];
	size_t n = xsp_printable(buf, sizeof(buf), text, columns);
	cr_expect_str_eq(buf, wanted);
	cr_expect_eq(n, xsp_printable(NULL, 0, text, columns));
	if (columns > 0)
		cr_expect_leq(n, columns);
}

Test(summary, names_cannot_harm_a_terminal)
{
	expect_printable("plain", 0, "plain");
	expect_printable("\033[2J\007x", 0, "?[2J?x");
	expect_printable("a\xffz", 0, "a?z");
	expect_printable("\xc2\x9b"
			 "31m",
			 0, "??31m"); /* C1 control */
	expect_printable("\xe2\x80\xae"
			 "x",
			 0, "???x"); /* right-to-left override */
	expect_printable("\xc0\x8a", 0, "??"); /* overlong newline */
	expect_printable("\xf4\x90\x80\x80", 0, "????"); /* beyond Unicode */
	expect_printable("caf\xc3\xa9", 0, "caf\xc3\xa9");
	expect_printable("caf\xc3", 0, "caf?");
	expect_printable("0123456789", 5,
			 "01\xe2\x80\xa6"
			 "89");
	expect_printable("0123456789", 10, "0123456789");
	expect_printable("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 3, "\xc3\xa9\xe2\x80\xa6\xc3\xa9");
}

/* ---- rows ---- */

struct table {
	struct result r;
	struct xsp_summary *s;
	const struct xsp_summary_row *rows;
	size_t count;
};

static void sum_up(struct builder *b, struct table *t)
{
	struct xsp_error err = {0};
	builder_end(b);
	*t = (struct table){0};
	cr_assert_eq(xsp_capture_open(b->path, &t->r.reader, &err), 0);
	cr_assert_eq(xsp_timeline_new(t->r.reader, &t->r.timeline, &err), 0);
	cr_assert_eq(xsp_summary_new(t->r.timeline, &t->s), 0);
	struct xsp_timeline_sink sink = xsp_summary_sink(t->s);
	cr_assert_eq(xsp_timeline_run(t->r.timeline, &sink, 1, &err), 0);
	t->count = xsp_summary_rows(t->s, &t->rows);
	unlink(b->path);
}

static void table_free(struct table *t)
{
	xsp_summary_free(t->s);
	result_free(&t->r);
}

static char *text_of(struct table *t, const struct xsp_summary_print *how)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	cr_assert_not_null(f);
	cr_assert_eq(xsp_summary_write(t->s, t->r.reader, f, how), 0);
	fclose(f);
	return text;
}

static void expect_text(struct table *t, const char *part)
{
	char *text = text_of(t, &(struct xsp_summary_print){0});
	cr_expect_not_null(strstr(text, part), "\"%s\" is not in:\n%s", part, text);
	free(text);
}

static const struct xsp_summary_row *row_named(const struct table *t, const char *n)
{
	for (size_t i = 0; i < t->count; i++) {
		if (strcmp(xsp_timeline_name(t->r.timeline, t->rows[i].name), n) == 0)
			return &t->rows[i];
	}
	cr_assert_fail("no row %s", n);
	return NULL;
}

Test(summary, rows_with_recursion)
{
	struct builder b;
	struct table t;
	builder_begin(&b, 3);
	b.now = 1000;
	entry(&b, 0, 9000); /* f0 [1000, 2000] */
	b.now = 1100;
	entry(&b, 1, 8000); /* f1 [1100, 1700] */
	b.now = 1200;
	entry(&b, 1, 7000); /* f1 in f1 [1200, 1300] */
	b.now = 1300;
	leave(&b, 1, 7000);
	b.now = 1700;
	leave(&b, 1, 8000);
	b.now = 2000;
	leave(&b, 0, 9000);
	entry(&b, 2, 9000); /* open at the end, 2001 to 3000 */
	b.now = 3000;
	sum_up(&b, &t);
	cr_assert_eq(t.count, 3);
	const struct xsp_summary_row *f1 = row_named(&t, "f1"), *f2 = row_named(&t, "f2");
	cr_expect_eq(f1->calls, 2);
	cr_expect_eq(f1->total_ns, 600, "recursion counts once");
	cr_expect_eq(f1->self_ns, 600);
	cr_expect_eq(f1->mean_ns, 350);
	cr_expect(f1->min_ns == 100 && f1->p50_ns == 100 && f1->p99_ns == 600 && f1->max_ns == 600);
	cr_expect_eq(row_named(&t, "f0")->self_ns, 400);
	cr_expect_eq(row_named(&t, "f0")->total_ns, 1000);
	cr_expect_eq(f2->unfinished, 1);
	cr_expect_eq(f2->total_ns + f2->self_ns + f2->measured, 0, "no duration is known");
	cr_expect_eq(t.rows[0].name, f1->name, "most self time first");
	cr_expect_eq(t.rows[2].name, f2->name, "what is not known comes last");
	expect_text(&t, "still open at the end of the recording or of their thread: 1");
	table_free(&t);
}

Test(summary, recursion_whose_outermost_call_has_no_end)
{
	struct builder b;
	struct table t;
	builder_begin(&b, 2);
	b.now = 1000;
	entry(&b, 0, 9000); /* f0, f1: open at the end */
	b.now = 1100;
	entry(&b, 1, 8000);
	b.now = 1200;
	entry(&b, 1, 7000); /* [1200, 1500] */
	b.now = 1300;
	entry(&b, 1, 6000); /* [1300, 1400] */
	b.now = 1400;
	leave(&b, 1, 6000);
	b.now = 1500;
	leave(&b, 1, 7000);
	b.now = 1600;
	entry(&b, 1, 7000); /* [1600, 1900] */
	b.now = 1900;
	leave(&b, 1, 7000);
	b.now = 3000;
	sum_up(&b, &t);
	const struct xsp_summary_row *f1 = row_named(&t, "f1");
	cr_expect_eq(f1->calls, 4);
	cr_expect_eq(f1->unfinished, 1);
	cr_expect_eq(f1->measured, 3);
	cr_expect_eq(f1->total_ns, 600, "the outermost that ended: %lu", f1->total_ns);
	cr_expect(f1->outermost > 0);
	cr_expect_eq(f1->self_ns, 600, "no more than the total");
	cr_expect_eq(row_named(&t, "f0")->outermost, 0, "another name's");
	table_free(&t);
}

/* ---- text ---- */

static void put_stats(struct builder *b, const struct xsp_capture_stats *s)
{
	cr_assert_eq(xsp_capture_put_stats(b->w, s), 0);
}

/* The kernel reported too late that the second call ran again: only the first one's CPU time is
 * certain. */
Test(summary, time_on_a_cpu_that_is_known_of_some_calls)
{
	struct xsp_event_wait wait = {.head = {.kind = XSP_EVENT_WAIT, .probe = UINT32_MAX},
				      .syscall = -1,
				      .flags = XSP_WAIT_SHORT | XSP_WAIT_UNSEEN_RETURN};
	struct builder b;
	struct table t;

	builder_begin(&b, 1);
	cr_assert_eq(xsp_capture_put_info(b.w, "waits", "10"), 0);
	for (int i = 0; i < 2; i++) {
		const uint64_t begin = 1000000 + (uint64_t)i * 5000000;
		b.now = begin;
		entry(&b, 0, 9000);
		b.now = wait.left_ns = begin + 1000000;
		if (i == 1)
			builder_put(&b, &wait, sizeof(wait));
		b.now = begin + 2000000;
		leave(&b, 0, 9000);
	}
	sum_up(&b, &t);
	cr_expect_eq(row_named(&t, "f0")->cpu_known, false);
	cr_expect_eq(row_named(&t, "f0")->total_ns, 4000000);
	expect_text(&t, ">=2.00 ms");
	table_free(&t);
}

Test(summary, nothing_lost_is_said)
{
	struct builder b;
	struct table t;
	builder_begin(&b, 1);
	entry(&b, 0, 4096);
	leave(&b, 0, 4096);
	put_stats(&b, &(struct xsp_capture_stats){
			      .events = 2, .probes_cost_ns = 1, .recorder_cpu_ns = 2000});
	sum_up(&b, &t);
	expect_text(&t, "nothing was lost\n");
	expect_text(&t, "1 span of 1 name in 1 thread");
	expect_text(&t, "50.00 % of one core"); /* 1 ns of the 2 recorded */
	expect_text(&t, "xsptrace itself: 2.00 us of CPU time");
	table_free(&t);
}

Test(summary, what_is_missing_besides_events_is_said)
{
	struct builder b;
	struct table t;
	builder_begin(&b, 1);
	entry(&b, 0, 4096);
	leave(&b, 0, 4096);
	put_stats(&b, &(struct xsp_capture_stats){.events = 2});
	cr_assert_eq(xsp_capture_put_info(b.w, "sites refused", "3 by the \033kernel"), 0);
	cr_assert_eq(xsp_capture_put_info(b.w, "ended early", "no descriptors"), 0);
	sum_up(&b, &t);
	expect_text(&t, "no event was lost\n");
	expect_text(&t, "sites refused: 3 by the ?kernel\n");
	expect_text(&t, "ended early: no descriptors\n");
	table_free(&t);
}

Test(summary, a_call_of_one_hit_has_no_duration)
{
	struct builder b;
	struct table t;
	builder_begin(&b, 2);
	entry(&b, 0, 4096);
	builder_event(&b, XSP_EVENT_POINT, 1, 4096 - 16, XSP_EVENT_SP_EXACT);
	builder_event(&b, XSP_EVENT_POINT, 1, 4096 - 16, XSP_EVENT_SP_EXACT);
	leave(&b, 0, 4096);
	sum_up(&b, &t);
	cr_expect_eq(row_named(&t, "f1")->calls, 2);
	cr_expect_eq(row_named(&t, "f1")->points, 2);
	cr_expect_eq(row_named(&t, "f0")->points, 0);
	expect_text(
		&t,
		"calls seen at a single instruction (most often a jump to another function), counted without a duration: 2\n");
	char *text = text_of(&t, &(struct xsp_summary_print){0});
	cr_expect_null(strstr(text, " 0 ns"), "an unmeasured duration is shown: %s", text);
	free(text);
	table_free(&t);
}

/* A span whose end was not seen has no duration, even if other spans of the name have one. */
Test(summary, only_what_has_an_end_counts)
{
	struct builder b;
	struct table t;
	builder_begin(&b, 3);
	b.now = 1000;
	entry(&b, 0, 9000); /* f0 [1000, 1100] */
	b.now = 1100;
	leave(&b, 0, 9000);
	b.now = 2000;
	entry(&b, 0, 9000); /* its exit is lost */
	entry(&b, 2, 8000); /* so is this one's */
	b.now = 9000;
	entry(&b, 1, 9000); /* f1 [9000, 9040] */
	b.now = 9040;
	leave(&b, 1, 9000);
	entry(&b, 0, 9000); /* open at the end */
	b.now = 50000;
	sum_up(&b, &t);
	const struct xsp_summary_row *f0 = row_named(&t, "f0"), *f2 = row_named(&t, "f2");
	cr_expect_eq(f0->calls, 3);
	cr_expect_eq(f0->measured, 1);
	cr_expect(f0->total_ns == 100 && f0->self_ns == 100 && f0->mean_ns == 100 &&
		  f0->max_ns == 100);
	cr_expect_eq(f2->total_ns + f2->self_ns + f2->measured, 0);
	cr_expect_eq(t.rows[2].name, f2->name);
	expect_text(&t, "f2        1       -       -       -       -       -       -\n");
	table_free(&t);
}

/* Probe 1, which costs so much. */
static void put_trivial(struct builder *b, uint32_t entry_ns, uint32_t exit_ns)
{
	const struct xsp_capture_probe p = {.id = 1,
					    .module = UINT32_MAX,
					    .provider = "function",
					    .symbol = "",
					    .name = "trivial",
					    .entry_cost_ns = entry_ns,
					    .exit_cost_ns = exit_ns};

	cr_assert_eq(xsp_capture_put_probe(b->w, &p), 0);
}

/* A function that costs nothing but its probe does not come before one that costs time. */
Test(summary, ranked_without_probes)
{
	struct builder b;
	struct table t;
	builder_begin(&b, 1);
	put_trivial(&b, 0, 990);
	entry(&b, 1, 4096);
	b.now += 1000;
	leave(&b, 1, 4096);
	entry(&b, 0, 4096);
	b.now += 500;
	leave(&b, 0, 4096);
	sum_up(&b, &t);
	cr_expect_eq(t.rows[0].name, row_named(&t, "f0")->name);
	cr_expect_eq(row_named(&t, "trivial")->self_ns, 1001, "shown as it was measured");
	table_free(&t);
}

Test(summary, mostly_probes_inside_is_said)
{
	struct builder b;
	struct table t;
	builder_begin(&b, 1);
	put_trivial(&b, 500, 490);
	entry(&b, 0, 4096);
	entry(&b, 1, 2048);
	b.now += 1000;
	leave(&b, 1, 2048);
	leave(&b, 0, 4096);
	sum_up(&b, &t);
	expect_text(&t, "f0 *");
	expect_text(&t, "* in most calls most of the time is that of probes inside");
	table_free(&t);
}

Test(summary, every_loss_is_said)
{
	struct builder b;
	struct table t;
	builder_begin(&b, 2);
	leave(&b, 1, 4096);
	entry(&b, 1, 4096);
	entry(&b, 0, 4096);
	leave(&b, 0, 4096);
	leave(&b, 1, 4096 - 64);
	begin(&b, 1, 4096, 42);
	put_stats(&b, &(struct xsp_capture_stats){.events = 4,
						  .lost_entries = 11,
						  .lost_exits = 12,
						  .lost_other = 13,
						  .lost_names = 14,
						  .missed_hits = 15,
						  .untracked = 16,
						  .filtered = 17});
	struct xsp_capture_lost lost[] = {{.probe = 0, .entries = 1},
					  {.probe = 1, .entries = 10, .exits = 12}};
	cr_assert_eq(xsp_capture_put_lost(b.w, &lost[0]), 0);
	cr_assert_eq(xsp_capture_put_lost(b.w, &lost[1]), 0);
	sum_up(&b, &t);
	expect_text(&t,
		    "lost: 11 entries, 12 exits, 13 other events, 14 names, 15 hits missed by the "
		    "kernel, 16 calls not followed");
	expect_text(&t, "most of f1: entries 10, exits 12 (2 functions have losses)");
	expect_text(&t, "held back by filters: 17");
	expect_text(&t, "gone: 1\n");
	expect_text(&t, "calls that had begun before they were recorded, not shown: 1\n");
	expect_text(&t, "exits without an entry (lost entries): 1\n");
	expect_text(&t, "names that never arrived: 1");
	char *text = text_of(&t, &(struct xsp_summary_print){0});
	cr_expect_null(strstr(text, "nothing was lost"));
	cr_expect_null(strchr(text, '\033'), "no colour in a pipe");
	free(text);
	table_free(&t);
}

Test(summary, a_damaged_capture_is_said)
{
	struct builder b;
	struct table t;
	struct xsp_error err = {0};
	builder_begin(&b, 1);
	for (int i = 0; i < 3; i++) {
		entry(&b, 0, 4096);
		leave(&b, 0, 4096);
		cr_assert_eq(xsp_capture_flush(b.w), 0);
	}
	xsp_capture_abandon(b.w);
	FILE *f = fopen(b.path, "r+e");
	fseek(f, -10, SEEK_END);
	fputs("#", f);
	fseek(f, 0, SEEK_END);
	fputs("torn", f);
	fclose(f);
	t = (struct table){0};
	cr_assert_eq(xsp_capture_open(b.path, &t.r.reader, &err), 0);
	cr_assert_eq(xsp_timeline_new(t.r.reader, &t.r.timeline, &err), 0);
	cr_assert_eq(xsp_summary_new(t.r.timeline, &t.s), 0);
	struct xsp_timeline_sink sink = xsp_summary_sink(t.s);
	cr_assert_eq(xsp_timeline_run(t.r.timeline, &sink, 1, &err), 0);
	expect_text(&t, "the capture is damaged: 1 chunk broken or missing, 2 events not readable");
	expect_text(&t, "the capture is cut off: its last 4 B are no whole chunk");
	expect_text(&t, "the capture has no end");
	expect_text(&t, "whether events were lost is not known");
	table_free(&t);
	unlink(b.path);
}

Test(summary, the_table_fits_its_width)
{
	struct builder b;
	struct table t;
	char long_name[500];
	builder_begin(&b, 3);
	memset(long_name, 'n', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	memcpy(long_name, "first", 5);
	struct xsp_capture_probe p = {
		.id = 3, .module = UINT32_MAX, .symbol = "", .name = long_name};
	cr_assert_eq(xsp_capture_put_probe(b.w, &p), 0);
	for (uint32_t i = 0; i < 4; i++) {
		entry(&b, i, 4096);
		leave(&b, i, 4096);
	}
	sum_up(&b, &t);
	for (int width = 80; width <= 200; width += 13) {
		char *text = text_of(&t, &(struct xsp_summary_print){.width = width, .limit = 2});
		char *rest = text;
		for (int line = 0; line < 3; line++) {
			char *one = strsep(&rest, "\n");
			cr_expect_leq(xsp_printable(NULL, 0, one, 0), (size_t)width, "%s", one);
		}
		cr_expect_not_null(strstr(rest, "... and 2 more names"));
		free(text);
	}
	char *narrow = text_of(&t, &(struct xsp_summary_print){.width = 60});
	cr_expect_not_null(strstr(narrow, "not shown, as the terminal is narrow: p50"), "%s",
			   narrow);
	free(narrow);
	expect_text(&t, long_name); /* not cut in a pipe */
	table_free(&t);
}

/* ---- gaps ---- */

#define MAIN 0x7ffe00000000ULL
#define FIBER 0x55550000f000ULL

static void enter_at(struct builder *b, uint32_t probe, uint64_t sp, uint64_t ms)
{
	b->now = 1000 + ms * 1000000;
	entry(b, probe, sp);
}

static void leave_at(struct builder *b, uint32_t probe, uint64_t sp, uint64_t ms)
{
	b->now = 1000 + ms * 1000000;
	leave(b, probe, sp);
}

static unsigned gaps_in(const char *text)
{
	unsigned n = 0;

	for (; (text = strstr(text, "without a span: ")) != NULL; text++)
		n++;
	return n;
}

/* A fiber's call sleeps while its thread's own stack is used: the thread was never without a span
 * then. */
Test(summary, no_gap_while_another_stack_has_a_span)
{
	struct builder b;
	struct table t;

	builder_begin(&b, 3);
	cr_assert_eq(xsp_capture_put_info(b.w, "waits", "10"), 0);
	enter_at(&b, 0, MAIN, 0);
	leave_at(&b, 0, MAIN, 1);
	enter_at(&b, 1, FIBER, 10);
	for (unsigned ms = 20; ms <= 60; ms += 40) {
		enter_at(&b, 2, MAIN, ms);
		leave_at(&b, 2, MAIN, ms + 1);
	}
	leave_at(&b, 1, FIBER, 100);
	enter_at(&b, 0, MAIN, 150);
	leave_at(&b, 0, MAIN, 151);
	sum_up(&b, &t);
	char *text = text_of(&t, &(struct xsp_summary_print){0});
	cr_expect_not_null(strstr(text, "for 50.0 ms from 0.100 s on"), "%s", text);
	cr_expect_not_null(strstr(text, "for 9.00 ms from 0.001 s on"), "%s", text);
	cr_expect_eq(gaps_in(text), 2, "%s", text);
	free(text);
	table_free(&t);
}

/* The stack that was seen first is row 0, whichever it is: calls on the other one fill the time,
 * too. */
Test(summary, no_gap_that_is_full_of_spans_of_another_row)
{
	struct builder b;
	struct table t;

	builder_begin(&b, 3);
	cr_assert_eq(xsp_capture_put_info(b.w, "waits", "10"), 0);
	enter_at(&b, 0, FIBER, 0);
	enter_at(&b, 1, MAIN, 10);
	enter_at(&b, 2, FIBER - 100, 11);
	leave_at(&b, 2, FIBER - 100, 12);
	leave_at(&b, 1, MAIN, 20);
	leave_at(&b, 0, FIBER, 21);
	enter_at(&b, 0, FIBER, 30);
	enter_at(&b, 1, MAIN, 40);
	leave_at(&b, 0, FIBER, 41);
	leave_at(&b, 1, MAIN, 45);
	for (unsigned ms = 45; ms < 100; ms += 5) {
		enter_at(&b, 1, MAIN, ms);
		leave_at(&b, 1, MAIN, ms + 5);
	}
	enter_at(&b, 0, FIBER, 100);
	leave_at(&b, 0, FIBER, 101);
	sum_up(&b, &t);
	char *text = text_of(&t, &(struct xsp_summary_print){0});
	cr_expect_not_null(strstr(text, "for 9.00 ms from 0.021 s on"), "%s", text);
	cr_expect_eq(gaps_in(text), 1, "%s", text);
	free(text);
	table_free(&t);
}
