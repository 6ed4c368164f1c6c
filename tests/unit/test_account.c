/* SPDX-License-Identifier: BSD-2-Clause */
/* The account: every nanosecond of a thread is in one row. Expected figures are counted by hand. */
#include "base/text.h"
#include "model/account/account.h"
#include "waits_builder.h"

/* The thread runs again at `back`. */
static void wait_of(struct builder *b, uint64_t left, uint64_t woken, uint64_t back,
		    uint64_t short_ns, uint8_t why)
{
	struct xsp_event_wait e = {.head = {.kind = XSP_EVENT_WAIT, .probe = NO_PROBE},
				   .left_ns = left,
				   .woken_ns = woken,
				   .short_ns = short_ns,
				   .syscall = 202,
				   .why = why};
	b->now = back;
	builder_put(b, &e, sizeof(e));
}

/* The thread's time ends: off a CPU for these sums in all. */
static void times_of(struct builder *b, uint64_t since, uint64_t until, uint64_t ready,
		     uint64_t lock)
{
	struct xsp_event_times e = {.head = {.kind = XSP_EVENT_TIMES, .probe = NO_PROBE},
				    .since_ns = since,
				    .runnable_ns = ready,
				    .running_ns = until - since - ready - lock};
	e.blocked_ns[XSP_WAIT_LOCK] = lock;
	b->now = until;
	builder_put(b, &e, sizeof(e));
}

static void at(struct builder *b, uint64_t now, enum xsp_event_kind kind, uint32_t probe,
	       uint64_t sp)
{
	b->now = now;
	builder_event(b, kind, probe, sp, XSP_EVENT_SP_EXACT);
}

/* A range of that name, as a program opens it. */
static void range(struct builder *b, uint64_t now, const char *text)
{
	b->now = now;
	if (text == NULL) {
		end(b, 2, SP + 64);
		return;
	}
	name(b, xsp_text_hash(text, strlen(text)), text, 0);
	b->now = now;
	begin(b, 2, SP + 64, xsp_text_hash(text, strlen(text)));
}

/* ---- what the account says ---- */

struct counted {
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	struct xsp_account *account;
	const struct xsp_account_family *families;
	size_t count;
};

static void count(struct builder *b, struct counted *c, const struct xsp_cut *cut)
{
	struct xsp_error err = {0};

	builder_end(b);
	*c = (struct counted){0};
	cr_assert_eq(xsp_capture_open(b->path, &c->reader, &err), 0, "%s", err.text);
	unlink(b->path);
	cr_assert_eq(xsp_timeline_new(c->reader, &c->timeline, &err), 0, "%s", err.text);
	if (cut != NULL)
		cr_assert_eq(xsp_timeline_cut(c->timeline, cut), 0);
	cr_assert_eq(xsp_account_new(c->timeline, c->reader, &c->account), 0);
	cr_assert_not_null(c->account);
	const struct xsp_timeline_sink sink = xsp_account_sink(c->account);
	cr_assert_eq(xsp_timeline_run(c->timeline, &sink, 1, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_account_end(c->account), 0);
	c->count = xsp_account_families(c->account, &c->families);
}

static void clear(struct counted *c)
{
	xsp_account_free(c->account);
	xsp_timeline_free(c->timeline);
	xsp_capture_close(c->reader);
}

/* The sum of the first family's rows of a kind, at a place ("": not known; NULL: any). */
static int64_t ns_of(const struct counted *c, enum xsp_account_kind kind, const char *place)
{
	const struct xsp_account_family *f = &c->families[0];
	int64_t sum = 0;

	for (size_t i = 0; i < f->count; i++)
		for (size_t k = 0; k < f->places[i].count; k++) {
			const struct xsp_account_row *r = &f->places[i].rows[k];
			const char *is =
				r->place != 0 ? xsp_timeline_name(c->timeline, r->place - 1) : "";
			if (r->kind == kind && (place == NULL || strcmp(is, place) == 0))
				sum += r->ns;
		}
	return sum;
}

static void adds_up(const struct counted *c, uint64_t ns)
{
	int64_t sum = 0;

	for (unsigned kind = 0; kind < XSP_ACCOUNT_KINDS; kind++)
		sum += ns_of(c, kind, NULL);
	cr_expect_eq(sum, (int64_t)ns, "rows: %ld of %lu", (long)sum, (unsigned long)ns);
	cr_expect_eq(c->families[0].ns, ns);
}

Test(account, spans_have_their_own_time_and_waits_are_apart)
{
	struct builder b;
	struct counted c;

	start(&b);
	at(&b, 2000, XSP_EVENT_ENTRY, 0, SP);
	at(&b, 2300, XSP_EVENT_ENTRY, 1, SP - 64);
	wait_of(&b, 2400, 2450, 2500, 0, XSP_WAIT_LOCK); /* 50 waiting, 50 ready */
	at(&b, 2600, XSP_EVENT_EXIT, 1, SP - 64);
	at(&b, 3000, XSP_EVENT_EXIT, 0, SP);
	times_of(&b, 1000, 4000, 50, 50);
	count(&b, &c, NULL);
	adds_up(&c, 3000);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "f0"), 300 + 400);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "f1"), 100 + 100);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_WAIT, "f1"), 50);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_READY, NULL), 50);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_CPU, NULL), 1000 + 1000);
	clear(&c);
}

