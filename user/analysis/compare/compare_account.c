/* SPDX-License-Identifier: BSD-2-Clause */
/* compare_account.c - the accounts of the time of two sides, place by place: in ns a step, else a call of the function that they do
 * most of the time, else a second of a thread. */
#include "analysis/compare/compare_private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
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

/* ---- what times are of ---- */

#define CALLS_LEAST 10
#define CALLS_SHARE 0.5 /* of the account's time: it is what the program does */

struct unit {
	bool steps;
	const char *call; /* NULL: neither */
};

static const struct xsp_report_table *operations_of(const struct xsp_compare_capture *c)
{
	return xsp_report_find_table(xsp_report_find_section(c->report, "operations"),
				     "operations");
}

/* Was that operation there for most of the time? Then how often it was called, else 0. */
static double calls_in(const struct xsp_compare_capture *c, const struct xsp_report_table *t,
		       size_t row)
{
	const double calls = xsp_row_number(t, row, "calls");

	return calls >= CALLS_LEAST && xsp_row_number(t, row, "total_ns") >=
					       CALLS_SHARE * xsp_number(account_of(c), "ns")
		       ? calls
		       : 0;
}

/* The same by name. *total_ns is added to. */
static double calls_of(const struct xsp_compare_capture *c, const char *name, double *total_ns)
{
	const struct xsp_report_table *t = operations_of(c);

	for (size_t i = 0; i < xsp_report_row_count(t); i++) {
		if (strcmp(xsp_row_text(t, i, "name"), name) != 0)
			continue;
		*total_ns += xsp_row_number(t, i, "total_ns");
		return calls_in(c, t, i);
	}
	return 0;
}

/* How long all captures of both sides were in it together; 0: not all of them for most of their time. */
static double common_ns(const struct pair *p, const char *name)
{
	const struct xsp_compare_side *sides[2] = {p->a, p->b};
	double total_ns = 0;

	for (size_t side = 0; side < 2; side++)
		for (size_t k = 0; k < sides[side]->count; k++)
			if (calls_of(&sides[side]->captures[k], name, &total_ns) == 0)
				return 0;
	return total_ns;
}

/* The outermost function that all captures of both sides call for most of their time; NULL: there is none. */
static const char *common_call(const struct pair *p)
{
	const struct xsp_compare_capture *first = &p->a->captures[0];
	const struct xsp_report_table *t = operations_of(first);
	const char *best = NULL;
	double most = 0;

	for (size_t i = 0; i < xsp_report_row_count(t); i++) {
		const char *name = xsp_row_text(t, i, "name");
		const double ns = calls_in(first, t, i) > 0 ? common_ns(p, name) : 0;
		if (ns > most) {
			most = ns;
			best = name;
		}
	}
	return best;
}

static struct unit unit_of(const struct pair *p)
{
	const bool steps = has_account(p->a, true) && has_account(p->b, true);

	return (struct unit){steps, steps ? NULL : common_call(p)};
}

/* What a capture's times are divided by; 0: they are shares. */
static double divisor(const struct xsp_compare_capture *c, const struct unit *u)
{
	double ns = 0;

	return u->steps		 ? xsp_number(account_of(c), "steps")
	       : u->call != NULL ? calls_of(c, u->call, &ns)
				 : 0;
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
		    const struct unit *u)
{
	int rc = 0;

	for (size_t i = 0; i < side->count; i++) {
		const struct xsp_report_table *t =
			xsp_report_find_table(account_of(&side->captures[i]), "places");
		const double by = divisor(&side->captures[i], u);
		for (size_t k = 0; k < xsp_report_row_count(t) && rc == 0; k++) {
			const double share = xsp_row_number(t, k, "share");
			if (xsp_row_text(t, k, "part") == NULL && share >= LEAST)
				rc = add_place(
					all, index, xsp_row_text(t, k, "what"),
					(by > 0 ? xsp_row_number(t, k, "ns") / by : 1e9 * share) /
						(double)side->count);
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

/* The mean time of a step, or a call, of a side. */
static double whole_ns(const struct xsp_compare_side *side, const struct unit *u)
{
	double sum = 0;

	for (size_t i = 0; i < side->count; i++) {
		const double by = divisor(&side->captures[i], u);
		sum += by > 0 ? xsp_number(account_of(&side->captures[i]), "ns") / by : 1e9;
	}
	return sum / (double)side->count;
}

static void put_unit(const struct pair *p, const struct unit *u, struct xsp_report_section *section)
{
	char text[200];

	snprintf(text, sizeof(text), "one call of %.150s", u->call != NULL ? u->call : "");
	xsp_report_value(section, "unit", "times are of", XSP_UNIT_TEXT,
			 xsp_cell_text(u->steps		 ? "one step"
				       : u->call != NULL ? text
							 : "one second of a thread"));
	xsp_report_value(section, "a_ns", "A", XSP_UNIT_NS, xsp_cell_real(whole_ns(p->a, u)));
	xsp_report_value(section, "b_ns", "B", XSP_UNIT_NS, xsp_cell_real(whole_ns(p->b, u)));
}

int xsp_compare_accounts(const struct pair *p, const char *side, struct xsp_report *report)
{
	struct places all = {0};

	if (!has_account(p->a, false) || !has_account(p->b, false))
		return 0;
	const struct unit u = unit_of(p);
	int rc = add_side(&all, p->a, 0, &u);
	if (rc == 0)
		rc = add_side(&all, p->b, 1, &u);
	struct xsp_report_section *section =
		xsp_report_section(report, "accounts", "Where the time went");
	struct xsp_report_table *table = xsp_report_table(section, &shape);
	if (side == NULL)
		put_unit(p, &u, section);
	if (all.count > 0)
		qsort(all.rows, all.count, sizeof(*all.rows), largest_change);
	for (size_t i = 0; i < all.count; i++) {
		all.rows[i].side = side;
		xsp_report_add(table, NULL, &all.rows[i]);
	}
	free(all.rows);
	return rc;
}
