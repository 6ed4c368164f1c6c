/* SPDX-License-Identifier: BSD-2-Clause */
/* Values that programs report: what the bits of each type are, changes that add up, and what is no
 * value. */
#include <criterion/criterion.h>
#include <math.h>

#include "analysis/names/value_rows.h"
#include "capture_builder.h"

enum { RECORDED, COUNTER, INCREASE, DECREASE, PAYLOAD, OTHER, PROBES };
#define LOSS 7U
#define BATCH 8U

static void values_begin(struct builder *b)
{
	static const char *const symbols[PROBES] = {"xsp_record_function_value",
						    "__itt_counter_set_value",
						    "__itt_counter_inc_delta",
						    "__itt_counter_dec",
						    "nvtxMarkEx",
						    "main"};

	builder_begin(b, 0);
	for (uint32_t i = 0; i < PROBES; i++) {
		struct xsp_capture_probe p = {.id = i,
					      .module = UINT32_MAX,
					      .kind = XSP_PROBE_MARK,
					      .provider = "itt",
					      .symbol = symbols[i],
					      .name = "counter"};
		cr_assert_eq(xsp_capture_put_probe(b->w, &p), 0);
	}
	name(b, LOSS, "loss", 0);
	name(b, BATCH, "batch_size", 0);
}

static void tell(struct builder *b, uint32_t probe, uint64_t hash, uint32_t type, uint64_t bits)
{
	struct xsp_event_value v = {.head = {.kind = XSP_EVENT_VALUE, .probe = probe},
				    .name_hash = hash,
				    .type = type,
				    .bits = bits};

	builder_put(b, &v, sizeof(v));
}

static void tell_double(struct builder *b, uint64_t hash, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	tell(b, RECORDED, hash, 0, bits);
}

struct told {
	struct xsp_capture_reader *r;
	struct xsp_timeline *t;
	struct xsp_value list[32];
	size_t count;
	struct xsp_value_rows rows;
};

static int on_value(void *ctx, const struct xsp_value *value)
{
	struct told *told = ctx;

	cr_assert_lt(told->count, 32);
	told->list[told->count++] = *value;
	return xsp_value_rows_add(&told->rows, value);
}

/* The counts of the run. */
static struct xsp_timeline_counts run(struct builder *b, const struct xsp_cut *cut,
				      struct told *told)
{
	const struct xsp_timeline_sink sink = {.ctx = told, .value = on_value};
	struct xsp_error err = {0};

	*told = (struct told){.count = 0};
	builder_end(b);
	cr_assert_eq(xsp_capture_open(b->path, &told->r, &err), 0, "%s", err.text);
	unlink(b->path);
	cr_assert_eq(xsp_timeline_new(told->r, &told->t, &err), 0, "%s", err.text);
	if (cut != NULL)
		cr_assert_eq(xsp_timeline_cut(told->t, cut), 0);
	cr_assert_eq(xsp_timeline_run(told->t, &sink, 1, &err), 0, "%s", err.text);
	return *xsp_timeline_counts(told->t);
}

static void told_free(struct told *told)
{
	xsp_timeline_free(told->t);
	xsp_capture_close(told->r);
	xsp_tally_free(&told->rows);
}

Test(timeline_values, each_type)
{
	/* after a short one, any bytes may follow */
	static const struct {
		uint32_t probe, type;
		uint64_t bits;
		double value;
	} cases[] = {
		{COUNTER, 1, UINT64_C(1) << 63, 0x1p63},      {COUNTER, 2, UINT64_MAX, -1},
		{COUNTER, 3, 0xa5a5a5a5fffffffe, 4294967294}, {COUNTER, 4, 0xa5a5a5a5fffffffe, -2},
		{COUNTER, 5, 0xa5a5a5a5a5a5fffd, 65533},      {COUNTER, 6, 0xa5a5a5a5a5a5fffd, -3},
		{COUNTER, 7, 0xa5a5a5a53e800000, 0.25},	      {COUNTER, 8, 0x3fb999999999999a, 0.1},
		{PAYLOAD, 3, 0x3fb999999999999a, 0.1},	      {PAYLOAD, 5, 0xa5a5a5a5fffffffe, -2},
		{PAYLOAD, 6, 0xa5a5a5a53e800000, 0.25},
	};
	const size_t count = sizeof(cases) / sizeof(cases[0]);
	struct builder b;
	struct told told;

	values_begin(&b);
	for (size_t i = 0; i < count; i++)
		tell(&b, cases[i].probe, LOSS, cases[i].type, cases[i].bits);
	cr_expect_eq(run(&b, NULL, &told).values_unread, 0);
	cr_assert_eq(told.count, count);
	for (size_t i = 0; i < count; i++)
		cr_expect_eq(told.list[i].value, cases[i].value, "case %zu: %g", i,
			     told.list[i].value);
	told_free(&told);
}