Test(account, time_in_no_span_is_shared_out_by_samples)
{
	struct builder b;
	struct counted c;

	start(&b);
	for (uint64_t i = 0; i < 10; i++)
		sample(&b, 1100 + 10 * i, i < 6 ? AT_HOT : AT_COLD);
	at(&b, 2000, XSP_EVENT_ENTRY, 0, SP);
	sample(&b, 2500, AT_COLD); /* in a span: its time is exact */
	at(&b, 3000, XSP_EVENT_EXIT, 0, SP);
	times_of(&b, 1000, 3000, 0, 0);
	count(&b, &c, NULL);
	adds_up(&c, 2000);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "f0"), 1000);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_CPU, "hot"), 600);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_CPU, "cold"), 400);
	/* 1.96 * sqrt(0.6 * 0.4 / 10 + ...) / (1 + ...): Wilson, of 1,000 ns */
	cr_expect(c.families[0].places[1].error_ns > 240 && c.families[0].places[1].error_ns < 280,
		  "%lu", (unsigned long)c.families[0].places[1].error_ns);
	clear(&c);
}

Test(account, what_was_not_sampled_says_so)
{
	struct builder b;
	struct counted c;

	start(&b);
	at(&b, 2000, XSP_EVENT_ENTRY, 0, SP);
	at(&b, 2100, XSP_EVENT_EXIT, 0, SP);
	times_of(&b, 1000, 2100, 0, 0);
	count(&b, &c, NULL);
	adds_up(&c, 1100);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_CPU, ""), 1000);
	clear(&c);
}

Test(account, short_waits_are_taken_out_of_the_time_before)
{
	struct builder b;
	struct counted c;

	start(&b);
	at(&b, 2000, XSP_EVENT_ENTRY, 0, SP);
	wait_of(&b, 2500, 2600, 2600, 30, XSP_WAIT_LOCK); /* and 30 short ones since 2000 */
	at(&b, 3000, XSP_EVENT_EXIT, 0, SP);
	times_of(&b, 2000, 4000, 0, 150); /* 20 more, of which no event tells */
	count(&b, &c, NULL);
	adds_up(&c, 2000);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "f0"), 500 - 30 + 400);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_WAIT, NULL), 150);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_CPU, NULL), 1000 - 20);
	clear(&c);
}

