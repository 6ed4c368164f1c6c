/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows by key, with a limit; and how arrays are put in order. */
#include <criterion/criterion.h>
#include <errno.h>

#include "base/rows/grow.h"
#include "base/rows/tally.h"

struct row {
	uint32_t name;
	uint64_t ns, calls;
};

static XSP_ORDER(by_time, struct row, XSP_FALLING(ns) ?: XSP_RISING(name));
static XSP_ORDER(by_name, struct row, XSP_RISING(name));
static XSP_ORDER_POINTERS(pointers_by_name, struct row, XSP_RISING(name));

static void add(void *to, const void *more)
{
	((struct row *)to)->ns += ((const struct row *)more)->ns;
}

Test(tally, a_forgotten_key_finds_nothing)
{
	XSP_TALLY(struct row) t = {.count = 0};

	for (uint32_t i = 0; i < 3; i++)
		xsp_tally_row(&t, i, &(struct row){.name = i});
	xsp_tally_forget(&t, 1);
	cr_expect_null(xsp_tally_find(&t, 1));
	cr_expect_eq(t.rows[1].name, 1, "its row stays");
	t.rows[1] = t.rows[--t.count]; /* the last one moves there */
	xsp_tally_alias(&t, 2, &t.rows[1]);
	cr_expect_eq(xsp_tally_find(&t, 2), &t.rows[1]);
	cr_expect_eq(xsp_tally_index(&t, xsp_tally_row(&t, 1, &(struct row){.name = 1})), 2);
	xsp_tally_free(&t);
}

Test(tally, rows_by_key)
{
	XSP_TALLY(struct row) t = {.count = 0};

	cr_expect_null(xsp_tally_find(&t, 7));
	for (uint32_t i = 0; i < 3000; i++) {
		struct row *r = xsp_tally_row(&t, i % 1000 * 3, &(struct row){.name = i % 1000});
		cr_assert_not_null(r);
		cr_assert_eq(r->name, i % 1000, "a known one stays as it is");
		r->calls++;
	}
	cr_expect_eq(t.count, 1000);
	cr_expect_eq(t.tally.left_out, 0);
	for (uint32_t i = 0; i < 1000; i++) {
		cr_assert_eq(t.rows[i].name, i, "in the order in which they were met");
		cr_assert_eq(t.rows[i].calls, 3);
		cr_assert_eq(xsp_tally_find(&t, i * 3), &t.rows[i]);
		cr_assert_eq(xsp_tally_index(&t, &t.rows[i]), i);
	}
	xsp_tally_free(&t);
	cr_expect_null(t.rows);
	cr_expect_eq(t.count, 0);
}

Test(tally, a_limit_leaves_out_new_keys_only)
{
	XSP_TALLY(struct row) t = {.tally = {.most = 2}};

	for (unsigned n = 0; n < 2; n++)
		for (uint32_t key = 1; key <= 4; key++) {
			struct row *r = xsp_tally_row(&t, key, &(struct row){.name = key});
			cr_expect_eq(r != NULL, key <= 2);
			cr_expect_eq(t.tally.error, 0);
		}
	cr_expect_eq(t.count, 2);
	cr_expect_eq(t.tally.left_out, 4);
	xsp_tally_begin_anew(&t);
	cr_expect_eq(t.count, 0);
	cr_expect_null(xsp_tally_find(&t, 1));
	cr_expect_not_null(xsp_tally_row(&t, 3, &(struct row){.name = 3}));
	xsp_tally_free(&t);
	cr_expect_eq(t.tally.most, 2, "the limit stays");
}

Test(tally, a_row_that_cannot_be_made)
{
	XSP_TALLY(struct row) t = {.count = 0};

	cr_assert_not_null(xsp_tally_row(&t, 1, &(struct row){.name = 1}));
	t.tally.capacity = t.count = SIZE_MAX / 2 + 1; /* more than fits into memory */
	cr_expect_null(xsp_tally_row(&t, 2, &(struct row){.name = 2}));
	cr_expect_eq(t.tally.error, -ENOMEM);
	cr_expect_eq(t.tally.left_out, 0);
	cr_expect_eq(xsp_tally_find(&t, 1)->name, 1, "the others are still there");
	xsp_tally_free(&t);
}

Test(tally, several_keys_of_one_row)
{
	XSP_TALLY(struct row) t = {.count = 0};
	struct row *r = xsp_tally_row(&t, 1, &(struct row){.name = 5});

	cr_assert_eq(xsp_tally_alias(&t, 2, r), 0);
	cr_expect_eq(xsp_tally_row(&t, 2, &(struct row){.name = 6}), r);
	cr_expect_eq(t.count, 1);
	xsp_tally_free(&t);
}

Test(tally, sorted)
{
	XSP_TALLY(struct row) t = {.count = 0};
	const uint64_t ns[] = {10, 30, 20, 30};

	xsp_tally_sort(&t, by_time); /* none */
	for (uint32_t i = 0; i < 4; i++)
		xsp_tally_row(&t, i, &(struct row){.name = 3 - i, .ns = ns[i]});
	xsp_tally_sort(&t, by_time);
	const uint32_t order[] = {0, 2, 1, 3};
	for (unsigned i = 0; i < 4; i++)
		cr_expect_eq(t.rows[i].name, order[i]);
	cr_expect_null(xsp_tally_find(&t, 0), "keys are those of rows that have moved");
	const struct row **pointers = xsp_sorted(t.rows, t.count, pointers_by_name);
	cr_assert_not_null(pointers);
	for (uint32_t i = 0; i < 4; i++)
		cr_expect_eq(pointers[i]->name, i);
	free(pointers);
	pointers = xsp_sorted((struct row *)NULL, 0, pointers_by_name);
	cr_expect_not_null(pointers, "of none, too");
	free(pointers);
	xsp_tally_free(&t);
}

Test(tally, equal_rows_are_summed_up)
{
	struct row rows[] = {{3, 1, 0}, {1, 2, 0}, {3, 4, 0}, {2, 8, 0}, {3, 16, 0}, {1, 32, 0}};

	cr_assert_eq(XSP_SUM_UP(rows, 6, by_name, add), 3);
	const uint64_t sums[] = {34, 8, 21};
	for (uint32_t i = 0; i < 3; i++) {
		cr_expect_eq(rows[i].name, i + 1);
		cr_expect_eq(rows[i].ns, sums[i]);
	}
	cr_expect_eq(XSP_SUM_UP(rows, 1, by_name, add), 1);
	cr_expect_eq(XSP_SUM_UP((struct row *)NULL, 0, by_name, add), 0);
}

Test(tally, the_first_few_are_kept)
{
	const uint64_t ns[] = {5, 9, 1, 9, 7, 3, 8};
	struct row best[3];
	size_t count = 0;

	for (uint32_t i = 0; i < 7; i++)
		cr_expect_eq(XSP_RANK(best, &count, 3, &((struct row){i, ns[i], 0}), by_time),
			     i != 5, "%u", i);
	cr_assert_eq(count, 3);
	const uint32_t names[] = {1, 3, 6};
	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(best[i].name, names[i]);
}