Test(timeline_values, changes_add_up)
{
	struct builder b;
	struct told told;

	values_begin(&b);
	tell(&b, INCREASE, LOSS, 0, 5); /* from 0 on: the value before is unknown */
	tell(&b, DECREASE, LOSS, 0, UINT64_MAX); /* it has no argument */
	tell(&b, INCREASE, BATCH, 0, 1); /* another one */
	tell(&b, COUNTER, LOSS, 1, 100);
	tell(&b, INCREASE, LOSS, 0, 2);
	b.pid = b.tid = 200; /* another process */
	tell(&b, INCREASE, LOSS, 0, 7);
	run(&b, NULL, &told);
	static const double expected[] = {5, 4, 1, 100, 102, 7};
	cr_assert_eq(told.count, 6);
	for (size_t i = 0; i < 6; i++)
		cr_expect_eq(told.list[i].value, expected[i], "%zu: %g", i, told.list[i].value);
	cr_expect(told.list[4].pid == 100 && told.list[5].pid == 200);
	told_free(&told);
}

Test(timeline_values, what_is_none)
{
	struct builder b;
	struct told told;
	struct xsp_event_value unread = {.head = {.kind = XSP_EVENT_VALUE, .probe = RECORDED},
					 .name_hash = LOSS,
					 .flags = XSP_VALUE_UNREAD};

	values_begin(&b);
	builder_put(&b, &unread, sizeof(unread));
	tell(&b, COUNTER, LOSS, 0, 1);
	tell(&b, COUNTER, LOSS, 9, 1);
	tell(&b, COUNTER, LOSS, UINT32_MAX, 1);
	tell(&b, PAYLOAD, LOSS, 8, 1);
	tell(&b, RECORDED, LOSS, 1, 1);
	tell(&b, OTHER, LOSS, 0, 1); /* a function that reports none */
	tell(&b, RECORDED, 0, 0, 0); /* its probe's name */
	cr_expect_eq(run(&b, NULL, &told).values_unread, 7);
	cr_assert_eq(told.count, 1);
	cr_expect_str_eq(xsp_timeline_name(told.t, told.list[0].name), "counter");
	told_free(&told);
}

Test(timeline_values, part_of_the_time)
{
	struct builder b;
	struct told told;
	struct xsp_cut cut = {.to_ns = UINT64_MAX};

	values_begin(&b);
	tell_double(&b, LOSS, 1);
	cut.from_ns = b.now;
	tell_double(&b, LOSS, 2);
	tell_double(&b, LOSS, 3);
	cut.to_ns = b.now;
	tell_double(&b, LOSS, 4);
	run(&b, &cut, &told);
	cr_assert_eq(told.count, 2);
	cr_expect(told.list[0].value == 2 && told.list[1].value == 3);
	told_free(&told);
}

Test(timeline_values, figures)
{
	struct builder b;
	struct told told;

	values_begin(&b);
	tell_double(&b, LOSS, 1.5);
	tell_double(&b, LOSS, (double)NAN);
	tell_double(&b, LOSS, -0.5);
	tell_double(&b, LOSS, (double)INFINITY);
	tell_double(&b, BATCH, (double)NAN);
	for (int i = 0; i < 4; i++)
		tell_double(&b, 9, 0x1.8p1023); /* together, more than a double can hold */
	run(&b, NULL, &told);
	cr_assert_eq(told.rows.count, 3);
	const struct xsp_value_row *r = told.rows.rows;
	cr_expect(r[0].count == 4 && r[0].finite == 2);
	cr_expect(r[0].min == -0.5 && r[0].max == 1.5 && r[0].mean == 0.5);
	cr_expect(isinf(r[0].last));
	cr_expect(r[1].count == 1 && r[1].finite == 0 && isnan(r[1].last));
	cr_expect_eq(r[2].mean, 0x1.8p1023);
	told_free(&told);
}