Test(account, a_range_of_time_has_its_part)
{
	struct builder b;
	struct counted c;
	const struct xsp_cut cut = {.from_ns = 2450, .to_ns = 2900, .text = "--from ..."};

	start(&b);
	at(&b, 2000, XSP_EVENT_ENTRY, 0, SP);
	wait_of(&b, 2400, 2500, 2500, 0, XSP_WAIT_LOCK);
	at(&b, 3000, XSP_EVENT_EXIT, 0, SP);
	times_of(&b, 1000, 4000, 0, 100);
	count(&b, &c, &cut);
	adds_up(&c, 450);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_WAIT, NULL), 50);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "f0"), 400);
	clear(&c);
}

/* Short waits and hits before the range are none of it. */
Test(account, a_range_of_time_has_no_part_of_what_was_before)
{
	struct builder b;
	struct counted c;
	const struct xsp_cut cut = {.from_ns = 2950, .to_ns = 3500, .text = "--from ..."};

	start(&b);
	at(&b, 2000, XSP_EVENT_ENTRY, 0, SP);
	wait_of(&b, 2500, 2600, 2600, 300, XSP_WAIT_LOCK); /* 300 short ones since 2000 */
	wait_of(&b, 3000, 3100, 3100, 200,
		XSP_WAIT_LOCK); /* 200 since 2600: at most 50 in the range */
	at(&b, 4000, XSP_EVENT_EXIT, 0, SP);
	times_of(&b, 1000, 5000, 0, 700);
	count(&b, &c, &cut);
	adds_up(&c, 550);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_WAIT, NULL), 100 + 50);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "f0"), 400);
	clear(&c);
}

/* The kernel's sums may say more than events leave room for, as those of a snapshot do: no row is less than nothing. */
Test(account, short_waits_are_no_more_than_there_is_room_for)
{
	struct builder b;
	struct counted c;

	start(&b);
	wait_of(&b, 1000, 1500, 1500, 0, XSP_WAIT_LOCK);
	at(&b, 1500, XSP_EVENT_ENTRY, 0, SP);
	at(&b, 1900, XSP_EVENT_EXIT, 0, SP);
	times_of(&b, 1000, 2000, 0, 900);
	count(&b, &c, NULL);
	adds_up(&c, 1000);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_WAIT, NULL), 500 + 100);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "f0"), 400);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_CPU, NULL), 0);
	clear(&c);
}

/* Threads with few samples share out their time by all of the family; each sample counts once. */
Test(account, few_samples_are_shared)
{
	struct builder b;
	struct counted c;
	uint64_t samples = 0;

	start(&b);
	for (uint32_t i = 0; i < 3; i++) {
		b.tid = 201 + i;
		task(&b, XSP_TASK_RENAME, i == 0 ? "worker-1" : i == 1 ? "worker-2" : "worker-3");
		for (uint64_t k = 0; k < (i == 0 ? 10 : 1); k++)
			sample(&b, 2100 + 10 * k, k < 6 ? AT_HOT : AT_COLD);
		times_of(&b, 2000, 3000, 0, 0);
	}
	count(&b, &c, NULL);
	adds_up(&c, 3000);
	/* of its own 6 of 10; of the others 8 of 12 */
	const int64_t hot = ns_of(&c, XSP_ACCOUNT_CPU, "hot");
	cr_expect(hot >= 600 + 1332 && hot <= 600 + 1334, "%ld", (long)hot);
	for (size_t i = 0; i < c.families[0].count; i++)
		for (size_t k = 0; k < c.families[0].places[i].count; k++)
			samples += c.families[0].places[i].rows[k].samples;
	cr_expect_eq(samples, 12);
	/* how much of what was shared out is each thread's, nobody knows */
	for (size_t i = 0; i < c.families[0].count; i++)
		cr_expect_eq(c.families[0].places[i].rows[0].most, 0);
	clear(&c);
}

