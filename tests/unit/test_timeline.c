/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairing: one case a rule of DESIGN.md section 4. Random programs: test_timeline_model.c. */
#include "capture_builder.h"

#define MAIN 0x7ffe00001000ULL /* a thread's own stack */
#define HEAP 0x55550000f000ULL /* stacks that the program allocated */

static const struct xsp_span *span_of(const struct result *r, const char *n, size_t nth)
{
	return &span_named(r, n, nth)->span;
}

static void expect(const struct result *r, const char *n, uint64_t start, uint64_t end_ns,
		   uint32_t flags, const char *stack)
{
	const struct seen *s = span_named(r, n, 0);
	cr_expect_eq(s->span.start_ns, start, "%s starts at %lu", n, s->span.start_ns);
	cr_expect_eq(s->span.end_ns, end_ns, "%s ends at %lu", n, s->span.end_ns);
	cr_expect_eq(s->span.flags, flags, "%s has flags %u", n, s->span.flags);
	cr_expect_str_eq(s->stack, stack);
}

Test(timeline, nested_calls_and_self_time)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 3);
	entry(&b, 0, MAIN); /* 1000 */
	entry(&b, 1, MAIN - 100); /* 1001 */
	entry(&b, 2, MAIN - 200); /* 1002 */
	leave(&b, 2, MAIN - 200); /* 1003 */
	leave(&b, 1, MAIN - 100); /* 1004 */
	entry(&b, 2, MAIN - 100); /* 1005 */
	leave(&b, 2, MAIN - 100); /* 1006 */
	leave(&b, 0, MAIN); /* 1007 */
	builder_result(&b, &r);
	cr_assert_eq(r.count, 4);
	expect(&r, "f0", 1000, 1007, 0, "f0");
	expect(&r, "f1", 1001, 1004, 0, "f0;f1");
	expect(&r, "f2", 1002, 1003, 0, "f0;f1;f2");
	cr_expect_eq(span_of(&r, "f0", 0)->self_ns, 7 - 3 - 1);
	cr_expect_eq(span_of(&r, "f1", 0)->self_ns, 3 - 1);
	cr_expect_str_eq(span_named(&r, "f2", 1)->stack, "f0;f2");
	/* children before parents */
	cr_expect_str_eq(r.spans[0].stack, "f0;f1;f2");
	cr_expect_str_eq(r.spans[3].stack, "f0");
	cr_expect_eq(r.counts.entries, 4);
	cr_expect_eq(r.counts.exits, 4);
	cr_expect_eq(r.counts.orphan_exits + r.counts.stack_switches + r.counts.exit_lost, 0);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, recursion_pairs_by_stack_pointer)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 1);
	for (uint64_t i = 0; i < 1000; i++)
		entry(&b, 0, MAIN - 64 * i);
	for (uint64_t i = 1000; i > 0; i--)
		leave(&b, 0, MAIN - 64 * (i - 1));
	builder_result(&b, &r);
	cr_assert_eq(r.count, 1000);
	for (size_t i = 0; i < r.count; i++) {
		cr_expect_eq(r.spans[i].span.depth, 999 - i);
		cr_expect_eq(r.spans[i].span.start_ns, 1999 - i);
		cr_expect_eq(r.spans[i].span.end_ns, 2000 + i);
	}
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, tail_call_seen_and_not_seen)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 4);
	entry(&b, 0, MAIN); /* 1000 */
	builder_event(&b, XSP_EVENT_EXIT, 0, MAIN, XSP_EVENT_SP_EXACT | XSP_EVENT_TAIL); /* 1001 */
	entry(&b, 1, MAIN); /* 1002 */
	entry(&b, 2, MAIN); /* 1003: tail call out of f1, not seen */
	leave(&b, 2, MAIN); /* 1004 */
	builder_result(&b, &r);
	expect(&r, "f0", 1000, 1001, XSP_SPAN_TAIL, "f0");
	expect(&r, "f1", 1002, 1003, XSP_SPAN_EXIT_LOST, "f1");
	expect(&r, "f2", 1003, 1004, 0, "f2");
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, exception_with_mark)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 4);
	entry(&b, 0, MAIN); /* 1000 */
	entry(&b, 1, MAIN - 100); /* 1001 */
	entry(&b, 2, MAIN - 200); /* 1002: throws */
	unwind(&b, MAIN - 92); /* 1003: caught in f0 */
	entry(&b, 3, MAIN - 300); /* 1004: deeper than what was left */
	leave(&b, 3, MAIN - 300); /* 1005 */
	leave(&b, 0, MAIN); /* 1006 */
	builder_result(&b, &r);
	expect(&r, "f1", 1001, 1003, XSP_SPAN_UNWOUND, "f0;f1");
	expect(&r, "f2", 1002, 1003, XSP_SPAN_UNWOUND, "f0;f1;f2");
	expect(&r, "f3", 1004, 1005, 0, "f0;f3");
	expect(&r, "f0", 1000, 1006, 0, "f0");
	cr_expect_eq(span_of(&r, "f0", 0)->self_ns, 6 - 2 - 1);
	cr_expect_eq(r.counts.unwound, 2);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, exception_without_mark)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 4);
	entry(&b, 0, MAIN); /* 1000 */
	entry(&b, 1, MAIN - 100); /* 1001 */
	entry(&b, 2, MAIN - 200); /* 1002 */
	entry(&b, 3, MAIN - 90); /* 1003: f1 and f2 are gone */
	leave(&b, 3, MAIN - 90); /* 1004 */
	leave(&b, 0, MAIN); /* 1005 */
	builder_result(&b, &r);
	expect(&r, "f1", 1001, 1003, XSP_SPAN_EXIT_LOST, "f0;f1");
	expect(&r, "f2", 1002, 1003, XSP_SPAN_EXIT_LOST, "f0;f1;f2");
	expect(&r, "f3", 1003, 1004, 0, "f0;f3");
	cr_expect_eq(span_of(&r, "f0", 0)->self_ns, 5 - 2 - 1);
	cr_expect_eq(span_of(&r, "f1", 0)->self_ns, 1);
	for (size_t i = 0; i < r.count; i++)
		cr_expect_eq(r.spans[i].span.row, 0, "an exception is no other stack");
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, mark_in_a_landing_that_calls_before_it_is_seen)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 4);
	entry(&b, 0, MAIN); /* 1000 */
	entry(&b, 1, MAIN - 200); /* 1001 */
	entry(&b, 2, MAIN - 100); /* 1002: a destructor, run before the mark */
	leave(&b, 2, MAIN - 100); /* 1003 */
	unwind(&b, MAIN - 50); /* 1004 */
	leave(&b, 0, MAIN); /* 1005 */
	builder_result(&b, &r);
	expect(&r, "f1", 1001, 1002, XSP_SPAN_UNWOUND, "f0;f1");
	check_invariants(&r);
	result_free(&r);
}

