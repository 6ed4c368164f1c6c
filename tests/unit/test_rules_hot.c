/* SPDX-License-Identifier: BSD-2-Clause */
/* What samples show: hot functions, where hot operations are hot, page faults; and what time shares
 * refer to. */

#include "analyze_check.h"

enum { INTO_CALLER = 0x9000 }; /* a return address */
enum { IN_A_FAULT = 7 }; /* a stack of the kernel's */

static void open_samples(struct builder *b)
{
	static const char *const code[] = {"app\nhot", "libc.so.6\nmemcpy", "app\nspin_for_work",
					   "python3.11\n_PyEval_EvalFrameDefault",
					   "app\n[generated code]"};
	static const char *const lines[] = {"/srv/fight.py\n5\ncount", "/srv/fight.py\n6\ncount"};
	char text[64];

	open_waits(b);
	cr_assert_eq(xsp_capture_put_info(b->w, "samples", "cpu-clock 100"), 0);
	for (size_t i = 0; i < sizeof(code) / sizeof(code[0]); i++)
		address_name(b, XSP_NAME_OF_CODE, i, code[i]);
	for (uint64_t i = 100; i < 120; i++) {
		snprintf(text, sizeof(text), "app\nother_%u", (unsigned)i);
		address_name(b, XSP_NAME_OF_CODE, i, text);
	}
	cr_assert_eq(xsp_capture_put_address_name(b->w, XSP_NAME_OF_KERNEL, IN_A_FAULT, 0,
						  "asm_exc_page_fault_[k]"),
		     0);
	address_name(b, XSP_NAME_OF_RETURN, INTO_CALLER, "parse");
	address_name(b, XSP_NAME_OF_RETURN, INTO_CALLER + 1, "hot");
	address_name(b, XSP_NAME_OF_RETURN, INTO_CALLER + 2, "__libc_read");
	for (uint64_t id = 1; id <= 2; id++) {
		struct xsp_capture_python_frame frame = {.name = 0xf000 + id};
		cr_assert_eq(xsp_capture_put_name(b->w, 0xf000 + id, lines[id - 1]), 0);
		cr_assert_eq(xsp_capture_put_python(b->w,
						    &(struct xsp_capture_python){.id = id,
										 .count = 1,
										 .frames = &frame}),
			     0);
	}
}

enum { AT_HOT, AT_MEMCPY, AT_SPIN, AT_EVAL, AT_GENERATED, AT_OTHERS = 100 };

/* 10 ms each, in the instruction `at`, called from `caller` (0: unknown), at a line of Python (0:
 * none). */
struct where {
	uint64_t at, caller, line;
	bool reads, faults; /* in the kernel */
};
static void put_samples(struct builder *b, unsigned count, uint64_t from, struct where w)
{
	struct {
		struct xsp_event_sample e;
		uint64_t sections[8];
	} u = {.e = {.head = {.kind = XSP_EVENT_SAMPLE,
			      .probe = UINT32_MAX,
			      .sp = SP - 0x3000,
			      .flags = XSP_EVENT_SECTIONS},
		     .address = w.at,
		     .period_ns = 10 * MS,
		     .syscall = w.reads ? 0 : -2,
		     .kernel = w.reads || w.faults}};
	struct xsp_section *s = (void *)u.sections;
	uint64_t *word = (void *)(s + 1);

	if (w.faults) {
		*s = (struct xsp_section){
			.type = XSP_SECTION_KERNEL, .size = sizeof(*s), .value = IN_A_FAULT};
		s = (void *)word++;
	}
	if (w.line != 0) {
		*s = (struct xsp_section){.type = XSP_SECTION_PYTHON, .size = 16, .value = 1};
		*word++ = w.line;
		s = (void *)word++;
	}
	*s = (struct xsp_section){.type = XSP_SECTION_STACK, .size = 8};
	/* whatever it is called by calls itself once, and is called by parse() */
	for (unsigned i = 0; i < 2 && w.caller != 0; i++, s->size += 8)
		*word++ = (i == 0 ? w.caller : INTO_CALLER) | 2ULL << XSP_FRAME_SHIFT;
	for (unsigned i = 0; i < count; i++) {
		b->now = from + (i + 1) * 10 * MS;
		builder_put(b, &u, (size_t)((char *)word - (char *)&u));
	}
}