Test(account, spans_that_stay_open_have_their_time)
{
	struct builder b;
	struct counted c;

	start(&b);
	at(&b, 2000, XSP_EVENT_ENTRY, 0, SP);
	times_of(&b, 1500, 4000, 0, 0);
	count(&b, &c, NULL);
	adds_up(&c, 2500);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "f0"), 2000);
	clear(&c);
}

/* Steps of 1,000; the first is warm-up (over twice the median). A range has no time of its own where there are samples. */
Test(account, steps_alone_where_there_are_some)
{
	struct builder b;
	struct counted c;
	char text[32];

	start(&b);
	for (uint64_t i = 0; i < 5; i++) {
		const uint64_t from = i == 0 ? 10000 : 20000 + 2000 * i;
		const uint64_t length = i == 0 ? 5000 : 1000;
		snprintf(text, sizeof(text), "ProfilerStep#%lu", (unsigned long)i);
		range(&b, from, text);
		at(&b, from + 100, XSP_EVENT_ENTRY, 0, SP - 64);
		sample(&b, from + 150, AT_COLD);
		at(&b, from + 400, XSP_EVENT_EXIT, 0, SP - 64);
		for (uint64_t k = 0; k < 5; k++)
			sample(&b, from + 500 + k, AT_HOT);
		if (i == 3)
			wait_of(&b, from + 600, from + 800, from + 800, 0, XSP_WAIT_DISK);
		range(&b, from + length, NULL);
		sample(&b, from + length + 10, AT_COLD); /* between two steps */
	}
	times_of(&b, 5000, 40000, 0, 200);
	count(&b, &c, NULL);
	cr_expect_eq(c.families[0].steps, 4);
	adds_up(&c, 4000);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "f0"), 4 * 300);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_WAIT, NULL), 200);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_CPU, "hot"), 4 * 700 - 200);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_CPU, "cold"), 0);
	for (size_t i = 0; i < c.families[0].count; i++)
		if (c.families[0].places[i].kind == XSP_ACCOUNT_WAIT)
			cr_expect_eq(c.families[0].places[i].rows[0].steps, 1);
	clear(&c);
}

/* What the first of them did before its first span ended is not lost. */
Test(account, steps_count_from_the_first_on)
{
	struct builder b;
	struct counted c;
	char text[32];

	start(&b);
	for (uint64_t i = 0; i < 5; i++) {
		const uint64_t from = 10000 + 1000 * i;
		snprintf(text, sizeof(text), "ProfilerStep#%lu", (unsigned long)i);
		range(&b, from, text);
		sample(&b, from + 50, AT_HOT);
		at(&b, from + 400, XSP_EVENT_ENTRY, 0, SP - 64);
		at(&b, from + 700, XSP_EVENT_EXIT, 0, SP - 64);
		range(&b, from + 900, NULL);
	}
	times_of(&b, 5000, 20000, 0, 0);
	count(&b, &c, NULL);
	cr_expect_eq(c.families[0].steps, 5);
	adds_up(&c, 5 * 900);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "f0"), 5 * 300);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_CPU, "hot"), 5 * 600);
	clear(&c);
}

Test(account, probes_are_a_row_of_their_own)
{
	struct builder b;
	struct counted c;
	const struct xsp_capture_probe dear = {.id = 3,
					       .module = UINT32_MAX,
					       .provider = "function",
					       .symbol = "",
					       .name = "dear",
					       .entry_cost_ns = 10,
					       .exit_cost_ns = 7,
					       .exit_complete = true};

	start(&b);
	cr_assert_eq(xsp_capture_put_probe(b.w, &dear), 0);
	at(&b, 2000, XSP_EVENT_ENTRY, 0, SP);
	at(&b, 2100, XSP_EVENT_ENTRY, 3, SP - 64); /* 10 of f0's time */
	at(&b, 2200, XSP_EVENT_EXIT, 3, SP - 64); /* 7 of its own */
	at(&b, 2300, XSP_EVENT_EXIT, 0, SP);
	times_of(&b, 2000, 2300, 0, 0);
	count(&b, &c, NULL);
	adds_up(&c, 300);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "f0"), 200 - 10);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "dear"), 100 - 7);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_PROBES, NULL), 17);
	clear(&c);
}