/* A function throws; its caller's landing pad calls traced destructors from where it called the function, and says only then
 * that the exception has landed. A second destructor, and the same in the frame above. */
Test(timeline, destructors_at_the_stack_pointer_of_what_threw)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 4);
	entry(&b, 3, MAIN); /* 1000 */
	entry(&b, 0, MAIN - 108); /* 1001 */
	entry(&b, 1, MAIN - 208); /* 1002 */
	entry(&b, 1, MAIN - 308); /* 1003: throws */
	entry(&b, 2, MAIN - 208); /* 1004: a destructor of f0's */
	leave(&b, 2, MAIN - 208); /* 1005 */
	entry(&b, 2, MAIN - 208); /* 1006 */
	leave(&b, 2, MAIN - 208); /* 1007 */
	unwind(&b, MAIN - 200); /* 1008: in f0, to go on */
	entry(&b, 2, MAIN - 108); /* 1009: one of f3's */
	leave(&b, 2, MAIN - 108); /* 1010 */
	unwind(&b, MAIN - 100); /* 1011: caught in f3 */
	leave(&b, 3, MAIN); /* 1012 */
	builder_result(&b, &r);
	expect(&r, "f1", 1002, 1004, XSP_SPAN_UNWOUND, "f3;f0;f1");
	cr_expect_eq(span_of(&r, "f1", 1)->start_ns, 1003);
	cr_expect_eq(span_of(&r, "f1", 1)->end_ns, 1004);
	cr_expect_eq(span_of(&r, "f1", 1)->flags, XSP_SPAN_UNWOUND);
	expect(&r, "f0", 1001, 1009, XSP_SPAN_UNWOUND, "f3;f0");
	expect(&r, "f2", 1004, 1005, 0, "f3;f0;f2");
	expect(&r, "f3", 1000, 1012, 0, "f3");
	cr_expect_eq(r.counts.exit_lost, 0);
	cr_expect_eq(r.counts.unwound, 3);
	check_invariants(&r);
	result_free(&r);
}

/* What throws is another call from there; of the first one nobody saw the end. */
Test(timeline, an_exit_that_was_lost_before_an_exception)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 4);
	entry(&b, 0, MAIN); /* 1000 */
	entry(&b, 1, MAIN - 108); /* 1001 */
	entry(&b, 2, MAIN - 108); /* 1002: f1 is gone; throws */
	unwind(&b, MAIN - 100); /* 1003 */
	entry(&b, 1, MAIN - 108); /* 1004 */
	entry(&b, 3, MAIN - 108); /* 1005 */
	leave(&b, 3, MAIN - 108); /* 1006 */
	leave(&b, 0, MAIN); /* 1007 */
	unwind(&b, MAIN + 92); /* 1008: further out than the lost one's caller */
	builder_result(&b, &r);
	expect(&r, "f1", 1001, 1002, XSP_SPAN_EXIT_LOST, "f0;f1");
	expect(&r, "f2", 1002, 1003, XSP_SPAN_UNWOUND, "f0;f2");
	cr_expect_eq(span_of(&r, "f1", 1)->start_ns, 1004);
	cr_expect_eq(span_of(&r, "f1", 1)->flags, XSP_SPAN_EXIT_LOST);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, two_fibers_next_to_each_other)
{
	/* f0 runs on the thread's own stack and starts both; each has f1 open while the other
	 * calls f2: pairs are exact although the stacks touch */
	struct builder b;
	struct result r;
	const uint64_t a = HEAP, c = HEAP + 65536;
	builder_begin(&b, 4);
	entry(&b, 0, MAIN);
	entry(&b, 1, a);
	entry(&b, 1, c);
	for (int i = 0; i < 20; i++) {
		entry(&b, 2, a - 128);
		entry(&b, 3, c - 128); /* f2 on a still open */
		leave(&b, 2, a - 128);
		leave(&b, 3, c - 128);
	}
	leave(&b, 1, a);
	leave(&b, 1, c);
	leave(&b, 0, MAIN);
	builder_result(&b, &r);
	cr_assert_eq(r.count, 43);
	cr_expect_eq(r.counts.orphan_exits, 0);
	cr_expect_eq(r.counts.exit_lost + r.counts.unfinished + r.counts.unwound, 0);
	for (size_t i = 0; i < 20; i++) {
		cr_expect_eq(span_of(&r, "f2", i)->start_ns, 1003 + 4 * i);
		cr_expect_eq(span_of(&r, "f2", i)->end_ns, 1005 + 4 * i);
		cr_expect_eq(span_of(&r, "f3", i)->start_ns, 1004 + 4 * i);
		cr_expect_eq(span_of(&r, "f3", i)->end_ns, 1006 + 4 * i);
	}
	check_invariants(&r);
	result_free(&r);
}