/* The rest of a second, in `functions` others. */
static void put_others(struct builder *b, unsigned count, unsigned functions)
{
	for (unsigned i = 0; i < functions; i++)
		put_samples(b, count / functions, START + 500 * MS,
			    (struct where){.at = AT_OTHERS + i});
	b->tid = 100;
	b->now = START + 1000 * MS;
}

Test(rules_hot, hot_function)
{
	struct builder b;

	open_samples(&b);
	put_samples(&b, 45, START, (struct where){.at = AT_HOT, .caller = INTO_CALLER});
	/* it calls itself: that is one function, once a sample */
	put_samples(&b, 15, START + 450 * MS,
		    (struct where){.at = AT_HOT, .caller = INTO_CALLER + 1});
	put_others(&b, 40, 8);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-function", XSP_SEVERITY_HOT, 0.6);
	cr_expect_str_eq(f->finding.subject, "hot (app)");
	cr_expect_eq(number_of(value_of(f->figures, "samples")), 60);
	cr_expect_eq(number_of(value_of(f->figures, "cpu_ns")), 600 * MS);
	expect_near(number_of(value_of(f->figures, "cpu_share")), 0.6, 1e-9, "share");
	/* R: prop.test(60, 100, correct = FALSE) */
	expect_near(number_of(value_of(f->figures, "cpu_share_low")), 0.5020026, 1e-6, "low");
	expect_near(number_of(value_of(f->figures, "cpu_share_high")), 0.6905987, 1e-6, "high");
	cr_expect_str_eq(value_of(f->figures, "caller")->text, "parse, 100 % of it");
	cr_expect_str_eq(value_of(f->figures, "thread")->text, "main (100)");
	cr_expect_eq(f->finding.from_ns, 0);
	cr_expect_eq(f->finding.to_ns, 600 * MS);
	cr_expect_null(f->finding.uncertain);
	xsp_report_free(r);
}

/* Of a second, `faults` samples of 10 ms in page faults and `others` in something else. */
static struct xsp_report *faulting(unsigned faults, unsigned others, uint64_t time_ns)
{
	struct builder b;

	open_samples(&b);
	put_samples(&b, faults, START, (struct where){.at = AT_HOT, .faults = true});
	put_others(&b, others, others < 10 ? others : 10);
	put_times(&b, 100, START, START + time_ns, 0, XSP_WAIT_POLL,
		  time_ns - (faults + others) * 10 * MS);
	return report_of(&b, NULL);
}

Test(rules_hot, storm_of_page_faults)
{
	struct xsp_report *r = faulting(40, 60, 1000 * MS);
	const struct xsp_report_found *f = expect(r, "page-faults", XSP_SEVERITY_HIGH, 0.4);

	cr_expect_not_null(strstr(f->finding.title, "hot takes page faults: 40.0 % of the time"),
			   "%s", f->finding.title);
	cr_expect_eq(number_of(value_of(f->figures, "total_ns")), 400 * MS);
	xsp_report_free(r);
}

/* A third of three samples; four of forty; and most samples of a process that hardly runs. */
Test(rules_hot, few_samples_are_no_storm)
{
	struct xsp_report *r = faulting(1, 2, 1000 * MS);

	expect_none(r, "page-faults");
	xsp_report_free(r);
	r = faulting(4, 36, 500 * MS);
	expect_none(r, "page-faults");
	xsp_report_free(r);
	r = faulting(40, 10, 60000 * MS);
	expect_none(r, "page-faults");
	xsp_report_free(r);
}

/* Ten functions of a tenth each; one that has most of little; and few samples of whatever. */
Test(rules_hot, no_function_is_hot)
{
	struct builder b;

	open_samples(&b);
	put_others(&b, 100, 10);
	struct xsp_report *r = report_of(&b, NULL);
	expect_clean(r);
	cr_expect(!had_no_data(r, "hot-function"));
	xsp_report_free(r);

	open_samples(&b);
	put_samples(&b, 60, START, (struct where){.at = AT_HOT});
	b.now = START + 10000 * MS; /* it slept */
	r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);

	open_samples(&b);
	put_samples(&b, 29, START, (struct where){.at = AT_HOT});
	b.now = START + 290 * MS;
	r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);

	open_samples(&b); /* nothing names it */
	put_samples(&b, 90, START, (struct where){.at = AT_GENERATED});
	b.now = START + 1000 * MS;
	r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);
}

/* Other programs had its CPU: it is hot as before, and its share of the time is reported as it
 * is. */
