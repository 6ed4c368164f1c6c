/* SPDX-License-Identifier: BSD-2-Clause */
/* compare_names.c - makes rows from the series of two sides: steps, operators, lines, modules,
 * kernels. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/compare_private.h"
#include "base/rows/order.h"
#include "base/rows/tally.h"

#define LEAST_TELLING 3U /* operators that show what the machine did */
#define TELLING 0.01 /* least share of the time of each of them */

/* ---- names on both sides ---- */

struct names {
	XSP_TALLY(struct joined) list; /* by hash of the name */
	double all[2]; /* own time of each side, ns */
};

static void free_names(struct names *names)
{
	for (size_t i = 0; i < names->list.count; i++)
		free(names->list.rows[i].rows);
	xsp_tally_free(&names->list);
}

static int join(const struct pair *p, struct names *names, enum xsp_series_kind kind,
		size_t capture)
{
	const struct xsp_series_row *rows;
	const size_t n = xsp_series_rows(p->series[capture], kind, &rows);

	for (size_t i = 0; i < n; i++) {
		if (rows[i].calls == 0 && rows[i].timed == 0) /* a name that occurs nowhere */
			continue;
		struct joined *j = xsp_tally_row(&names->list, rows[i].hash,
						 &(struct joined){.name = rows[i].name});
		if (j != NULL && j->rows == NULL)
			j->rows = calloc(p->from[2], sizeof(*j->rows));
		if (j == NULL || j->rows == NULL)
			return -ENOMEM;
		j->rows[capture] = &rows[i];
	}
	return 0;
}

/* A row's own time on one side. */
static double own_ns(const struct pair *p, const struct joined *j, unsigned side)
{
	double sum = 0;

	for (size_t i = p->from[side]; i < p->from[side + 1] && j->rows != NULL; i++)
		sum += j->rows[i] != NULL ? (double)j->rows[i]->self_ns : 0;
	return sum;
}

static void sum_names(const struct pair *p, struct names *names)
{
	for (size_t i = 0; i < names->list.count; i++)
		for (unsigned side = 0; side < 2; side++)
			names->all[side] += own_ns(p, &names->list.rows[i], side);
}

static int join_all(const struct pair *p, enum xsp_series_kind kind, struct names *names)
{
	int rc = 0;

	for (size_t i = 0; i < p->from[2] && rc == 0; i++)
		rc = join(p, names, kind, i);
	sum_names(p, names);
	return rc;
}

/* Its share of all own time, on the side where that is larger. */
static double share_of(const struct pair *p, const struct names *names, const struct joined *j)
{
	return fmax(own_ns(p, j, 0) / fmax(names->all[0], 1),
		    own_ns(p, j, 1) / fmax(names->all[1], 1));
}

/* Does any capture of the side have it? Sets *seldom if some capture has it in too few pieces of
 * time. */
static bool is_there(const struct pair *p, const struct joined *j, unsigned side, bool *seldom)
{
	bool there = false, always = true;

	for (size_t i = p->from[side]; i < p->from[side + 1]; i++) {
		unsigned pieces = 0;
		for (unsigned k = 0; j->rows[i] != NULL && k < XSP_SERIES_PIECES; k++)
			pieces += j->rows[i]->pieces[k] != NULL;
		there = there || j->rows[i] != NULL;
		always = always && pieces >= LEAST_BLOCKS;
	}
	*seldom = *seldom || (there && !always);
	return there;
}

/* Mean calls per step; NAN: no steps. */
static double calls_in_steps(const struct pair *p, const struct joined *j, unsigned side)
{
	double ns[XSP_SERIES_STEPS], calls[XSP_SERIES_STEPS], steps_ns[XSP_SERIES_STEPS];
	double sum = 0;
	size_t steps = 0;

	for (size_t i = p->from[side]; i < p->from[side + 1]; i++) {
		const size_t n = xsp_series_steps(p->series[i], steps_ns);
		steps += n;
		if (j->rows[i] == NULL)
			continue;
		xsp_series_shares(p->series[i], j->rows[i], false, ns, calls);
		for (size_t k = 0; k < n; k++)
			sum += calls[k];
	}
	return steps > 0 ? sum / (double)steps : NAN;
}

/* ---- the common change of operators, or of a device's kernels ---- */