static void signal_stack(uint64_t handler_sp)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 4);
	entry(&b, 0, MAIN); /* 1000 */
	entry(&b, 1, MAIN - 100); /* 1001: interrupted */
	entry(&b, 2, handler_sp); /* 1002 */
	entry(&b, 3, handler_sp - 100); /* 1003 */
	leave(&b, 3, handler_sp - 100); /* 1004 */
	leave(&b, 2, handler_sp); /* 1005 */
	leave(&b, 1, MAIN - 100); /* 1006 */
	entry(&b, 1, MAIN - 100); /* 1007 */
	leave(&b, 1, MAIN - 100); /* 1008 */
	leave(&b, 0, MAIN); /* 1009 */
	builder_result(&b, &r);
	cr_assert_eq(r.count, 5);
	expect(&r, "f1", 1001, 1006, 0, "f0;f1");
	cr_expect_eq(span_of(&r, "f0", 0)->end_ns, 1009);
	cr_expect_eq(span_of(&r, "f2", 0)->end_ns, 1005);
	cr_expect_eq(span_of(&r, "f3", 0)->end_ns, 1004);
	cr_expect_str_eq(span_named(&r, "f1", 1)->stack, "f0;f1");
	cr_expect_eq(span_of(&r, "f0", 0)->row, 0);
	cr_expect_eq(r.counts.orphan_exits + r.counts.exit_lost, 0);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, signal_stack_below)
{
	signal_stack(HEAP);
}

Test(timeline, signal_stack_above)
{
	signal_stack(MAIN + 0x100000);
}

Test(timeline, signal_stack_just_above)
{
	signal_stack(MAIN + 0x4000);
}

Test(timeline, recursion_with_large_frames)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 1);
	for (uint64_t i = 0; i < 6; i++)
		entry(&b, 0, MAIN - i * 0x120000);
	for (uint64_t i = 6; i > 0; i--)
		leave(&b, 0, MAIN - (i - 1) * 0x120000);
	builder_result(&b, &r);
	cr_assert_eq(r.count, 6);
	for (size_t i = 0; i < 6; i++) {
		cr_expect_eq(r.spans[i].span.depth, 5 - i, "nested on one row");
		cr_expect_eq(r.spans[i].span.row, 0);
	}
	cr_expect_eq(r.counts.stack_switches, 0);
	result_free(&r);
}

Test(timeline, lost_exit_then_parent_returns)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 3);
	entry(&b, 0, MAIN); /* 1000 */
	entry(&b, 1, MAIN - 100); /* 1001: its exit is lost */
	leave(&b, 0, MAIN); /* 1002 */
	entry(&b, 0, MAIN); /* 1003 */
	entry(&b, 2, MAIN - 100); /* 1004 */
	leave(&b, 2, MAIN - 100); /* 1005 */
	leave(&b, 0, MAIN); /* 1006 */
	builder_result(&b, &r);
	expect(&r, "f1", 1001, 1002, XSP_SPAN_EXIT_LOST, "f0;f1");
	cr_expect_eq(span_of(&r, "f0", 0)->self_ns, 1);
	cr_expect_eq(r.counts.orphan_exits, 0);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, lost_entry_and_attach_in_the_middle)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 3);
	leave(&b, 1, MAIN - 100); /* begun before the recording */
	leave(&b, 0, MAIN);
	entry(&b, 0, MAIN);
	leave(&b, 1, MAIN - 100); /* its entry was lost */
	leave(&b, 0, MAIN);
	builder_result(&b, &r);
	cr_assert_eq(r.count, 1);
	cr_expect_eq(r.counts.orphan_exits, 3);
	cr_expect_eq(r.spans[0].span.flags, 0);
	check_invariants(&r);
	result_free(&r);
}

/* f0 falls into f1, and the instruction where f1 returns is an exit of both: in the order of the
 * links, or the other. */
static void exits_at_one_instruction(uint32_t first, uint32_t second)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 3);
	entry(&b, 2, MAIN); /* 1000 */
	for (int i = 0; i < 3; i++) {
		entry(&b, 1, MAIN - 100);
		leave(&b, first, MAIN - 100);
		leave(&b, second, MAIN - 100);
	}
	leave(&b, 2, MAIN); /* 1010 */
	leave(&b, first, MAIN + 64); /* one call, begun before */
	leave(&b, second, MAIN + 64);
	leave(&b, 1, MAIN - 100); /* its entry was lost, or it was entered otherwise */
	builder_result(&b, &r);
	cr_assert_eq(r.count, 4);
	for (size_t i = 0; i < 3; i++)
		cr_expect_eq(span_of(&r, "f1", i)->flags, 0);
	cr_expect_eq(r.counts.exit_lost, 0);
	cr_expect_eq(r.counts.begun_before, 1);
	cr_expect_eq(r.counts.orphan_exits, 2);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, functions_that_return_at_one_instruction)
{
	exits_at_one_instruction(0, 1);
	exits_at_one_instruction(1, 0);
}

Test(timeline, exit_without_exact_stack_pointer)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 2);
	entry(&b, 0, MAIN);
	entry(&b, 0, MAIN - 100);
	builder_event(&b, XSP_EVENT_EXIT, 0, MAIN - 180, 0); /* 1002: of the inner one */
	builder_event(&b, XSP_EVENT_EXIT, 0, MAIN - 80, 0); /* 1003: of the outer one */
	builder_result(&b, &r);
	cr_assert_eq(r.count, 2);
	cr_expect_eq(r.spans[0].span.start_ns, 1001);
	cr_expect_eq(r.spans[0].span.end_ns, 1002);
	cr_expect_eq(r.spans[1].span.start_ns, 1000);
	cr_expect_eq(r.spans[1].span.end_ns, 1003);
	result_free(&r);
}