/* Ten threads that live for a moment have more CPU time together than the one that starts them, which is shown. */
Test(account, members_that_live_for_a_moment_come_last)
{
	struct builder b;
	struct counted c;

	start(&b);
	for (uint32_t i = 0; i < 10; i++) {
		b.tid = 301 + i;
		task(&b, XSP_TASK_RENAME, "moment");
		at(&b, 2000 + 100 * i, XSP_EVENT_ENTRY, 0, SP);
		at(&b, 2080 + 100 * i, XSP_EVENT_EXIT, 0, SP);
		times_of(&b, 2000 + 100 * i, 2080 + 100 * i, 0, 0);
	}
	b.tid = 201;
	task(&b, XSP_TASK_RENAME, "starts");
	at(&b, 2000, XSP_EVENT_ENTRY, 0, SP);
	at(&b, 2100, XSP_EVENT_EXIT, 0, SP);
	wait_of(&b, 2100, 4000, 4000, 0, XSP_WAIT_CHILD);
	times_of(&b, 2000, 4000, 0, 1900);
	count(&b, &c, NULL);
	cr_expect_eq(c.count, 2);
	cr_expect_str_eq(c.families[0].comm, "starts");
	cr_expect_not(c.families[0].brief);
	cr_expect_eq(c.families[1].members, 10);
	cr_expect(c.families[1].brief);
	clear(&c);
}

/* Two workers of one pool, one of them with three times the work, and one that rests. */
Test(account, threads_that_do_the_same_are_one_family)
{
	struct builder b;
	struct counted c;

	start(&b);
	for (uint32_t i = 0; i < 3; i++) {
		const uint64_t ns = i == 0 ? 900 : i == 1 ? 300 : 0;
		b.tid = 201 + i;
		task(&b, XSP_TASK_RENAME, i == 0 ? "worker-1" : i == 1 ? "worker-2" : "worker-3");
		at(&b, 2000, XSP_EVENT_ENTRY, 0, SP);
		at(&b, 2000 + ns, XSP_EVENT_EXIT, 0, SP);
		if (ns < 1000)
			wait_of(&b, 2000 + ns, 3000, 3000, 0, XSP_WAIT_LOCK);
		times_of(&b, 2000, 3000, 0, 1000 - ns);
	}
	count(&b, &c, NULL);
	cr_expect_eq(c.count, 1, "%zu families", c.count);
	cr_expect_eq(c.families[0].members, 2);
	cr_expect_eq(c.families[0].idle, 1);
	adds_up(&c, 2000);
	const struct xsp_account_row *row = NULL;
	for (size_t i = 0; i < c.families[0].count; i++)
		if (c.families[0].places[i].rows[0].kind == XSP_ACCOUNT_SPAN)
			row = &c.families[0].places[i].rows[0];
	cr_assert_not_null(row);
	cr_expect_eq(row->ns, 1200);
	cr_expect_eq(row->least_ns, 300);
	cr_expect_eq(row->most_ns, 900);
	cr_expect_eq(row->most, 201);
	clear(&c);
}

/* A sample in hot() with a section of one word. */
static void sample_with(struct builder *b, uint64_t at, uint16_t type, uint32_t value,
			uint64_t word)
{
	struct {
		struct xsp_event_sample e;
		struct xsp_section section;
		uint64_t word;
	} sampled = {.e = {.head = {.kind = XSP_EVENT_SAMPLE,
				    .probe = NO_PROBE,
				    .sp = SP - 0x4000,
				    .flags = XSP_EVENT_SECTIONS},
			   .address = AT_HOT,
			   .period_ns = 10,
			   .syscall = -2},
		     .section = {.type = type, .size = 16, .value = value},
		     .word = word};

	b->now = at;
	builder_put(b, &sampled, sizeof(sampled));
}

