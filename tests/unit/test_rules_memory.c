/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that only grows: in one place, by what allocators report, and in a process, by what the
 * kernel does. */

#include "analyze_check.h"

static void put_memory(struct builder *b, uint32_t probe, uint64_t address, uint64_t bytes)
{
	struct {
		struct xsp_event head;
		struct xsp_section section;
		uint64_t words[2];
	} e = {.head = {.kind = XSP_EVENT_MEMORY,
			.probe = probe,
			.sp = SP - 0x2000,
			.flags = XSP_EVENT_SECTIONS},
	       .section = {.type = XSP_SECTION_WORDS, .size = sizeof(e.section) + 16},
	       .words = {address, bytes}};

	builder_put(b, &e, sizeof(e));
}

/* Steps of 5 ms; each allocates in `work` (or in no call), and frees what `kept` does not keep. */
static struct xsp_report *allocating_in(uint64_t steps, uint64_t bytes, bool kept, bool in_call)
{
	struct builder b;
	char text[32];

	open_capture(&b, PROBES);
	for (uint64_t i = 0; i < steps; i++) {
		const uint64_t at = START + i * 5 * MS;
		snprintf(text, sizeof(text), "ProfilerStep#%u", (unsigned)i);
		enter_range(&b, text, at, SP);
		b.now = at + 100 * US;
		if (in_call)
			entry(&b, WORK, SP - 0x1000);
		put_memory(&b, NEW, 0x10000 + i * 0x100, bytes);
		b.now = at + 150 * US;
		if (!kept)
			put_memory(&b, DELETE, 0x10000 + i * 0x100, 0);
		if (in_call)
			leave(&b, WORK, SP - 0x1000);
		leave_range(&b, at + 5 * MS - 1, SP);
	}
	b.now = START + steps * 5 * MS;
	return report_of(&b, NULL);
}

/* A second of them. */
static struct xsp_report *allocating(uint64_t bytes, bool kept, bool in_call)
{
	return allocating_in(200, bytes, kept, in_call);
}

/* In 0.45 s it cannot be said whether memory grows, which does not mean that it does not; in 0.55 s
 * it is found. Memory that was freed at once is not judged either. */
Test(rules_memory, too_short_to_tell_a_leak)
{
	struct xsp_report *r = allocating_in(90, 20 << 20, true, true);

	expect_none(r, "leak");
	cr_assert_not_null(needs_of(r, "leak"));
	cr_expect_not_null(strstr(needs_of(r, "leak"), "half a second"), "%s", needs_of(r, "leak"));
	xsp_report_free(r);
	r = allocating_in(90, 20 << 20, false, true);
	cr_expect(had_no_data(r, "leak"));
	xsp_report_free(r);
	r = allocating_in(110, 20 << 20, true, true);
	expect(r, "leak", XSP_SEVERITY_HIGH, 1);
	cr_expect(!had_no_data(r, "leak"));
	xsp_report_free(r);
	r = allocating_in(110, 20 << 20, false, true);
	expect_none(r, "leak");
	cr_expect(!had_no_data(r, "leak"));
	xsp_report_free(r);
}

Test(rules_memory, leak)
{
	struct xsp_report *r = allocating(20 << 20, true, true);
	size_t count;
	const struct xsp_report_found *f = found(r, "leak", &count);

	cr_assert_eq(count, 1);
	cr_expect_eq(f->finding.severity, XSP_SEVERITY_HIGH);
	cr_expect_str_eq(f->finding.subject, "work");
	/* 20 MiB in 5 ms */
	expect_near(number_of(value_of(f->figures, "growth")), 4000.0 * (1 << 20), 40.0 * (1 << 20),
		    "growth");
	cr_expect_eq(number_of(value_of(f->figures, "alive")), 200);
	xsp_report_free(r);
	r = allocating(20 << 20, false, true);
	expect_clean(r);
	cr_expect(!had_no_data(r, "leak"));
	xsp_report_free(r);
}