Test(timeline, point_is_a_span_of_one_hit)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 2);
	entry(&b, 0, MAIN);
	builder_event(&b, XSP_EVENT_POINT, 1, MAIN - 8, XSP_EVENT_SP_EXACT | XSP_EVENT_TAIL);
	leave(&b, 0, MAIN);
	builder_result(&b, &r);
	expect(&r, "f1", 1001, 1001, XSP_SPAN_TAIL | XSP_SPAN_POINT, "f0;f1");
	cr_expect_eq(r.counts.points, 1);
	cr_expect_eq(r.counts.entries, 2);
	cr_expect_eq(r.counts.exits, 2);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, ranges_nest_with_functions)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 3);
	entry(&b, 0, MAIN); /* 1000 */
	begin(&b, 2, MAIN - 108, 7); /* 1001 */
	entry(&b, 1, MAIN - 108); /* 1002: same slot as the call that began the range */
	leave(&b, 1, MAIN - 108); /* 1003 */
	begin(&b, 2, MAIN - 108, 8); /* 1004 */
	end(&b, 2, MAIN - 108); /* 1005 */
	end(&b, 2, MAIN - 108); /* 1006 */
	leave(&b, 0, MAIN); /* 1007 */
	name(&b, 7, "outer", 0);
	name(&b, 8, "inner\xc3", XSP_EVENT_NAME_CUT);
	builder_result(&b, &r);
	expect(&r, "outer", 1001, 1006, 0, "f0;outer");
	expect(&r, "f1", 1002, 1003, 0, "f0;outer;f1");
	/* cut: marked, and without half a character */
	expect(&r, "inner\xe2\x80\xa6", 1004, 1005, 0, "f0;outer;inner\xe2\x80\xa6");
	cr_expect_eq(r.counts.names_unresolved, 0);
	check_invariants(&r);
	result_free(&r);
}

/* A text that is not in memory when its range begins gets a hash of its address. */
Test(timeline, one_text_of_two_hashes_is_one_name)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 1);
	begin(&b, 0, MAIN, 7); /* 1000 */
	end(&b, 0, MAIN);
	begin(&b, 0, MAIN, 8); /* 1002 */
	end(&b, 0, MAIN);
	begin(&b, 0, MAIN, 9); /* 1004 */
	end(&b, 0, MAIN);
	name(&b, 7, "same", 0);
	name(&b, 8, "same", 0);
	name(&b, 9, "same", XSP_EVENT_NAME_CUT);
	builder_result(&b, &r);
	cr_expect_eq(r.spans[0].span.name, r.spans[1].span.name);
	cr_expect_neq(r.spans[0].span.name, r.spans[2].span.name,
		      "a name that goes on is another one");
	cr_expect_str_eq(r.spans[1].name, "same");
	cr_expect_eq(r.counts.names_unresolved, 0);
	result_free(&r);
}

Test(timeline, range_names_that_never_come)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 1);
	begin(&b, 0, MAIN, 0xabc);
	begin(&b, 0, MAIN, 0);
	end(&b, 0, MAIN);
	end(&b, 0, MAIN);
	builder_result(&b, &r);
	cr_expect_eq(r.counts.names_unresolved, 1);
	cr_expect_str_eq(r.spans[0].name, "[name not readable]");
	cr_expect_str_eq(r.spans[1].name, "[name 0x0000000000000abc]");
	result_free(&r);
}

Test(timeline, range_begun_in_one_function_and_ended_in_another)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 4);
	entry(&b, 0, MAIN); /* 1000: push() */
	begin(&b, 3, MAIN - 24, 7); /* 1001 */
	leave(&b, 0, MAIN); /* 1002 */
	entry(&b, 1, MAIN); /* 1003: work() */
	leave(&b, 1, MAIN); /* 1004 */
	entry(&b, 2, MAIN); /* 1005: pop() */
	end(&b, 3, MAIN - 24); /* 1006 */
	leave(&b, 2, MAIN); /* 1007 */
	name(&b, 7, "r", 0);
	builder_result(&b, &r);
	cr_assert_eq(r.count, 4);
	cr_expect_eq(span_of(&r, "r", 0)->start_ns, 1001);
	cr_expect_eq(span_of(&r, "r", 0)->end_ns, 1006);
	cr_expect_eq(span_of(&r, "f0", 0)->end_ns, 1002);
	cr_expect_eq(span_of(&r, "f2", 0)->end_ns, 1007);
	cr_expect_eq(r.counts.orphan_exits + r.counts.exit_lost, 0);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, range_ended_under_an_open_function)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 4);
	begin(&b, 3, MAIN, 7); /* 1000 */
	entry(&b, 0, MAIN); /* 1001: pop() */
	end(&b, 3, MAIN - 24); /* 1002 */
	entry(&b, 1, MAIN - 24); /* 1003 */
	leave(&b, 1, MAIN - 24); /* 1004 */
	leave(&b, 0, MAIN); /* 1005 */
	name(&b, 7, "r", 0);
	builder_result(&b, &r);
	cr_assert_eq(r.count, 3);
	cr_expect_eq(span_of(&r, "r", 0)->end_ns, 1002);
	cr_expect_eq(span_of(&r, "f0", 0)->end_ns, 1005);
	cr_expect_str_eq(span_named(&r, "f1", 0)->stack, "f0;f1");
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, unwinding_closes_ranges_of_left_frames_only)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 3);
	entry(&b, 0, MAIN); /* 1000, its rsp is MAIN - 100 */
	begin(&b, 2, MAIN - 108, 7); /* 1001: begun by f0 itself, which catches */
	entry(&b, 1, MAIN - 108); /* 1002 */
	begin(&b, 2, MAIN - 124, 8); /* 1003 */
	unwind(&b, MAIN - 100); /* 1004 */
	end(&b, 2, MAIN - 108); /* 1005 */
	leave(&b, 0, MAIN); /* 1006 */
	name(&b, 7, "mine", 0);
	name(&b, 8, "left", 0);
	builder_result(&b, &r);
	expect(&r, "mine", 1001, 1005, 0, "f0;mine");
	expect(&r, "left", 1003, 1004, XSP_SPAN_UNWOUND, "f0;mine;f1;left");
	expect(&r, "f1", 1002, 1004, XSP_SPAN_UNWOUND, "f0;mine;f1");
	cr_expect_eq(r.counts.orphan_exits, 0);
	check_invariants(&r);
	result_free(&r);
}