/* Two threads of a pool of Python are sampled once each, in the middle of the interpreter: what they wait in says what
 * they started in. */
Test(account, lines_of_python_that_threads_wait_in_tell_their_routine)
{
	enum { INTO_ONE = 0x100, INTO_OTHER = 0x200 };
	struct xsp_capture_python_frame frame = {.name = 0x9001};
	const struct xsp_capture_python stack = {.id = 1, .count = 1, .frames = &frame};
	struct builder b;
	struct counted c;

	start(&b);
	cr_assert_eq(xsp_capture_put_name(b.w, frame.name, "/x/fight.py\n20\nwork"), 0);
	cr_assert_eq(xsp_capture_put_python(b.w, &stack), 0);
	address_name(&b, XSP_NAME_OF_RETURN, INTO_ONE, "one");
	address_name(&b, XSP_NAME_OF_RETURN, INTO_OTHER, "other");
	for (uint32_t i = 0; i < 2; i++) {
		b.tid = 201 + i;
		sample_with(&b, 2100, XSP_SECTION_STACK, 0,
			    (i == 0 ? INTO_ONE : INTO_OTHER) | 2ULL << XSP_FRAME_SHIFT);
		for (uint64_t at = 2200; at < 3000; at += 200) {
			struct {
				struct xsp_event_wait e;
				struct xsp_section section;
				uint64_t id;
			} waited = {.e = {.head = {.kind = XSP_EVENT_WAIT,
						   .probe = NO_PROBE,
						   .flags = XSP_EVENT_SECTIONS},
					  .left_ns = at,
					  .woken_ns = at + 100,
					  .syscall = 202,
					  .why = XSP_WAIT_LOCK},
				    .section = {.type = XSP_SECTION_PYTHON, .size = 16, .value = 1},
				    .id = 1};
			b.now = at + 100;
			builder_put(&b, &waited, sizeof(waited));
		}
		times_of(&b, 2000, 3000, 0, 400);
	}
	count(&b, &c, NULL);
	cr_expect_eq(c.count, 1, "%zu families", c.count);
	cr_expect_eq(c.families[0].members, 2);
	clear(&c);
}

/* ---- who calls a place ---- */

enum { IN_HELPER = 0x1000, INTO_GET = 0x1100, INTO_RENDER = 0x1200, INTO_SEARCH = 0x1300 };

static void sample_of(struct builder *b, uint64_t now, const uint64_t callers[2])
{
	struct {
		struct xsp_event_sample e;
		struct xsp_section section;
		uint64_t frames[2];
	} sampled = {.e = {.head = {.kind = XSP_EVENT_SAMPLE,
				    .probe = NO_PROBE,
				    .sp = SP - 0x4000,
				    .flags = XSP_EVENT_SECTIONS},
			   .address = IN_HELPER,
			   .period_ns = 10,
			   .syscall = -2},
		     .section = {.type = XSP_SECTION_STACK,
				 .size = sizeof(sampled.section) + sizeof(sampled.frames)}};

	for (size_t i = 0; i < 2; i++)
		sampled.frames[i] = callers[i] | 2ULL << XSP_FRAME_SHIFT;
	b->now = now;
	builder_put(b, &sampled, sizeof(sampled));
}

static const struct xsp_account_place *place_named(const struct counted *c, const char *name)
{
	for (size_t i = 0; i < c->families[0].count; i++) {
		const struct xsp_account_place *p = &c->families[0].places[i];
		if (p->name != 0 && strcmp(xsp_timeline_name(c->timeline, p->name - 1), name) == 0)
			return p;
	}
	return NULL;
}