/* Known at enough points; in steps at all of them. */
static bool tells(const struct both *t, enum compared what)
{
	for (unsigned side = 0; side < 2; side++) {
		size_t known = 0;
		for (size_t i = 0; i < t->sides[side].count; i++)
			known += isnan(t->sides[side].values[i]) ? 0 : 1;
		if (known < LEAST_BLOCKS ||
		    (xsp_compare_is_of_steps(what) && known < t->sides[side].count))
			return false;
	}
	return true;
}

/* At each point: the median deviation of all names from their usual values. */
static int median_of_all(const struct both *all, size_t count, unsigned side, struct measured *out)
{
	int rc = 0;

	for (size_t i = 0; i < all[0].sides[side].count && rc == 0; i++) {
		struct measured here = {0};
		double middle = NAN;
		for (size_t k = 0; k < count && rc == 0; k++)
			rc = xsp_compare_put(&here,
					     all[k].sides[side].values[i] - all[k].middle[0]);
		if (rc == 0)
			rc = xsp_compare_middle(&here, &middle);
		out->capture = all[0].sides[side].of[i];
		if (rc == 0)
			rc = xsp_compare_put(out, middle);
		free(here.values);
		free(here.of);
	}
	return rc;
}

/* With too few names there is no common change: no values. */
static int find_common(const struct pair *p, const struct names *names, enum compared what,
		       struct both *out)
{
	struct both *all = calloc(names->list.count + 1, sizeof(*all));
	size_t count = 0;
	int rc = all != NULL ? 0 : -ENOMEM;

	/* the last round is the time in no call */
	for (size_t i = 0; i <= names->list.count && rc == 0; i++) {
		const struct joined *j = i < names->list.count ? &names->list.rows[i] : NULL;
		struct both *t = &all[count];
		if (j != NULL ? share_of(p, names, j) < TELLING : !xsp_compare_is_of_steps(what))
			continue;
		rc = xsp_compare_times(p, j, what, t);
		if (rc == 0 && tells(t, what)) {
			count++;
		} else {
			xsp_compare_free(t);
			*t = (struct both){0};
		}
	}
	for (unsigned side = 0; side < 2 && rc == 0 && count >= LEAST_TELLING; side++)
		rc = median_of_all(all, count, side, &out->sides[side]);
	for (size_t i = 0; i < count; i++)
		xsp_compare_free(&all[i]);
	free(all);
	return rc == 0 ? xsp_compare_middles(out) : rc;
}

/* ---- rows ---- */

static void subtract(struct measured *m, const struct measured *common)
{
	for (size_t i = 0; i < m->count && i < common->count; i++)
		m->values[i] -= common->values[i];
}

static int compare_times(struct pair *p, const struct joined *j, const struct both *common,
			 struct comparison *c)
{
	/* with repeats a whole step may be slower: the spread of the repeats holds the machine's
	 * share */
	const bool beside = !p->repeats || c->what != COMPARED_STEP;
	struct both times = {0};
	int rc = xsp_compare_times(p, j, c->what, &times);

	if (rc == 0) {
		c->fastest = NAN;
		c->alone = common->sides[0].count == 0;
		c->raw = times.middle[1] - times.middle[0];
		for (unsigned side = 0; side < 2; side++) {
			c->typical[side] = exp(times.middle[side]);
			if (beside)
				subtract(&times.sides[side], &common->sides[side]);
		}
		rc = xsp_compare_difference(p, &times, c);
	}
	if (rc == 0)
		rc = xsp_compare_add(p, c);
	xsp_compare_free(&times);
	return rc;
}

static int compare_name(struct pair *p, const struct names *names, const struct joined *j,
			enum xsp_series_kind kind, const struct both common[2])
{
	static const enum compared kinds[] = {
		[XSP_SERIES_OPERATOR] = COMPARED_OPERATOR,
		[XSP_SERIES_LINE] = COMPARED_LINE,
		[XSP_SERIES_MODULE] = COMPARED_MODULE,
		[XSP_SERIES_KERNEL] = COMPARED_KERNEL,
	};
	struct comparison c = xsp_compare_row(kinds[kind], j->name);