/* An interpreter begins its ranges somewhere below, catches somewhere above, and goes on. */
Test(timeline, exception_caught_inside_a_range)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 4);
	entry(&b, 0, MAIN); /* 1000 */
	begin(&b, 3, MAIN - 900, 7); /* 1001 */
	entry(&b, 1, MAIN - 300); /* 1002: throws */
	unwind(&b, MAIN - 200); /* 1003 */
	entry(&b, 2, MAIN - 300); /* 1004 */
	leave(&b, 2, MAIN - 300); /* 1005 */
	end(&b, 3, MAIN - 800); /* 1006 */
	leave(&b, 0, MAIN); /* 1007 */
	name(&b, 7, "r", 0);
	builder_result(&b, &r);
	expect(&r, "r", 1001, 1006, 0, "f0;r");
	expect(&r, "f1", 1002, 1003, XSP_SPAN_UNWOUND, "f0;r;f1");
	expect(&r, "f2", 1004, 1005, 0, "f0;r;f2");
	cr_expect_eq(r.counts.orphan_exits, 0);
	check_invariants(&r);
	result_free(&r);
}

/* longjmp runs no destructors; its landing may still lie in the frame of a range. */
Test(timeline, longjmp_out_of_a_range)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 2);
	begin(&b, 1, MAIN - 80, 7); /* 1000: in a constructor */
	begin(&b, 1, MAIN - 400, 8); /* 1001 */
	builder_event(&b, XSP_EVENT_UNWIND, 0, MAIN, XSP_EVENT_JUMP); /* 1002 */
	entry(&b, 0, MAIN - 64); /* 1003 */
	leave(&b, 0, MAIN - 64); /* 1004 */
	end(&b, 1, MAIN - 96); /* 1005 */
	name(&b, 7, "lands", 0);
	name(&b, 8, "left", 0);
	builder_result(&b, &r);
	expect(&r, "lands", 1000, 1005, 0, "lands");
	expect(&r, "left", 1001, 1002, XSP_SPAN_UNWOUND, "lands;left");
	cr_expect_eq(r.counts.orphan_exits + r.counts.stack_switches, 0);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, ranges_end_by_their_object)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 2);
	begin(&b, 1, MAIN - 8, 7); /* 1000 */
	begin(&b, 1, MAIN - 8, 8); /* 1001 */
	begin(&b, 1, MAIN - 8, 9); /* 1002 */
	end_of(&b, 1, MAIN - 8, 1001, 100); /* 1003 */
	end_of(&b, 1, MAIN - 8, 1000, 100); /* 1004 */
	end_of(&b, 1, MAIN - 8, 1002, 100); /* 1005 */
	end_of(&b, 1, MAIN - 8, 1002, 100); /* 1006: nothing of the kind is open */
	name(&b, 7, "a", 0);
	name(&b, 8, "b", 0);
	name(&b, 9, "c", 0);
	builder_result(&b, &r);
	cr_expect_eq(span_of(&r, "a", 0)->end_ns, 1004);
	cr_expect_eq(span_of(&r, "b", 0)->end_ns, 1003);
	cr_expect_eq(span_of(&r, "c", 0)->end_ns, 1005);
	cr_expect_eq(r.counts.orphan_exits, 1);
	check_invariants(&r);
	result_free(&r);
}

/* The other thread's events may be read first, or last. */
static void ended_by_another_thread(unsigned ring)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 2);
	b.ring = 1;
	begin(&b, 1, MAIN - 8, 7); /* 1000 */
	b.tid = 101;
	b.ring = ring;
	entry(&b, 0, HEAP); /* 1001 */
	end_of(&b, 1, HEAP - 64, 1000, 100); /* 1002 */
	leave(&b, 0, HEAP); /* 1003 */
	b.tid = 100;
	b.ring = 1;
	entry(&b, 0, MAIN - 8); /* 1004 */
	leave(&b, 0, MAIN - 8); /* 1005 */
	name(&b, 7, "r", 0);
	builder_result(&b, &r);
	cr_assert_eq(r.count, 3);
	cr_expect_eq(span_of(&r, "r", 0)->end_ns, 1002);
	cr_expect_eq(span_of(&r, "r", 0)->tid, 100);
	cr_expect_eq(span_of(&r, "r", 0)->flags, 0);
	cr_expect_eq(r.counts.orphan_exits, 0);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, range_ended_by_another_thread)
{
	ended_by_another_thread(1);
	ended_by_another_thread(0);
	ended_by_another_thread(2);
}

