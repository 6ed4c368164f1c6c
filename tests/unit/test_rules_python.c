/* SPDX-License-Identifier: BSD-2-Clause */
/* What is found with lines of Python: loops, and where operations are called from. */

#include "analyze_check.h"

#include "catalog/scope.h"

static void python_call(struct builder *b, uint64_t at, uint64_t ns, uint64_t stack)
{
	b->now = at;
	called_from(b, XSP_EVENT_ENTRY, WORK, SP - 0x1000, stack);
	b->now = at + ns;
	leave(b, WORK, SP - 0x1000);
}

/* Stack 1 is line 1 of a.py, 2 is line 2; 3 is another instruction of line 1; 4 is a package that it calls, 5 autograd's
 * engine that it runs. */
static void put_lines(struct builder *b)
{
	struct xsp_capture_python_frame frames[] = {
		{.name = 'a'}, {.name = 'b'}, {.name = 'a'}, {.name = 'n'}, {.name = 'a'}};
	struct xsp_capture_python_frame engine[] = {{.name = 'g'}, {.name = 'i'}, {.name = 'a'}};

	name(b, 'g',
	     "/usr/lib/python3/dist-packages/torch/autograd/graph.py\n825\n_engine_run_backward",
	     0);
	name(b, 'i', "/usr/lib/python3/dist-packages/torch/autograd/__init__.py\n347\nbackward", 0);
	cr_assert_eq(
		xsp_capture_put_python(
			b->w, &(struct xsp_capture_python){.id = 5, .count = 3, .frames = engine}),
		0);
	name(b, 'a', "/me/a.py\n1\nloop", 0);
	name(b, 'b', "/me/a.py\n2\nother", 0);
	name(b, 'n', "/usr/lib/python3/dist-packages/torch/functional.py\n1482\nnorm", 0);
	for (uint64_t i = 0; i < 4; i++)
		cr_assert_eq(xsp_capture_put_python(
				     b->w, &(struct xsp_capture_python){.id = i + 1,
									.count = i < 3 ? 1 : 2,
									.frames = &frames[i]}),
			     0);
}

static void loop_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 150; i++)
		python_call(b, at + i * 2 * US, US, 1);
}

/* As `if f(x[i]) == g(y[i])`: of one operator two calls, from two instructions of one line. */
static void one_line_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 150; i++)
		python_call(b, at + i * 2 * US, US, i % 2 == 0 ? 1 : 3);
}

static void package_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 150; i++)
		python_call(b, at + i * 2 * US, US, 4);
}

static void two_lines_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 150; i++)
		python_call(b, at + i * 2 * US, US, 1 + i % 2);
}

/* Two operations with 120 calls each, one of them by a package; neither has a tenth of the
 * time alone. */
static void two_operations_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 120; i++) {
		python_call(b, at + i * 2 * US, 400, 1);
		b->now = at + i * 2 * US + US;
		called_from(b, XSP_EVENT_ENTRY, ITEM, SP - 0x1000, 4);
		b->now += 300;
		leave(b, ITEM, SP - 0x1000);
	}
}

/* As often, but not by Python: by a call around. */
static void native_loop_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	b->now = at - 1;
	called_from(b, XSP_EVENT_ENTRY, ITEM, SP - 0x800, 1);
	loop_inside(b, at, step);
	b->now = at + 500 * US;
	leave(b, ITEM, SP - 0x800);
}

Test(rules_python, operation_in_a_loop_of_python)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_lines(&b);
	put_steps(&b, STEPS, MS, loop_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "python-loop", XSP_SEVERITY_MEDIUM, 0.15);
	cr_expect_str_eq(f->finding.subject, "work at a.py:1 loop");
	cr_expect_eq(number_of(value_of(f->figures, "calls_per_step")), 150);
	cr_expect_eq(number_of(value_of(f->figures, "calls")), 150 * STEPS);
	cr_expect_not_null(strstr(f->finding.advice, "a.py:1 loop"));
	xsp_report_free(r);
}

/* A sample in each step: in so many tenths of the steps it finds the loop's line. */
static unsigned tenths;