static void is_caller(const struct counted *c, const struct xsp_account_place *p, size_t index,
		      const char *name, uint32_t level, double share)
{
	cr_assert(index < p->caller_count, "%zu callers", p->caller_count);
	const struct xsp_account_caller *is = &p->callers[index];
	cr_expect_str_eq(xsp_timeline_name(c->timeline, is->name - 1), name);
	cr_expect_eq(is->level, level);
	cr_expect(is->share > share - 1e-9 && is->share < share + 1e-9, "%g", is->share);
}

/* The helper is called by one function, and that one by two. */
Test(account, callers_up_to_where_they_differ)
{
	static const uint64_t own[] = {IN_HELPER, INTO_GET, INTO_RENDER, INTO_SEARCH};
	static const uint64_t ways[2][2] = {{INTO_GET, INTO_RENDER}, {INTO_GET, INTO_SEARCH}};
	struct builder b;
	struct counted c;

	start(&b);
	address_name(&b, XSP_NAME_OF_CODE, IN_HELPER, "app\nhelper");
	address_name(&b, XSP_NAME_OF_RETURN, INTO_GET, "get");
	address_name(&b, XSP_NAME_OF_RETURN, INTO_RENDER, "render");
	address_name(&b, XSP_NAME_OF_RETURN, INTO_SEARCH, "search");
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		address_name(&b, XSP_NAME_OF_FILE, own[i], "/home/me/app");
	for (uint64_t i = 0; i < 10; i++)
		sample_of(&b, 2100 + 10 * i, ways[i % 5 >= 3]);
	times_of(&b, 2000, 3000, 0, 0);
	count(&b, &c, NULL);
	const struct xsp_account_place *p = place_named(&c, "helper");
	cr_assert_not_null(p);
	cr_expect_eq(p->caller_count, 3);
	is_caller(&c, p, 0, "get", 1, 1);
	is_caller(&c, p, 1, "render", 2, 0.6);
	is_caller(&c, p, 2, "search", 2, 0.4);
	clear(&c);
}

/* Neither a comprehension's own function, nor one that calls itself, nor a package's is a caller. */
Test(account, callers_are_other_functions_of_the_program)
{
	static const char *const names[] = {"/x/app.py\n3\nallow.<locals>.<listcomp>",
					    "/x/app.py\n3\nallow", "/x/app.py\n4\nallow",
					    "/usr/lib/python3/dist-packages/p.py\n8\ncall",
					    "/x/app.py\n9\nhandle"};
	struct xsp_capture_python_frame frames[5];
	const struct xsp_capture_python stack = {.id = 1, .count = 5, .frames = frames};
	struct {
		struct xsp_event_wait e;
		struct xsp_section section;
		uint64_t id;
	} waited = {.e = {.head = {.kind = XSP_EVENT_WAIT,
				   .probe = NO_PROBE,
				   .flags = XSP_EVENT_SECTIONS},
			  .left_ns = 2200,
			  .woken_ns = 2300,
			  .syscall = 202,
			  .why = XSP_WAIT_LOCK},
		    .section = {.type = XSP_SECTION_PYTHON, .size = 16, .value = 5},
		    .id = 1};
	struct builder b;
	struct counted c;

	start(&b);
	for (uint64_t i = 0; i < 5; i++) {
		frames[i] = (struct xsp_capture_python_frame){.name = 0x9001 + i};
		cr_assert_eq(xsp_capture_put_name(b.w, frames[i].name, names[i]), 0);
	}
	cr_assert_eq(xsp_capture_put_python(b.w, &stack), 0);
	b.now = 2300;
	builder_put(&b, &waited, sizeof(waited));
	times_of(&b, 2000, 3000, 0, 100);
	count(&b, &c, NULL);
	const struct xsp_account_place *p = place_named(&c, "app.py:3 allow.<locals>.<listcomp>");
	cr_assert_not_null(p);
	cr_expect_eq(p->caller_count, 1);
	is_caller(&c, p, 0, "app.py:9 handle", 1, 1);
	clear(&c);
}