Test(timeline, open_at_the_end)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 2);
	entry(&b, 0, MAIN);
	entry(&b, 1, MAIN - 8);
	builder_result(&b, &r);
	expect(&r, "f0", 1000, 1002, XSP_SPAN_UNFINISHED, "f0");
	expect(&r, "f1", 1001, 1002, XSP_SPAN_UNFINISHED, "f0;f1");
	cr_expect_eq(r.counts.unfinished, 2);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, thread_exit_and_exec)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 2);
	b.tid = 101;
	task(&b, XSP_TASK_FORK, "worker"); /* 1000 */
	entry(&b, 0, MAIN); /* 1001 */
	task(&b, XSP_TASK_EXIT, ""); /* 1002 */
	b.tid = 100;
	entry(&b, 1, MAIN); /* 1003 */
	task(&b, XSP_TASK_EXEC, "next"); /* 1004 */
	entry(&b, 1, MAIN - 64); /* 1005 */
	leave(&b, 1, MAIN - 64); /* 1006 */
	builder_result(&b, &r);
	expect(&r, "f0", 1001, 1002, XSP_SPAN_UNFINISHED, "f0");
	expect(&r, "f1", 1003, 1004, XSP_SPAN_UNWOUND, "f1");
	cr_expect_str_eq(span_named(&r, "f1", 1)->stack, "f1");
	const struct xsp_timeline_thread *threads;
	cr_assert_eq(xsp_timeline_threads(r.timeline, &threads), 2);
	cr_expect_eq(threads[0].tid, 100);
	cr_expect_str_eq(threads[0].comm, "next");
	cr_expect_str_eq(threads[1].comm, "worker");
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, tid_reuse)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 1);
	for (int i = 0; i < 3; i++) {
		b.tid = 200;
		task(&b, XSP_TASK_FORK, i == 2 ? "other" : "same");
		entry(&b, 0, MAIN);
		task(&b, XSP_TASK_EXIT, "");
	}
	b.pid = 300; /* the exit was not seen */
	entry(&b, 0, MAIN);
	builder_result(&b, &r);
	const struct xsp_timeline_thread *threads;
	cr_assert_eq(xsp_timeline_threads(r.timeline, &threads), 3);
	cr_expect_eq(r.counts.unfinished, 4);
	cr_expect_eq(xsp_timeline_thread(r.timeline, 200)->pid, 300);
	cr_expect_null(xsp_timeline_thread(r.timeline, 201));
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, namespaces_and_names_of_threads)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 1);
	struct xsp_capture_process p = {.pid = 100, .ns_pid = 1, .comm = "init", .exe = "/x"};
	struct xsp_capture_thread t = {.pid = 100, .tid = 105, .ns_tid = 6, .comm = "io"};
	cr_assert_eq(xsp_capture_put_process(b.w, &p), 0);
	cr_assert_eq(xsp_capture_put_thread(b.w, &t), 0);
	entry(&b, 0, MAIN);
	b.tid = 105;
	entry(&b, 0, MAIN);
	builder_result(&b, &r);
	const struct xsp_timeline_thread *threads;
	cr_assert_eq(xsp_timeline_threads(r.timeline, &threads), 2);
	cr_expect_eq(threads[0].ns_pid, 1);
	cr_expect_eq(threads[0].ns_tid, 1);
	cr_expect_str_eq(threads[0].comm, "init");
	cr_expect_eq(threads[1].ns_tid, 6);
	cr_expect_str_eq(threads[1].comm, "io");
	result_free(&r);
}

