/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranges whose name comes after their beginning: XSP_EVENT_LABEL. */
#include <criterion/criterion.h>

#include "capture_builder.h"
#include "catalog/relay.h"

#define SP 0x7ffc00001000ULL

static void label(struct builder *b, uint32_t probe, uint64_t begin_ns, uint64_t hash)
{
	struct xsp_event_label l = {.head = {.kind = XSP_EVENT_LABEL,
					     .probe = probe,
					     .flags = hash == 0 ? XSP_EVENT_NAME_LOST : 0},
				    .name_hash = hash,
				    .begin_ns = begin_ns};
	builder_put(b, &l, sizeof(l));
}

static void names(struct builder *b)
{
	name(b, 7, "caller", 0); /* 1000 */
	name(b, 8, "label a", 0); /* 1001 */
	name(b, 9, "label b", 0); /* 1002 */
}

static void expect(const struct result *r, const char *stack, uint64_t start, uint64_t stop)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->spans[i].stack, stack) == 0 && r->spans[i].span.start_ns == start &&
		    r->spans[i].span.end_ns == stop)
			return;
	cr_expect_fail("no %s from %ju to %ju", stack, (uintmax_t)start, (uintmax_t)stop);
}

Test(timeline_label, the_range_that_began_then)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 2);
	names(&b);
	begin(&b, 0, SP, 7); /* 1003 */
	begin(&b, 0, SP, 7); /* 1004, the same function, stack pointer and probe */
	label(&b, 0, 1003, 8);
	label(&b, 0, 1004, 9);
	entry(&b, 1, SP - 64); /* 1007 */
	leave(&b, 1, SP - 64); /* 1008 */
	end(&b, 0, SP); /* 1009 */
	end(&b, 0, SP); /* 1010 */
	builder_result(&b, &r);
	cr_assert_eq(r.count, 3);
	expect(&r, "label a", 1003, 1010);
	expect(&r, "label a;label b", 1004, 1009);
	expect(&r, "label a;label b;f1", 1007, 1008);
	check_invariants(&r);
	result_free(&r);
}

/* Probe 0 passes its ranges on to 1 when it names them, 1 to 2 as they begin. */
static void relays_begin(struct builder *b)
{
	builder_begin(b, 0);
	for (uint32_t i = 0; i < 3; i++) {
		struct xsp_capture_probe p = {.id = i,
					      .module = UINT32_MAX,
					      .provider = "",
					      .symbol = "",
					      .name = "range",
					      .relay = (uint8_t)(XSP_RELAY_LABEL + i),
					      .nests = i == 2};
		cr_assert_eq(xsp_capture_put_probe(b->w, &p), 0);
	}
	names(b);
}

Test(timeline_label, a_range_that_is_passed_on_is_one)
{
	struct builder b;
	struct result r;
	relays_begin(&b);
	begin(&b, 0, SP, 7); /* 1003 */
	label(&b, 0, 1003, 8);
	begin(&b, 1, SP - 64, 8); /* passed on */
	begin(&b, 2, SP - 128, 8); /* ... twice */
	begin(&b, 2, SP - 56, 8); /* 1007: a task of the program's own */
	end(&b, 2, SP); /* 1008: wherever it ends */
	end_of(&b, 0, SP, 1003, 100); /* 1009 */
	end(&b, 1, SP - 32);
	end(&b, 2, SP - 64);
	builder_result(&b, &r);
	cr_assert_eq(r.count, 2);
	expect(&r, "label a", 1003, 1009);
	expect(&r, "label a;label a", 1007, 1008);
	cr_expect_eq(r.counts.relayed, 2);
	cr_expect_eq(r.counts.orphan_exits, 0);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline_label, ranges_that_are_not_passed_on)
{
	struct builder b;
	struct result r;
	relays_begin(&b);
	begin(&b, 0, SP, 8); /* 1003: nobody has named it */
	begin(&b, 1, SP - 64, 8); /* 1004 */
	begin(&b, 2, SP - 64, 8); /* 1005: not from inside what began the last one */
	begin(&b, 1, SP - 128, 9); /* 1006 */
	begin(&b, 2, SP - 256, 8); /* 1007: another name */
	end(&b, 2, SP - 256); /* 1008 */
	begin(&b, 2, SP - 256, 9); /* 1009: something has ended since */
	end(&b, 2, SP); /* 1010 */
	end(&b, 1, SP - 128); /* 1011 */
	end(&b, 2, SP); /* 1012: the one of 1005 */
	end(&b, 1, SP - 64); /* 1013 */
	end_of(&b, 0, SP, 1003, 100); /* 1014 */
	builder_result(&b, &r);
	cr_assert_eq(r.count, 6);
	expect(&r, "label a", 1003, 1014);
	expect(&r, "label a;label a;label a;label b;label b", 1009, 1010);
	cr_expect_eq(r.counts.relayed, 0);
	cr_expect_eq(r.counts.orphan_exits, 0);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline_label, what_labels_nothing)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 2);
	names(&b);
	begin(&b, 0, SP, 7); /* 1003 */
	label(&b, 0, 1003, 0); /* lost */
	label(&b, 0, 1002, 8); /* no range began then */
	label(&b, 1, 1003, 8); /* another probe's */
	b.tid = 101;
	label(&b, 0, 1003, 8); /* another thread's */
	b.tid = 100;
	end(&b, 0, SP); /* 1008 */
	label(&b, 0, 1003, 8); /* too late */
	builder_result(&b, &r);
	cr_assert_eq(r.count, 1);
	expect(&r, "caller", 1003, 1008);
	check_invariants(&r);
	result_free(&r);
}

Test(timeline_label, a_range_that_is_parked)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 2);
	names(&b);
	entry(&b, 1, SP); /* 1003 */
	begin(&b, 0, SP - 64, 7); /* 1004 */
	/* another stack, far above: the first one sleeps */
	entry(&b, 1, SP + (1ULL << 30)); /* 1005 */
	label(&b, 0, 1004, 8); /* 1006 */
	leave(&b, 1, SP + (1ULL << 30)); /* 1007 */
	end(&b, 0, SP - 64); /* 1008 */
	leave(&b, 1, SP); /* 1009 */
	builder_result(&b, &r);
	expect(&r, "f1;label a", 1004, 1008);
	result_free(&r);
}

Test(timeline_label, one_that_is_too_short_is_counted)
{
	struct builder b;
	struct result r;
	builder_begin(&b, 1);
	begin(&b, 0, SP, 0); /* 1000 */
	struct xsp_event_range short_one = {.head = {.kind = XSP_EVENT_LABEL}, .name_hash = 8};
	builder_put(&b, &short_one, sizeof(short_one));
	end(&b, 0, SP);
	builder_result(&b, &r);
	cr_expect_eq(r.count, 1);
	result_free(&r);
}