Test(rules_hot, hot_function_on_a_busy_machine)
{
	struct builder b;

	open_samples(&b);
	put_samples(&b, 60, START, (struct where){.at = AT_HOT});
	put_others(&b, 40, 8);
	put_times(&b, 100, START, START + 10000 * MS, 9000 * MS, XSP_WAIT_SLEEP, 0);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-function", XSP_SEVERITY_HOT, 0.06);
	cr_expect_not_null(strstr(f->finding.title, "takes 6.0 % of the recorded time, in "), "%s",
			   f->finding.title);
	cr_expect_not_null(strstr(f->finding.title, "had a CPU for 10 % of the time"), "%s",
			   f->finding.title);
	xsp_report_free(r);

	open_samples(&b); /* it slept instead */
	put_samples(&b, 60, START, (struct where){.at = AT_HOT});
	put_others(&b, 40, 8);
	put_times(&b, 100, START, START + 10000 * MS, 0, XSP_WAIT_SLEEP, 9000 * MS);
	r = report_of(&b, NULL);
	expect_none(r, "hot-function");
	xsp_report_free(r);
}

/* Samples and waits go on between windows of functions, and may end before the recording does:
 * shares refer to their time. */
Test(rules_hot, shares_are_of_the_time_that_was_watched)
{
	struct builder b;

	open_samples(&b);
	cr_assert_eq(xsp_capture_put_window(b.w, &(struct xsp_capture_window){START, START + MS}),
		     0);
	put_samples(&b, 30, START, (struct where){.at = AT_HOT});
	b.now = START + 1000 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-function", XSP_SEVERITY_HOT, 0.3);
	cr_expect_null(f->finding.uncertain, "%s", f->finding.uncertain);
	xsp_report_free(r);

	open_samples(&b);
	cr_assert_eq(xsp_capture_put_info(b.w, "samples until ns", "1000001000"), 0);
	put_samples(&b, 30, START, (struct where){.at = AT_HOT});
	b.now = START + 10000 * MS;
	r = report_of(&b, NULL);
	f = expect(r, "hot-function", XSP_SEVERITY_HOT, 0.3);
	cr_expect_str_eq(f->finding.uncertain, "samples were recorded in the first 1.00 s only");
	xsp_report_free(r);

	open_waits(&b);
	cr_assert_eq(xsp_capture_put_info(b.w, "waits until ns", "10001000"), 0);
	put_wait(&b, 101, START + MS, 4 * MS, 100, XSP_WAIT_LOCK);
	put_times(&b, 100, START, START + 10 * MS, 0, XSP_WAIT_LOCK, 0);
	put_times(&b, 101, START, START + 10 * MS, 2 * MS, XSP_WAIT_LOCK, 4 * MS);
	b.now = START + 1000 * MS;
	r = report_of(&b, NULL);
	f = expect(r, "lock", XSP_SEVERITY_HIGH, 0.4);
	cr_expect_str_eq(f->finding.uncertain, "waits were recorded in the first 10.0 ms only");
	expect(r, "runnable", XSP_SEVERITY_NOTE, 0.2);
	xsp_report_free(r);
}

/* Some of its samples are in spans of it, and the span stands for it there: it is one function. */
Test(rules_hot, hot_function_that_is_a_span_as_well)
{
	struct builder b;

	open_samples(&b);
	b.now = START;
	entry(&b, HOT, SP - 0x1000);
	put_samples(&b, 25, START, (struct where){.at = AT_HOT});
	b.now = START + 250 * MS;
	leave(&b, HOT, SP - 0x1000);
	put_samples(&b, 35, START + 250 * MS, (struct where){.at = AT_HOT});
	put_others(&b, 40, 8);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-function", XSP_SEVERITY_HOT, 0.6);
	cr_expect_eq(number_of(value_of(f->figures, "samples")), 60);
	xsp_report_free(r);
}

/* Of 200 samples 56 are there: surely more than 20 % only if they are of 200 moments, not of 50 on
 * four CPUs. */
Test(rules_hot, samples_of_one_moment_are_one)
{
	struct builder b;

	for (unsigned cpus = 1; cpus <= 4; cpus += 3) {
		open_samples(&b);
		put_samples(&b, 56, START, (struct where){.at = AT_HOT});
		put_others(&b, 144, 16);
		b.now = START + 2000 * MS / cpus;
		struct xsp_report *r = report_of(&b, NULL);
		if (cpus == 1)
			expect(r, "hot-function", XSP_SEVERITY_HOT, 0.28);
		else
			expect_none(r, "hot-function");
		xsp_report_free(r);
	}
}