Test(timeline, a_function_whose_exits_are_never_seen)
{
	/* incomplete placement: a hundred thousand of them must neither pile up nor confuse */
	struct builder b;
	struct result r;
	builder_begin(&b, 3);
	entry(&b, 0, MAIN);
	for (uint64_t i = 0; i < 100000; i++) {
		entry(&b, 1, MAIN - 256 - 8 * (i % 7));
		entry(&b, 2, MAIN - 512);
		leave(&b, 2, MAIN - 512);
	}
	leave(&b, 0, MAIN);
	builder_result(&b, &r);
	cr_assert_eq(r.count, 200001);
	cr_expect_eq(r.counts.exit_lost, 100000);
	cr_expect_eq(r.counts.stack_switches, 0);
	for (size_t i = 0; i < r.count; i++)
		cr_assert_eq(r.spans[i].span.row, 0);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, a_fiber_keeps_its_children)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 4);
	entry(&b, 0, MAIN); /* 1000 */
	entry(&b, 1, HEAP); /* 1001: on a fiber */
	entry(&b, 2, MAIN - 100); /* 1002: back on the thread's own stack */
	entry(&b, 3, HEAP - 100); /* 1003: the fiber goes on */
	leave(&b, 2, MAIN - 100); /* 1004 */
	leave(&b, 3, HEAP - 100); /* 1005 */
	entry(&b, 3, HEAP - 200); /* 1006 */
	leave(&b, 3, HEAP - 200); /* 1007 */
	leave(&b, 0, MAIN); /* 1008 */
	builder_result(&b, &r);
	cr_assert_eq(r.count, 5);
	cr_expect_str_eq(span_named(&r, "f3", 0)->stack, "f1;f3");
	cr_expect_str_eq(span_named(&r, "f3", 1)->stack, "f1;f3");
	cr_expect_eq(span_of(&r, "f3", 1)->row, 1);
	expect(&r, "f2", 1002, 1004, 0, "f0;f2");
	/* it sleeps when the recording ends: not finished, and that is what is said */
	expect(&r, "f1", 1001, 1009, XSP_SPAN_UNFINISHED, "f1");
	cr_expect_eq(xsp_timeline_thread(r.timeline, 100)->rows, 2);
	cr_expect_gt(r.counts.stack_switches, 0);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, self_time_around_another_stack)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 4);
	entry(&b, 0, MAIN); /* 1000 */
	entry(&b, 1, MAIN - 0x800); /* 1001: interrupted */
	entry(&b, 2, MAIN - 0x400); /* 1002: handler, on a stack above */
	leave(&b, 2, MAIN - 0x400); /* 1003 */
	leave(&b, 1, MAIN - 0x800); /* 1004 */
	entry(&b, 3, MAIN - 0x800); /* 1005 */
	leave(&b, 3, MAIN - 0x800); /* 1006 */
	leave(&b, 0, MAIN); /* 1007 */
	builder_result(&b, &r);
	expect(&r, "f1", 1001, 1004, 0, "f0;f1");
	cr_expect_eq(span_of(&r, "f1", 0)->self_ns, 3 - 1, "the handler's time is not f1's");
	cr_expect_eq(span_of(&r, "f0", 0)->self_ns, 7 - 3 - 1);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, what_is_gone_does_not_come_back)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 4);
	entry(&b, 0, MAIN);
	entry(&b, 1, MAIN - 100); /* 1001: its exit is lost */
	entry(&b, 2, MAIN - 92); /* 1002: perhaps on another stack */
	leave(&b, 2, MAIN - 92);
	entry(&b, 3, MAIN - 100); /* the slot is used anew: f1 is gone */
	leave(&b, 3, MAIN - 100);
	entry(&b, 2, MAIN - 200);
	leave(&b, 2, MAIN - 200);
	leave(&b, 1, MAIN - 100); /* of a call whose entry was lost */
	leave(&b, 0, MAIN);
	builder_result(&b, &r);
	expect(&r, "f1", 1001, 1002, XSP_SPAN_EXIT_LOST, "f0;f1");
	cr_expect_eq(r.counts.orphan_exits, 1);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, more_stacks_than_rows)
{
	/* beyond the limits pairs may be lost, promises not */
	struct builder b;
	struct result r;
	builder_begin(&b, 3);
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 1500; i++)
			entry(&b, (uint32_t)round, HEAP + (i << 20) - 64 * (uint64_t)round);
	}
	for (int round = 3; round > 0; round--) {
		for (uint64_t i = 0; i < 1500; i++)
			leave(&b, (uint32_t)round - 1,
			      HEAP + (i << 20) - 64 * (uint64_t)(round - 1));
	}
	builder_result(&b, &r);
	cr_assert_eq(r.count, 4500);
	cr_expect_gt(r.counts.exits - r.counts.orphan_exits, 0);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, deeper_than_any_stack)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 1);
	for (uint64_t i = 0; i < 1100000; i++)
		entry(&b, 0, MAIN - 16 * i);
	builder_result(&b, &r);
	cr_assert_eq(r.count, 1100000);
	cr_expect_eq(r.counts.unfinished, 1 << 20);
	cr_expect_eq(r.counts.exit_lost, 1100000 - (1 << 20));
	check_invariants(&r);
	result_free(&r);
}

/* --max-overhead: nothing was seen between two windows. */
Test(timeline, no_span_goes_beyond_its_window)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 2);
	cr_assert_eq(xsp_capture_put_window(b.w, &(struct xsp_capture_window){1000, 1010}), 0);
	cr_assert_eq(xsp_capture_put_window(b.w, &(struct xsp_capture_window){2000, 3000}), 0);
	entry(&b, 0, MAIN); /* 1000 */
	entry(&b, 1, MAIN - 100); /* 1001 */
	b.now = 2000;
	leave(&b, 1, MAIN - 100); /* the same function and place, another call */
	entry(&b, 1, MAIN - 100); /* 2001 */
	leave(&b, 1, MAIN - 100); /* 2002 */
	entry(&b, 0, MAIN - 200); /* 2003 */
	b.now = 5000;
	builder_result(&b, &r);
	cr_assert_eq(r.count, 4);
	expect(&r, "f1", 1001, 1010, XSP_SPAN_UNFINISHED, "f0;f1");
	expect(&r, "f0", 1000, 1010, XSP_SPAN_UNFINISHED, "f0");
	cr_expect_eq(span_of(&r, "f1", 1)->start_ns, 2001);
	cr_expect_eq(span_of(&r, "f1", 1)->end_ns, 2002);
	cr_expect_str_eq(span_named(&r, "f1", 1)->stack, "f1");
	cr_expect_eq(span_of(&r, "f0", 1)->end_ns, 3000, "the last window has an end too");
	cr_expect_eq(r.counts.orphan_exits, 1);
	cr_expect_eq(xsp_capture_recorded_ns(r.reader), 1010);
	check_invariants(&r);
	result_free(&r);
}

static void let_go_of(struct builder *b, uint32_t probe, uint64_t time_ns)
{
	const struct xsp_capture_let_go l = {
		.probe = probe, .time_ns = time_ns, .calls_per_second = 7};

	cr_assert_eq(xsp_capture_put_let_go(b->w, &l), 0);
}

Test(timeline, what_was_let_go_of_is_closed_then)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 2);
	entry(&b, 1, MAIN); /* 1000 */
	entry(&b, 0, MAIN - 100); /* 1001 */
	let_go_of(&b, 0, 1500);
	/* hits while that was being done */
	b.now = 1501;
	leave(&b, 0, MAIN - 100);
	entry(&b, 0, MAIN - 100);
	b.now = 2000;
	leave(&b, 1, MAIN);
	builder_result(&b, &r);
	cr_assert_eq(r.count, 2);
	cr_expect_eq(r.counts.orphan_exits, 0);
	expect(&r, "f0", 1001, 1500, XSP_SPAN_UNFINISHED, "f1;f0");
	expect(&r, "f1", 1000, 2000, 0, "f1");
	result_free(&r);
}