	for (unsigned side = 0; side < 2; side++) {
		c.in[side] = is_there(p, j, side, &c.seldom);
		c.calls[side] = calls_in_steps(p, j, side);
	}
	c.share = share_of(p, names, j);
	int rc = compare_times(p, j, &common[1], &c);
	/* a name that is in few steps has no time per step */
	if (rc < 0 || kind != XSP_SERIES_OPERATOR || !p->steps || !c.in[0] || !c.in[1])
		return rc;
	c.what = COMPARED_IN_STEP;
	c.d = (struct xsp_difference){0};
	return compare_times(p, j, &common[0], &c);
}

static int compare_names(struct pair *p, enum xsp_series_kind kind, const struct both common[2])
{
	struct names names = {0};
	int rc = join_all(p, kind, &names);

	for (size_t i = 0; i < names.list.count && rc == 0; i++)
		rc = compare_name(p, &names, &names.list.rows[i], kind, common);
	free_names(&names);
	return rc;
}

/* Once for blocks of steps, once for pieces of time. */
static int find_commons(struct pair *p, struct both common[2])
{
	struct names names = {0};
	int rc = join_all(p, XSP_SERIES_OPERATOR, &names);

	if (rc == 0 && p->steps)
		rc = find_common(p, &names, COMPARED_IN_STEP, &common[0]);
	if (rc == 0)
		rc = find_common(p, &names, COMPARED_OPERATOR, &common[1]);
	for (unsigned i = 0; i < 2 && rc == 0 && !p->common_known; i++) {
		p->common_known = common[i].sides[0].count > 0;
		p->common = p->common_known ? common[i].middle[1] - common[i].middle[0] : 0;
	}
	free_names(&names);
	return rc;
}

/* ---- kernels, by the device on which they ran ---- */

/* The one device of all captures of a side, or "several". */
static uint32_t device_of(const struct pair *p, const struct joined *j, unsigned side)
{
	const struct xsp_series_row *first = NULL;

	for (size_t i = p->from[side]; i < p->from[side + 1]; i++) {
		if (j->rows[i] == NULL)
			continue;
		first = first != NULL ? first : j->rows[i];
		if (j->rows[i]->device != first->device)
			return XSP_SERIES_DEVICES;
	}
	return first != NULL ? first->device : XSP_SERIES_DEVICES;
}

static XSP_ORDER(by_devices, struct joined, XSP_RISING(devices[0]) ?: XSP_RISING(devices[1]));

/* " of device 1", or if the other side used another device " of device 1 (device 0 in A)". */
static void name_devices(const struct joined *j, struct device_change *d, bool only)
{
	char one[2][24];

	for (unsigned side = 0; side < 2; side++)
		snprintf(one[side], sizeof(one[side]),
			 j->devices[side] == XSP_SERIES_DEVICES ? "several devices" : "device %u",
			 j->devices[side]);
	if (j->devices[0] == j->devices[1])
		snprintf(d->kernels, sizeof(d->kernels), " of %s", one[1]);
	else
		snprintf(d->kernels, sizeof(d->kernels), " of %s (%s in A)", one[1], one[0]);
	if (only)
		d->kernels[0] = '\0';
	snprintf(d->all, sizeof(d->all), "[all kernels%s]", d->kernels);
}

/* `of`: the names in `all` that ran on one device. */
static int compare_device(struct pair *p, const struct names *all, const struct names *of,
			  struct device_change *d)
{
	struct both common[2] = {{.sides = {{0}, {0}}}, {.sides = {{0}, {0}}}};
	int rc = find_common(p, of, COMPARED_KERNEL, &common[1]);

	for (size_t i = 0; i < of->list.count && rc == 0; i++)
		rc = compare_name(p, all, &of->list.rows[i], XSP_SERIES_KERNEL, common);
	d->by = common[1].middle[1] - common[1].middle[0];
	d->known = rc == 0 && common[1].sides[0].count > 0;
	/* With repeats the common change gets a row of its own, as operators have the step's.
	 * The row has no time. */
	if (d->known && p->repeats) {
		struct comparison c = xsp_compare_row(COMPARED_KERNEL, d->all);
		c.raw = d->by;
		rc = xsp_compare_difference(p, &common[1], &c);
		if (rc == 0)
			rc = xsp_compare_add(p, &c);
	}
	xsp_compare_free(&common[1]);
	return rc;
}

