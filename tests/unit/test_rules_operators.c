/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations that take much of the time themselves, and what time their shares refer to. */

#include "analyze_check.h"

Test(rules_operators, hot_operation)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, hot_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "hot-operation", XSP_SEVERITY_HOT, 0.4);
	cr_expect_str_eq(f->finding.subject, "hot");
	cr_expect_eq(number_of(value_of(f->figures, "self_ns")), 10 * 400 * US);
	cr_expect_eq(number_of(value_of(f->figures, "calls")), STEPS);
	cr_expect_eq(number_of(value_of(f->figures, "calls_per_step")), 1);
	cr_expect_null(f->finding.uncertain);
	/* where to look is a call of it */
	cr_expect_eq(f->finding.to_ns - f->finding.from_ns, 400 * US);
	cr_expect_eq(f->finding.from_ns % MS, 10 * US);
	cr_expect(had_no_data(r, "lock") && had_no_data(r, "leak") && had_no_data(r, "sync"));
	cr_expect(!had_no_data(r, "hot-operation"));
	xsp_report_free(r);
}

/* CUDA is initialised once: in a short recording that is most of the time, and nobody's fault. */
Test(rules_operators, beginning_cuda_is_no_hot_operation)
{
	struct builder b;

	open_capture(&b, BATCH);
	call(&b, INIT, START, 8 * MS);
	b.now = START + 10 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);
}

/* One of forty calls was kept from its CPU: that says nothing about the operation. */
Test(rules_operators, one_call_makes_no_operation_hot)
{
	struct builder b;

	open_capture(&b, BATCH);
	for (uint64_t i = 0; i < 40; i++)
		call(&b, HOT, START + i * 500 * US, (i == 20 ? 400 : 40) * US);
	call(&b, HOT, START + 20 * MS, 8 * MS);
	b.now = START + 40 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	expect_clean(r);
	xsp_report_free(r);
}

/* Steps themselves are no operation: time outside of calls is not theirs. */
Test(rules_operators, clean_capture_has_no_finding)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, cool_inside);
	struct xsp_report *r = report_of(&b, NULL);
	expect_clean(r);
	const struct xsp_report_section *steps = xsp_report_find_section(r, "steps");
	cr_expect_eq(number_of(value_of(steps, "steps")), STEPS);
	expect_near(number_of(value_of(steps, "steps_per_second")), 1000, 0.1, "steps a second");
	const struct xsp_report_table *t =
		xsp_report_find_table(xsp_report_find_section(r, "operations"), "operations");
	const struct xsp_cell *row = NULL;
	for (size_t i = 0; i < xsp_report_row_count(t); i++)
		if (strcmp(xsp_report_row_at(t, i)[0].text, "hot") == 0)
			row = xsp_report_row_at(t, i);
	cr_assert_not_null(row);
	cr_expect_eq(row[1].integer, STEPS);
	cr_expect_eq(row[3].integer, STEPS * 95 * US);
	cr_expect_eq(number_of(&row[7]), 0, "std of what is always the same");
	xsp_report_free(r);
}

static void uneven_inside(struct builder *b, uint64_t at, unsigned step)
{
	call(b, WORK, at, step % 2 == 0 ? 10 * US : 30 * US);
}

Test(rules_operators, standard_deviation)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, uneven_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_table *t =
		xsp_report_find_table(xsp_report_find_section(r, "operations"), "operations");
	for (size_t i = 0; i < xsp_report_row_count(t); i++)
		if (strcmp(xsp_report_row_at(t, i)[0].text, "work") == 0)
			/* five of 10 and five of 30 us: squares 10 * 10^2, over 9 */
			expect_near(number_of(&xsp_report_row_at(t, i)[7]), 10540.925, 0.01, "std");
	xsp_report_free(r);
}

/* Time of many threads is no time of the program: a tenth of each of 8 is no eight tenths. */
Test(rules_operators, shares_of_several_threads)
{
	struct builder b;

	open_capture(&b, BATCH);
	for (uint32_t t = 0; t < 8; t++) {
		b.tid = 200 + t;
		call(&b, WORK, START, 9 * MS);
		call(&b, HOT, START + 9 * MS, MS - 1);
	}
	b.now = START + 10 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *all;
	const size_t n = xsp_report_findings(r, &all);
	for (size_t i = 0; i < n; i++)
		cr_expect(strcmp(all[i].finding.subject, "work") != 0 ||
				  (all[i].finding.share > 0.89 && all[i].finding.share < 0.91),
			  "%s: %f", all[i].finding.title, all[i].finding.share);
	cr_expect_gt(n, 0);
	xsp_report_free(r);
}