/* An operator of which only times were recorded: samples say which lines called it, if there are some. */
Test(account, spans_without_lines_are_shared_out_by_samples)
{
	struct xsp_capture_python_frame frames[] = {{.name = 0x9001}, {.name = 0x9002}};
	const struct xsp_capture_python stacks[] = {{.id = 1, .count = 1, .frames = frames},
						    {.id = 2, .count = 1, .frames = frames + 1}};
	struct builder b;
	struct counted c;

	start(&b);
	cr_assert_eq(xsp_capture_put_name(b.w, 0x9001, "/x/train.py\n10\nforward"), 0);
	cr_assert_eq(xsp_capture_put_name(b.w, 0x9002, "/x/train.py\n20\ncleanup"), 0);
	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(xsp_capture_put_python(b.w, &stacks[i]), 0);
	at(&b, 2000, XSP_EVENT_ENTRY, 0, SP);
	for (uint64_t i = 0; i < 10; i++)
		sample_with(&b, 2100 + 10 * i, XSP_SECTION_PYTHON, 1, i < 7 ? 1 : 2);
	at(&b, 2500, XSP_EVENT_ENTRY, 1, SP - 64);
	for (uint64_t i = 0; i < 4; i++) /* too few */
		sample_with(&b, 2600 + 10 * i, XSP_SECTION_PYTHON, 1, 2);
	at(&b, 3000, XSP_EVENT_EXIT, 1, SP - 64);
	at(&b, 3500, XSP_EVENT_EXIT, 0, SP);
	times_of(&b, 1000, 4000, 0, 0);
	count(&b, &c, NULL);
	adds_up(&c, 3000);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "train.py:10 forward"), 700);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "train.py:20 cleanup"), 300);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "f1"), 500);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_SPAN, "f0"), 0);
	for (size_t i = 0; i < c.families[0].count; i++) {
		const struct xsp_account_place *p = &c.families[0].places[i];
		if (p->ns == 700) /* Wilson: 7 of 10, of 1,000 ns */
			cr_expect(p->error_ns > 230 && p->error_ns < 260 && p->rows[0].samples == 7,
				  "%lu", (unsigned long)p->error_ns);
	}
	clear(&c);
}

/* Where waits would have cost too much. Code that a package makes by exec() is none of the program's. */
Test(account, without_waits_samples_are_the_time_on_a_cpu)
{
	struct xsp_capture_python_frame frames[] = {{.name = 0x9001}, {.name = 0x9002}};
	const struct xsp_capture_python stack = {.id = 1, .count = 2, .frames = frames};
	struct builder b;
	struct counted c;

	builder_begin(&b, 3);
	cr_assert_eq(xsp_capture_put_info(b.w, "samples", "cpu-clock 100"), 0);
	address_name(&b, XSP_NAME_OF_CODE, AT_HOT, "app\nhot");
	cr_assert_eq(xsp_capture_put_name(b.w, 0x9001, "<string>\n2\n__getitem__"), 0);
	cr_assert_eq(xsp_capture_put_name(b.w, 0x9002, "/x/settle.py\n42\nbatch"), 0);
	cr_assert_eq(xsp_capture_put_python(b.w, &stack), 0);
	for (uint64_t i = 0; i < 6; i++)
		sample(&b, 1100 + 10 * i, AT_HOT);
	for (uint64_t i = 0; i < 4; i++)
		sample_with(&b, 1200 + 10 * i, XSP_SECTION_PYTHON, 1, 1);
	count(&b, &c, NULL);
	uint64_t start_ns, end_ns;
	xsp_timeline_window(c.timeline, &start_ns, &end_ns);
	adds_up(&c, end_ns - start_ns);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_CPU, "hot"), 60);
	cr_expect_eq(ns_of(&c, XSP_ACCOUNT_CPU, "settle.py:42 batch"), 40);
	cr_expect_eq(c.families[0].cpu_ns, 100);
	cr_expect_eq(c.families[0].off_ns, end_ns - start_ns - 100);
	clear(&c);
}