static int compare_devices(struct pair *p, const struct names *names)
{
	int rc = 0;

	p->devices = calloc(names->list.count + 1, sizeof(*p->devices));
	if (p->devices == NULL)
		return -ENOMEM;
	for (size_t from = 0, to; from < names->list.count && rc == 0; from = to) {
		for (to = from + 1; to < names->list.count; to++)
			if (by_devices(&names->list.rows[from], &names->list.rows[to]) != 0)
				break;
		struct names of = {
			.list.tally = {.rows = names->list.rows + from, .count = to - from}};
		struct device_change *d = &p->devices[p->device_count++];
		sum_names(p, &of);
		name_devices(of.list.rows, d, of.list.count == names->list.count);
		rc = compare_device(p, names, &of, d);
	}
	return rc;
}

static int compare_kernels(struct pair *p)
{
	struct names names = {0};
	int rc = join_all(p, XSP_SERIES_KERNEL, &names);

	for (size_t i = 0; i < names.list.count && rc == 0; i++) {
		struct joined *j = &names.list.rows[i];
		j->devices[0] = device_of(p, j, 0);
		j->devices[1] = device_of(p, j, 1);
	}
	if (rc == 0 && names.list.count > 0)
		xsp_tally_sort(&names.list, by_devices);
	if (rc == 0)
		rc = compare_devices(p, &names);
	free_names(&names);
	return rc;
}

/* ---- all of it ---- */

/* The step, and its time in no call. */
static int compare_steps(struct pair *p, const struct both *common)
{
	struct comparison c = xsp_compare_row(COMPARED_STEP, "step");
	int rc = compare_times(p, NULL, common, &c);

	if (rc < 0)
		return rc;
	const double step = fmin(c.typical[0], c.typical[1]);
	c = xsp_compare_row(COMPARED_IN_STEP, "[in no traced call]");
	rc = compare_times(p, NULL, common, &c);
	if (rc == 0 && step > 0)
		p->rows[1].share = fmax(c.typical[0], c.typical[1]) / step;
	return rc;
}

/* In which one did the threads go without a CPU for longer than they do on its side? The worst comes
 * first, and LEAST_REPEATS stay. */
#define DISTURBED 0.05 /* share of the time, beyond twice the median */
static size_t find_disturbed(const struct xsp_series **list, size_t n)
{
	double ready[256];
	size_t worst = 0;

	if (n <= LEAST_REPEATS || n > sizeof(ready) / sizeof(ready[0]))
		return n;
	for (size_t i = 0; i < n; i++) {
		ready[i] = xsp_series_ready_share(list[i]);
		worst = ready[i] > ready[worst] ? i : worst;
	}
	const double most = ready[worst], middle = xsp_quantile(ready, n, 0.5);
	return most > 2 * middle + DISTURBED ? worst : n;
}

static int list_series(struct pair *p)
{
	const struct xsp_compare_side *sides[2] = {p->a, p->b};

	p->series = calloc(p->a->count + p->b->count + 1, sizeof(*p->series));
	if (p->series == NULL)
		return -ENOMEM;
	p->steps = true;
	for (unsigned side = 0; side < 2; side++) {
		const struct xsp_series **list = p->series + p->from[side];
		size_t left = sides[side]->count, at;
		for (size_t i = 0; i < left; i++)
			list[i] = sides[side]->captures[i].series;
		for (; (at = find_disturbed(list, left)) < left; left--, p->disturbed++)
			memmove(list + at, list + at + 1, (left - at - 1) * sizeof(*list));
		for (size_t i = 0; i < left; i++)
			p->steps = p->steps && xsp_series_step_count(list[i]) > 0;
		p->from[side + 1] = p->from[side] + left;
	}
	p->repeats = p->a->count >= LEAST_REPEATS && p->b->count >= LEAST_REPEATS;
	return 0;
}

int xsp_compare_measure(struct pair *p)
{
	struct both common[2] = {{.sides = {{0}, {0}}}, {.sides = {{0}, {0}}}};
	int rc = list_series(p);

	if (rc == 0)
		rc = find_commons(p, common);
	if (rc == 0 && p->steps)
		rc = compare_steps(p, &common[0]);
	for (enum xsp_series_kind kind = 0; kind < XSP_SERIES_KERNEL && rc == 0; kind++)
		rc = compare_names(p, kind, common);
	/* kernels take the GPU's time, not the CPU's */
	if (rc == 0)
		rc = compare_kernels(p);
	xsp_compare_free(&common[0]);
	xsp_compare_free(&common[1]);
	return rc == 0 ? xsp_compare_memory(p) : rc;
}