static void short_loop_inside(struct builder *b, uint64_t at, unsigned step)
{
	const struct xsp_section python = {.type = XSP_SECTION_PYTHON, .size = 16};
	const struct xsp_section native = {.type = XSP_SECTION_STACK, .size = 16};
	const bool loop = step % 10 < tenths;

	for (unsigned i = 0; i < 150; i++)
		python_call(b, at + i * 4 * US, 100, 1);
	b->now = at + 700 * US - 10 * MS;
	put_sampled(b, 1, 1, loop ? python : native, loop ? 1 : 2);
}

/* The calls take 15 us of each 1000, and the loop of Python around them 40 % of the rest: the account says so. */
Test(rules_python, a_loop_takes_more_than_its_calls)
{
	for (tenths = 0; tenths <= 4; tenths += 4) {
		struct builder b;
		open_capture(&b, BATCH);
		cr_assert_eq(xsp_capture_put_info(b.w, "waits", "10"), 0);
		cr_assert_eq(xsp_capture_put_info(b.w, "samples", "cpu-clock 100"), 0);
		put_lines(&b);
		address_name(&b, XSP_NAME_OF_CODE, 1, "app\nwork_on");
		put_thread(&b, 100, "main");
		put_steps(&b, 50, MS, short_loop_inside);
		put_times(&b, 100, START, START + 50 * MS, 0, XSP_WAIT_LOCK, 0);
		struct xsp_report *r = report_of(&b, NULL);
		if (tenths == 0)
			expect_none(r, "python-loop");
		else
			expect(r, "python-loop", XSP_SEVERITY_HIGH, 0.015 + 0.4 * 0.985);
		xsp_report_free(r);
	}
}

/* Stacks differ by their instructions, places by their lines: it was two findings of 75 calls, and
 * so none. */
Test(rules_python, one_line_is_one_place)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_lines(&b);
	put_steps(&b, STEPS, MS, one_line_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "python-loop", XSP_SEVERITY_MEDIUM, 0.15);
	cr_expect_str_eq(f->finding.subject, "work at a.py:1 loop");
	cr_expect_eq(number_of(value_of(f->figures, "calls_per_step")), 150);
	cr_expect_eq(number_of(value_of(f->figures, "total_ns")), 150 * STEPS * US);
	xsp_report_free(r);
}

static void engine_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 150; i++)
		python_call(b, at + i * 2 * US, US, 5);
}

static void nodes_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 150; i++) {
		b->now = at + i * 2 * US;
		called_from(b, XSP_EVENT_ENTRY, BATCH, SP - 0x1000, 1);
		b->now += US;
		leave(b, BATCH, SP - 0x1000);
	}
}

/* `loss.backward()`: it is the engine that goes from node to node, whether or not it is the nodes that are recorded. */
Test(rules_python, backward_pass_is_no_loop_of_its_line)
{
	inside_fn *const passes[] = {engine_inside, nodes_inside};

	for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++) {
		struct builder b;
		open_capture(&b, BATCH);
		const struct xsp_capture_probe node = {
			.id = BATCH,
			.module = UINT32_MAX,
			.provider = "torch",
			.symbol = "",
			.name = "autograd::engine::evaluate_function: AddBackward0",
			.scope = XSP_SCOPE_BACKWARD,
			.exit_complete = true};
		cr_assert_eq(xsp_capture_put_probe(b.w, &node), 0);
		put_lines(&b);
		put_steps(&b, STEPS, MS, passes[i]);
		struct xsp_report *r = report_of(&b, NULL);
		expect_none(r, "python-loop");
		cr_expect(!had_no_data(r, "python-loop"));
		xsp_report_free(r);
	}
}

/* What a line calls in a loop is one finding, with the time of all of it. */
Test(rules_python, operations_of_one_line_are_one_loop)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_lines(&b);
	put_steps(&b, STEPS, 700 * US, two_operations_inside);
	struct xsp_report *r = report_of(&b, NULL);
	/* 120 times 700 ns of 0.7 ms */
	const struct xsp_report_found *f = expect(r, "python-loop", XSP_SEVERITY_MEDIUM, 0.12);
	cr_expect_str_eq(f->finding.subject, "work at a.py:1 loop");
	cr_expect_not_null(strstr(f->finding.title, "with 1 other operation:"), "%s",
			   f->finding.title);
	cr_expect_eq(number_of(value_of(f->figures, "calls")), 240 * STEPS);
	cr_expect_eq(number_of(value_of(f->figures, "calls_per_step")), 120);
	xsp_report_free(r);
}