/* 100 KiB a step, whether a step takes 2 ms or 20 ms: their mean is that of none. */
Test(rules_memory, leak_of_steps_of_different_lengths)
{
	struct builder b;
	char text[32];
	uint64_t at = START;

	open_capture(&b, PROBES);
	for (uint64_t i = 0; i < 600; i++) {
		const uint64_t ns = (i < 300 ? 2 : 20) * MS;
		snprintf(text, sizeof(text), "ProfilerStep#%u", (unsigned)i);
		enter_range(&b, text, at, SP);
		b.now = at + 100 * US;
		entry(&b, WORK, SP - 0x1000);
		put_memory(&b, NEW, 0x10000 + i * 0x100, 100 << 10);
		b.now = at + 150 * US;
		leave(&b, WORK, SP - 0x1000);
		leave_range(&b, at + ns - 1, SP);
		at += ns;
	}
	b.now = at;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "leak", XSP_SEVERITY_MEDIUM, 1);
	double grows, least;
	const char *by = strstr(f->finding.title, "by ");
	cr_assert_eq(sscanf(by, "by %lf KiB a step, at least %lf KiB", &grows, &least), 2, "%s",
		     f->finding.title);
	expect_near(grows, 100, 1, f->finding.title);
	cr_expect(least <= 100 && least > 98, "%s", f->finding.title);
	xsp_report_free(r);
}

/* Each range allocates, and so is a place of its own. */
Test(rules_memory, more_places_than_are_followed)
{
	struct builder b;
	char text[32];
	const char *const *notes;

	open_capture(&b, PROBES);
	for (uint64_t i = 0; i < 16384 + 6; i++) {
		snprintf(text, sizeof(text), "place %u", (unsigned)i);
		enter_range(&b, text, START + i * 1000, SP);
		put_memory(&b, NEW, 0x10000 + i * 0x100, 64);
		leave_range(&b, START + i * 1000 + 900, SP);
	}
	const char *said = "whether memory grows is followed at 16,384 places: of the 6 that came "
			   "later it is not known";
	builder_end(&b);
	char *summary = summary_of(b.path);
	cr_expect(strstr(summary, said) != NULL);
	free(summary);
	struct xsp_report *r = report_of(&b, NULL);
	const size_t n = xsp_report_notes(xsp_report_find_section(r, "memory"), &notes);
	cr_assert_geq(n, 1);
	cr_expect_str_eq(notes[n - 1], said);
	xsp_report_free(r);
}

/* A hundred looks: without --memory, what the kernel says of the process. */
static struct xsp_report *resident(uint64_t (*bytes)(unsigned look), uint64_t every_ns)
{
	struct builder b;

	open_capture(&b, BATCH);
	for (unsigned i = 0; i < 100; i++) {
		struct {
			struct xsp_event head;
			struct xsp_section section;
			struct xsp_process_memory memory;
		} e = {.head = {.kind = XSP_EVENT_MEMORY,
				.probe = UINT32_MAX,
				.flags = XSP_EVENT_SECTIONS},
		       .section = {.type = XSP_SECTION_PROCESS_MEMORY,
				   .size = sizeof(e.section) + sizeof(e.memory)},
		       .memory = {.resident = 100 << 20, .anonymous = bytes(i)}};
		b.now = START + i * every_ns;
		if (i == 0 || bytes(i) != bytes(i - 1)) /* what has not changed is not reported */
			builder_put(&b, &e, sizeof(e));
	}
	b.now = START + 100 * every_ns;
	return report_of(&b, NULL);
}

static uint64_t leaking(unsigned look)
{
	return (10 << 20) + look * (200ULL << 10);
}

static uint64_t loading(unsigned look)
{
	return (10 << 20) + (look < 60 ? look : 60) * (200ULL << 10);
}

static uint64_t creeping(unsigned look)
{
	return (100 << 20) + look * (20ULL << 10);
}

static uint64_t trickling(unsigned look)
{
	return (10 << 20) + look * (4ULL << 10);
}

Test(rules_memory, memory_of_a_process_that_only_grows)
{
	/* in ten seconds a cache that fills looks the same */
	static const struct {
		uint64_t every_ns;
		enum xsp_severity severity;
	} cases[] = {{1000 * MS, XSP_SEVERITY_MEDIUM}, {100 * MS, XSP_SEVERITY_NOTE}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct xsp_report *r = resident(leaking, cases[i].every_ns);
		const double grows = (200 << 10) * 1e9 / (double)cases[i].every_ns;
		size_t count;
		const struct xsp_report_found *f = found(r, "leak", &count);
		cr_assert_eq(count, 1);
		cr_expect_eq(f->finding.severity, cases[i].severity);
		expect_near(number_of(value_of(f->figures, "growth")), grows, grows / 100,
			    "growth");
		cr_expect_not_null(strstr(f->finding.advice, "--memory"));
		cr_expect_not_null(f->finding.uncertain);
		/* the first screen says it all the same */
		const char *const *notes;
		const size_t n = xsp_report_notes(xsp_report_find_section(r, "memory"), &notes);
		cr_expect_eq(n > 0 && strncmp(notes[n - 1], "memory grows by 1.95 MiB a second",
					      33) == 0,
			     cases[i].severity == XSP_SEVERITY_NOTE);
		xsp_report_free(r);
	}
}