/* On one stack: the self times of all inside a span, and its own, add up to the span's duration. */
static void check_self_times_add_up(const struct result *r)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct xsp_span *outer = &r->spans[i].span;
		uint64_t sum = 0;
		for (size_t k = 0; k < r->count; k++) {
			const struct xsp_span *s = &r->spans[k].span;
			if (s->start_ns >= outer->start_ns && s->end_ns <= outer->end_ns)
				sum += s->self_ns;
		}
		cr_expect_eq(sum, outer->end_ns - outer->start_ns, "%s: %lu inside %lu",
			     r->spans[i].name, sum, outer->end_ns - outer->start_ns);
		cr_expect_eq(outer->row, 0, "%s lies on a stack that is not there",
			     r->spans[i].name);
	}
}

static void expect_parent(const struct result *r, const char *n, const char *parent)
{
	cr_expect_eq(span_of(r, n, 0)->parent, span_of(r, parent, 0)->serial + 1, "%s in %s", n,
		     parent);
}

Test(timeline, what_was_let_go_of_stays_around_what_is_open_in_it)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 4);
	entry(&b, 0, MAIN); /* 1000: outer */
	entry(&b, 1, MAIN - 100); /* 1001: mid */
	b.now = 1100;
	entry(&b, 2, MAIN - 200); /* hot */
	let_go_of(&b, 1, 1200);
	b.now = 1300;
	leave(&b, 2, MAIN - 200);
	b.now = 1400;
	entry(&b, 3, MAIN - 200); /* slow: whether mid is still there is unknown */
	b.now = 1450;
	leave(&b, 3, MAIN - 200);
	b.now = 2000;
	leave(&b, 0, MAIN);
	builder_result(&b, &r);
	cr_assert_eq(r.count, 4);
	expect(&r, "f2", 1100, 1300, 0, "f0;f1;f2");
	expect(&r, "f1", 1001, 1300, XSP_SPAN_UNFINISHED, "f0;f1");
	expect(&r, "f3", 1400, 1450, 0, "f0;f3");
	expect(&r, "f0", 1000, 2000, 0, "f0");
	expect_parent(&r, "f2", "f1");
	expect_parent(&r, "f1", "f0");
	expect_parent(&r, "f3", "f0");
	cr_expect_eq(span_of(&r, "f1", 0)->self_ns, 299 - 200);
	cr_expect_eq(span_of(&r, "f0", 0)->self_ns, 1000 - 299 - 50);
	check_self_times_add_up(&r);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, what_was_let_go_of_ends_with_the_last_in_it_that_was_let_go_of)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 3);
	entry(&b, 0, MAIN); /* 1000 */
	entry(&b, 1, MAIN - 100); /* 1001 */
	entry(&b, 1, MAIN - 200); /* 1002: recursion */
	entry(&b, 2, MAIN - 300); /* 1003 */
	let_go_of(&b, 1, 1200);
	let_go_of(&b, 2, 1250);
	b.now = 2000;
	leave(&b, 0, MAIN);
	builder_result(&b, &r);
	cr_assert_eq(r.count, 4);
	expect(&r, "f2", 1003, 1250, XSP_SPAN_UNFINISHED, "f0;f1;f1;f2");
	expect(&r, "f1", 1002, 1250, XSP_SPAN_UNFINISHED, "f0;f1;f1");
	cr_expect_eq(span_of(&r, "f1", 1)->start_ns, 1001);
	cr_expect_eq(span_of(&r, "f1", 1)->end_ns, 1250);
	cr_expect_eq(span_of(&r, "f0", 0)->self_ns, 1000 - 249);
	check_self_times_add_up(&r);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, what_was_let_go_of_is_closed_on_a_stack_that_slept)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 4);
	entry(&b, 0, HEAP); /* 1000 */
	entry(&b, 1, HEAP - 100); /* 1001 */
	entry(&b, 2, MAIN); /* 1002: another stack */
	let_go_of(&b, 1, 1100);
	b.now = 1200;
	leave(&b, 2, MAIN); /* 1200 */
	entry(&b, 3, HEAP - 200); /* 1201: the first stack goes on, in f1 */
	leave(&b, 3, HEAP - 200); /* 1202 */
	entry(&b, 3, HEAP - 150); /* 1203: f1 would lie around this one too, and all that follow */
	leave(&b, 3, HEAP - 150); /* 1204 */
	leave(&b, 0, HEAP); /* 1205 */
	builder_result(&b, &r);
	cr_assert_eq(r.count, 5);
	expect(&r, "f1", 1001, 1202, XSP_SPAN_UNFINISHED, "f0;f1");
	expect(&r, "f3", 1201, 1202, 0, "f0;f1;f3");
	cr_expect_str_eq(span_named(&r, "f3", 1)->stack, "f0;f3");
	cr_expect_eq(r.counts.exit_lost, 0);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline, time_of_probes_inside)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 1);
	struct xsp_capture_probe p = {.id = 1,
				      .module = UINT32_MAX,
				      .provider = "function",
				      .symbol = "",
				      .name = "priced",
				      .entry_cost_ns = 100,
				      .exit_cost_ns = 50};
	cr_assert_eq(xsp_capture_put_probe(b.w, &p), 0);
	entry(&b, 0, MAIN); /* 1000 */
	entry(&b, 1, MAIN - 100); /* 1001 */
	b.now = 1100;
	leave(&b, 1, MAIN - 100); /* 99 later */
	b.now = 2000;
	leave(&b, 0, MAIN);
	builder_result(&b, &r);
	cr_expect_eq(span_of(&r, "priced", 0)->probe_ns, 50);
	cr_expect(xsp_span_is_mostly_probes(span_of(&r, "priced", 0)));
	cr_expect_geq(span_of(&r, "f0", 0)->probe_ns, 150);
	cr_expect(!xsp_span_is_mostly_probes(span_of(&r, "f0", 0)));
	result_free(&r);
}