/* Lines were on by default, and the brake dropped them in the middle: what is known of the steps
 * until then holds. */
static void loop_with_lines_at_first(struct builder *b, uint64_t at, unsigned step)
{
	for (unsigned i = 0; i < 150; i++)
		python_call(b, at + i * 2 * US, US, step < STEPS / 3 ? 1 : 0);
}

Test(rules_python, loop_whose_lines_ended_early)
{
	struct builder b;
	char text[32];

	open_capture(&b, BATCH);
	put_lines(&b);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)(START + STEPS / 3 * MS));
	cr_assert_eq(xsp_capture_put_info(b.w, "lines of Python until ns", text), 0);
	put_steps(&b, STEPS, MS, loop_with_lines_at_first);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "python-loop", XSP_SEVERITY_MEDIUM, 0.15);
	cr_expect_eq(number_of(value_of(f->figures, "calls_per_step")), 150);
	xsp_report_free(r);
}

/* Nobody removes a loop from a package: the program's own line is named first. */
Test(rules_python, loop_through_a_package)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_lines(&b);
	put_steps(&b, STEPS, MS, package_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "python-loop", XSP_SEVERITY_MEDIUM, 0.15);
	cr_expect_str_eq(f->finding.subject, "work at a.py:1 loop (in functional.py:1482 norm)");
	xsp_report_free(r);
}

Test(rules_python, no_loop_where_no_place_calls_so_often)
{
	inside_fn *const clean[] = {two_lines_inside, native_loop_inside};

	for (size_t i = 0; i < 2; i++) {
		struct builder b;
		open_capture(&b, BATCH);
		put_lines(&b);
		put_steps(&b, STEPS, MS, clean[i]);
		struct xsp_report *r = report_of(&b, NULL);
		expect_none(r, "python-loop");
		cr_expect(!had_no_data(r, "python-loop"));
		xsp_report_free(r);
	}
}

/* A line of Python calls the operation for `direct`, and another operation calls it for `nested`. */
static void nested_inside(struct builder *b, uint64_t at, uint64_t direct, uint64_t nested)
{
	python_call(b, at, direct, 1);
	b->now = at + direct + US;
	called_from(b, XSP_EVENT_ENTRY, ITEM, SP - 0x800, 2);
	python_call(b, at + direct + 2 * US, nested, 2);
	b->now = at + direct + nested + 3 * US;
	leave(b, ITEM, SP - 0x800);
}

static void mostly_nested(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	nested_inside(b, at, 100 * US, 400 * US);
}

static void mostly_direct(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	nested_inside(b, at, 400 * US, 100 * US);
}

Test(rules_python, line_of_a_hot_operation)
{
	inside_fn *const inside[] = {mostly_nested, mostly_direct};

	for (size_t i = 0; i < 2; i++) {
		struct builder b;
		open_capture(&b, BATCH);
		put_lines(&b);
		put_steps(&b, STEPS, MS, inside[i]);
		struct xsp_report *r = report_of(&b, NULL);
		const struct xsp_report_found *f =
			expect(r, "hot-operation", XSP_SEVERITY_HOT, 0.5);
		cr_expect_eq(strstr(f->finding.advice, "called from a.py:1 loop") != NULL, i == 1,
			     "%s", f->finding.advice);
		cr_expect_null(strstr(f->finding.advice, "a.py:2"), "%s", f->finding.advice);
		xsp_report_free(r);
	}
}

/* The program did something else for nine tenths of the time: the share of its steps' time is
 * unchanged. */
Test(rules_python, shares_are_of_steps_where_they_are_known)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_lines(&b);
	put_steps(&b, STEPS, MS, loop_inside);
	b.now = START + 100 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	expect(r, "python-loop", XSP_SEVERITY_MEDIUM, 0.15);
	const struct xsp_report_found *f = expect(r, "hot-operation", XSP_SEVERITY_HOT, 0.15);
	cr_expect_not_null(strstr(f->finding.title, "of the time of steps"), "%s",
			   f->finding.title);
	xsp_report_free(r);
}
