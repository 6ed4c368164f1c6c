/* SPDX-License-Identifier: BSD-2-Clause */
/* compare_account.c - the accounts of the time of two sides, place by place: in ns a step, or a second of a thread. */
#include "analysis/compare/compare_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/order.h"

#define LEAST 0.002 /* of a side's time: a smaller place is not compared */

/* A place on both sides; the mean of a side's captures. */
struct place {
	const char *name; /* as B calls it, if it has it */
	const char *side; /* as in other tables: NULL with two sides */
	double ns[2];
	bool in[2];
};

struct places {
	struct place *rows;
	size_t count, room;
};

/* Lines move with each edit, and what a place called in most of its time may be another call. */
bool xsp_compare_same_place(const char *a, const char *b)
{
	for (;; a++, b++) {
		if ((*a == ':' || *a == '(') && *a == *b) {
			a += strspn(a + 1, "0123456789");
			b += strspn(b + 1, "0123456789");
			continue;
		}
		const bool end_a = *a == '\0' || strncmp(a, "  ", 2) == 0,
			   end_b = *b == '\0' || strncmp(b, "  ", 2) == 0;
		if (end_a || end_b)
			return end_a && end_b;
		if (*a != *b)
			return false;
	}
}

static const struct xsp_report_section *account_of(const struct xsp_compare_capture *c)
{
	return c->report != NULL ? xsp_report_find_section(c->report, "account") : NULL;
}

/* Has each capture of the side an account, and of steps? */
static bool has_account(const struct xsp_compare_side *side, bool of_steps)
{
	bool has = side->count > 0;

	for (size_t i = 0; i < side->count; i++) {
		const struct xsp_report_section *s = account_of(&side->captures[i]);
		has = has && s != NULL && (!of_steps || xsp_number(s, "steps") > 0);
	}
	return has;
}

static int add_place(struct places *all, size_t side, const char *name, double ns)
{
	for (size_t i = 0; i < all->count; i++) {
		struct place *p = &all->rows[i];
		if (!xsp_compare_same_place(p->name, name))
			continue;
		p->name = side == 1 && !p->in[1] ? name : p->name;
		p->in[side] = true;
		p->ns[side] += ns;
		return 0;
	}
	struct place one = {.name = name};
	one.ns[side] = ns;
	one.in[side] = true;
	return XSP_APPEND(all->rows, all->room, all->count, one);
}

static int add_side(struct places *all, const struct xsp_compare_side *side, size_t index,
		    bool steps)
{
	int rc = 0;

	for (size_t i = 0; i < side->count; i++) {
		const struct xsp_report_table *t =
			xsp_report_find_table(account_of(&side->captures[i]), "places");
		for (size_t k = 0; k < xsp_report_row_count(t) && rc == 0; k++) {
			const double share = xsp_row_number(t, k, "share"),
				     ns = steps ? xsp_row_number(t, k, "each_ns") : 1e9 * share;
			if (xsp_row_text(t, k, "part") == NULL && share >= LEAST)
				rc = add_place(all, index, xsp_row_text(t, k, "what"),
					       ns / (double)side->count);
		}
	}
	return rc;
}

/* ---- the table ---- */

#define CELL(name, value) XSP_REPORT_CELL(place_##name, void, struct place, value)

CELL(a, row->in[0] ? xsp_cell_real(row->ns[0]) : xsp_cell_absent());
CELL(b, row->in[1] ? xsp_cell_real(row->ns[1]) : xsp_cell_absent());
CELL(change, xsp_cell_real(row->ns[1] - row->ns[0]));
CELL(ratio, row->in[0] && row->in[1] && row->ns[0] > 0 ? xsp_cell_real(row->ns[1] / row->ns[0])
						       : xsp_cell_absent());

static const struct xsp_report_column columns[] = {
	{"name", "where the time went", XSP_UNIT_TEXT, true, XSP_FIELD(struct place, name)},
	{"side", "side", XSP_UNIT_TEXT, true, XSP_FIELD(struct place, side)},
	{"a_ns", "A", XSP_UNIT_NS, false, XSP_BY(place_a)},
	{"b_ns", "B", XSP_UNIT_NS, false, XSP_BY(place_b)},
	{"change_ns", "change", XSP_UNIT_NS, false, XSP_BY(place_change)},
	{"ratio", "times", XSP_UNIT_NUMBER, false, XSP_BY(place_ratio)},
};
XSP_REPORT_SHAPE(compare, shape, "accounts", "places", "places", columns);

static XSP_ORDER(largest_change, struct place,
		 XSP_COMPARE(fabs(y->ns[1] - y->ns[0]), fabs(x->ns[1] - x->ns[0]))
			 ?: strcmp(x->name, y->name));

/* The mean time of a step of a side. */
static double step_ns(const struct xsp_compare_side *side)
{
	double sum = 0;

	for (size_t i = 0; i < side->count; i++) {
		const struct xsp_report_section *s = account_of(&side->captures[i]);
		sum += xsp_number(s, "ns") / xsp_number(s, "steps");
	}
	return sum / (double)side->count;
}

int xsp_compare_accounts(const struct pair *p, const char *side, struct xsp_report *report)
{
	const bool steps = has_account(p->a, true) && has_account(p->b, true);
	struct places all = {0};

	if (!has_account(p->a, false) || !has_account(p->b, false))
		return 0;
	int rc = add_side(&all, p->a, 0, steps);
	if (rc == 0)
		rc = add_side(&all, p->b, 1, steps);
	struct xsp_report_section *section =
		xsp_report_section(report, "accounts", "Where the time went");
	struct xsp_report_table *table = xsp_report_table(section, &shape);
	if (side == NULL) {
		xsp_report_value(section, "unit", "times are of", XSP_UNIT_TEXT,
				 xsp_cell_text(steps ? "one step" : "one second of a thread"));
		xsp_report_value(section, "a_ns", "A", XSP_UNIT_NS,
				 xsp_cell_real(steps ? step_ns(p->a) : 1e9));
		xsp_report_value(section, "b_ns", "B", XSP_UNIT_NS,
				 xsp_cell_real(steps ? step_ns(p->b) : 1e9));
	}
	if (all.count > 0)
		qsort(all.rows, all.count, sizeof(*all.rows), largest_change);
	for (size_t i = 0; i < all.count; i++) {
		all.rows[i].side = side;
		xsp_report_add(table, NULL, &all.rows[i]);
	}
	free(all.rows);
	return rc;
}