Test(rules_hot, hot_function_of_python)
{
	struct builder b;

	open_samples(&b);
	put_samples(&b, 40, START, (struct where){.at = AT_EVAL, .line = 1});
	put_samples(&b, 20, START + 400 * MS, (struct where){.at = AT_EVAL, .line = 2});
	put_others(&b, 40, 8);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-function", XSP_SEVERITY_HOT, 0.6);
	cr_expect_str_eq(f->finding.subject, "count (fight.py)");
	cr_expect_not_null(strstr(f->finding.title, "most of it at fight.py:5 count"), "%s",
			   f->finding.title);
	cr_expect_str_eq(value_of(f->figures, "line")->text, "fight.py:5 count, 67 % of it");
	xsp_report_free(r);
}

/* What a line calls counts for the line, too: one finding, which has both. */
Test(rules_hot, hot_function_that_python_calls)
{
	struct builder b;

	open_samples(&b);
	put_samples(&b, 60, START, (struct where){.at = AT_MEMCPY, .line = 1});
	put_others(&b, 40, 8);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-function", XSP_SEVERITY_HOT, 0.6);
	cr_expect_str_eq(f->finding.subject, "memcpy (libc.so.6)");
	cr_expect_str_eq(value_of(f->figures, "line")->text, "fight.py:5 count, 100 % of it");
	xsp_report_free(r);
}

/* The system call is named, and its caller outside the C library; a loop that waits is
 * distinguished from one that works. */
Test(rules_hot, hot_kernel_and_hot_spinning)
{
	struct builder b;

	open_samples(&b);
	put_samples(&b, 60, START,
		    (struct where){.at = AT_MEMCPY, .caller = INTO_CALLER + 2, .reads = true});
	put_others(&b, 40, 8);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-function", XSP_SEVERITY_HOT, 0.6);
	cr_expect_str_eq(f->finding.subject, "[kernel] read");
	cr_expect_not_null(strstr(f->finding.advice, "system calls"), "%s", f->finding.advice);
	xsp_report_free(r);

	open_samples(&b);
	put_samples(&b, 60, START, (struct where){.at = AT_SPIN});
	put_others(&b, 40, 8);
	r = report_of(&b, NULL);
	f = expect(r, "hot-function", XSP_SEVERITY_HOT, 0.6);
	cr_expect_not_null(strstr(f->finding.advice, "by its name it waits"), "%s",
			   f->finding.advice);
	xsp_report_free(r);
}

/* The span is hot: where it is hot is part of that finding, not a second one. */
Test(rules_hot, hot_operation_says_where_it_is_hot)
{
	struct builder b;

	open_samples(&b);
	b.now = START;
	entry(&b, WORK, SP - 0x1000);
	put_samples(&b, 60, START, (struct where){.at = AT_MEMCPY});
	b.now = START + 600 * MS;
	leave(&b, WORK, SP - 0x1000);
	put_others(&b, 40, 8);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-operation", XSP_SEVERITY_HOT, 0.6);
	cr_expect_str_eq(value_of(f->figures, "inside")->text,
			 "memcpy (libc.so.6) in 100 % of its samples");
	cr_expect_null(strstr(f->finding.advice, "--sample"), "%s", f->finding.advice);
	expect_none(r, "hot-function");
	xsp_report_free(r);
}

/* By Wilson's interval, by hand: of one of one the least is 1 / (1 + z^2) = 20.65 %, of 100 of 100 it is 96.30 %; at 50 of
 * 100 it is 9.62 % each way. */
Test(rules_hot, error_of_a_share_of_few_samples)
{
	const struct {
		unsigned here, others;
		const char *printed;
	} cases[] = {{1, 0, "100.00 %     79.35  hot"},
		     {100, 0, "100.00 %      3.70  hot"},
		     {50, 50, " 50.00 %      9.62  hot"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct builder b;
		open_samples(&b);
		put_samples(&b, cases[i].here, START, (struct where){.at = AT_HOT});
		put_samples(&b, cases[i].others, START + 500 * MS, (struct where){.at = AT_MEMCPY});
		builder_end(&b);
		char *text = summary_of(b.path);
		unlink(b.path);
		cr_expect_not_null(strstr(text, cases[i].printed), "%s", text);
		free(text);
	}
}