/* Two ranks, one of which grows by 200 KiB in each of its own steps of 100 ms: the steps of the
 * other do not count. */
Test(rules_memory, memory_of_one_of_two_ranks)
{
	struct builder b;
	char text[32];

	open_capture(&b, BATCH);
	for (unsigned i = 0; i < 100; i++) {
		struct {
			struct xsp_event head;
			struct xsp_section section;
			struct xsp_process_memory memory;
		} e = {.head = {.kind = XSP_EVENT_MEMORY,
				.probe = UINT32_MAX,
				.flags = XSP_EVENT_SECTIONS},
		       .section = {.type = XSP_SECTION_PROCESS_MEMORY,
				   .size = sizeof(e.section) + sizeof(e.memory)},
		       .memory = {.resident = 100 << 20, .anonymous = leaking(i)}};
		snprintf(text, sizeof(text), "ProfilerStep#%u", i);
		for (b.pid = b.tid = 100; b.pid < 300; b.pid += 100, b.tid = b.pid)
			enter_range(&b, text, START + i * 100 * MS, SP);
		b.pid = b.tid = 100;
		builder_put(&b, &e, sizeof(e));
		for (b.pid = b.tid = 100; b.pid < 300; b.pid += 100, b.tid = b.pid)
			leave_range(&b, START + (i + 1) * 100 * MS - 1, SP);
	}
	b.pid = b.tid = 100;
	b.now = START + 10000 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	size_t count;
	const struct xsp_report_found *f = found(r, "leak", &count);
	double grows, least;
	cr_assert_eq(count, 1);
	cr_assert_eq(sscanf(strstr(f->finding.title, "by "), "by %lf KiB a step, at least %lf KiB",
			    &grows, &least),
		     2, "%s", f->finding.title);
	expect_near(grows, 200, 4, f->finding.title);
	cr_expect(least <= 200 && least > 190, "%s", f->finding.title);
	xsp_report_free(r);
}

/* What is loaded for six seconds of ten, 200 KiB a second of 100 MiB, and 40 KiB a second. */
Test(rules_memory, memory_of_clean_processes)
{
	uint64_t (*const clean[])(unsigned) = {loading, creeping, trickling};

	for (size_t i = 0; i < sizeof(clean) / sizeof(clean[0]); i++) {
		struct xsp_report *r = resident(clean[i], 1000 * MS);
		expect_none(r, "leak");
		cr_expect(had_no_data(r, "leak"));
		xsp_report_free(r);
	}
}

/* What a loss kept with its graph takes; 25 MiB a second are no small matter. */
Test(rules_memory, leak_of_small_blocks)
{
	struct xsp_report *r = allocating(128 << 10, true, true);
	const struct xsp_report_found *f = expect(r, "leak", XSP_SEVERITY_MEDIUM, 1);

	expect_near(number_of(value_of(f->figures, "growth")), 25.0 * (1 << 20), 0.3 * (1 << 20),
		    "growth");
	xsp_report_free(r);
	r = allocating(16 << 10, true, true);
	expect_none(r, "leak");
	xsp_report_free(r);
}

/* Steps whose names only number are one place: each allocates once, and together they leak. */
Test(rules_memory, leak_in_the_step_itself)
{
	struct xsp_report *r = allocating(20 << 20, true, false);
	const struct xsp_report_found *f = expect(r, "leak", XSP_SEVERITY_HIGH, 1);
	const struct xsp_report_table *t =
		xsp_report_find_table(xsp_report_find_section(r, "memory"), "sites");

	cr_expect_str_eq(f->finding.subject, "ProfilerStep#*");
	cr_expect_eq(number_of(value_of(f->figures, "alive")), 200);
	cr_assert_eq(xsp_report_row_count(t), 1);
	cr_expect_eq(xsp_report_row_at(t, 0)[4].integer, 200, "allocations");
	xsp_report_free(r);
}
