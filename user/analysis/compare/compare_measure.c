/* SPDX-License-Identifier: BSD-2-Clause */
/* compare_measure.c - from the series of two sides to differences with their intervals. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/compare_private.h"
#include "base/grow.h"
#include "base/u64map.h"

#define LEAST_REPEATS 3U /* captures a side that are measurements by themselves */
#define BLOCKS 16U /* of a capture's steps */
#define STEPS_IN_BLOCK 5U /* so that their median leaves out what came between */
#define LEAST_STEPS 12U
#define LEAST_BLOCKS 4U
#define TRIMMED 0.2 /* of blocks, on either side */
#define RESTLESS 0.1 /* standard deviation of blocks, as a share */
#define LEAST_TELLING 3U /* operators that tell what the machine did */
#define TELLING 0.01 /* share of the time that each of them has */
#define WARM_UP_PIECES 2U /* in which memory grows for other reasons */
#define FAST 0.1 /* share of the fastest steps */

/* A name on both sides: its row in each capture of a and then of b, or NULL. */
struct joined {
	const char *name;
	const struct xsp_series_row **rows;
	uint32_t devices[2]; /* of a kernel, on each side: see struct xsp_series_row */
};

/* Measurements of one side, at the same places for all names: blocks of steps or pieces of time of one capture behind
 * those of the one before it. NAN: none there. */
struct measured {
	double *values;
	size_t count, capacity;
	double fastest; /* NAN: there are none */
};

/* What most of the operators did at a place, of each side: count 0: not known. */
struct common {
	struct measured sides[2];
};

static int put(struct measured *m, double value)
{
	if (xsp_grow(&m->values, &m->capacity, m->count + 1) < 0)
		return -ENOMEM;
	m->values[m->count++] = value;
	return 0;
}

static double logarithm(double value)
{
	return value > 0 ? log(value) : NAN;
}

/* ---- measurements: the logarithms of times, for their ratio is what is asked for ---- */

/* What of a capture's steps is measured. */
enum part { PART_WHOLE, PART_ROW, PART_OUTSIDE, PART_NOTHING };

/* Medians of blocks of steps that follow each other, or with repeats of all of them. */
static int measure_steps(const struct pair *p, const struct xsp_series *s, enum part part,
			 const struct xsp_series_row *row, struct measured *m)
{
	double ns[XSP_SERIES_STEPS], sorted[XSP_SERIES_STEPS];
	const size_t n = xsp_series_steps(s, ns);
	size_t blocks = n < LEAST_STEPS			    ? 0
			: n < STEPS_IN_BLOCK * LEAST_BLOCKS ? LEAST_BLOCKS
			: n < STEPS_IN_BLOCK * BLOCKS	    ? n / STEPS_IN_BLOCK
							    : BLOCKS;

	if (part == PART_ROW || part == PART_OUTSIDE)
		xsp_series_shares(s, row, ns, NULL);
	if (part == PART_NOTHING)
		memset(ns, 0, n * sizeof(*ns));
	if (p->repeats)
		blocks = n >= LEAST_STEPS;
	for (size_t i = 0; i < blocks; i++) {
		const size_t from = i * n / blocks, to = (i + 1) * n / blocks;
		memcpy(sorted, ns + from, (to - from) * sizeof(*ns));
		if (put(m, logarithm(xsp_quantile(sorted, to - from, 0.5))) < 0)
			return -ENOMEM;
	}
	memcpy(sorted, ns, n * sizeof(*ns));
	const double fast = n > 0 ? logarithm(xsp_quantile(sorted, n, FAST)) : NAN;
	m->fastest = fmin(m->fastest, fast);
	return 0;
}

/* Means of calls, by pieces of time. */
static int measure_calls(const struct pair *p, const struct xsp_series_row *row, struct measured *m)
{
	double known[XSP_SERIES_PIECES], ns;
	size_t n = 0;

	for (unsigned i = 0; i < XSP_SERIES_PIECES; i++) {
		const bool there = row != NULL && xsp_series_call(row, i, &ns) && ns > 0;
		const double value = there ? log(ns) : NAN;
		if (!p->repeats && put(m, value) < 0)
			return -ENOMEM;
		if (!there)
			continue;
		known[n++] = value;
		m->fastest = fmin(m->fastest, value); /* not NAN, if there is another */
	}
	return p->repeats ? put(m, n > 0 ? xsp_quantile(known, n, 0.5) : NAN) : 0;
}

static bool is_of_steps(enum compared what)
{
	return what == COMPARED_STEP || what == COMPARED_IN_STEP;
}

static int measure(const struct pair *p, const struct joined *j, enum compared what,
		   const struct xsp_compare_side *side, struct measured *m)
{
	const size_t first = side == p->b ? p->a->count : 0;
	int rc = 0;

	m->count = 0;
	m->fastest = NAN;
	for (size_t i = 0; i < side->count && rc == 0; i++) {
		const struct xsp_series *s = side->captures[i].series;
		const struct xsp_series_row *row = j != NULL ? j->rows[first + i] : NULL;
		const enum part part = what == COMPARED_STEP ? PART_WHOLE
				       : j == NULL	     ? PART_OUTSIDE
				       : row == NULL	     ? PART_NOTHING
							     : PART_ROW;
		if (is_of_steps(what))
			rc = measure_steps(p, s, part, row, m);
		else
			rc = measure_calls(p, row, m);
	}
	return rc;
}

/* Leaves out what is not known; how much that was. */
static size_t keep_known(struct measured *m)
{
	const size_t all = m->count;

	m->count = 0;
	for (size_t i = 0; i < all; i++)
		if (!isnan(m->values[i]))
			m->values[m->count++] = m->values[i];
	return all - m->count;
}

/* The median of what is known, NAN: nothing is. 0 or -ENOMEM. */
static int middle_of(const struct measured *m, double *out)
{
	struct measured copy = {0};
	int rc = 0;

	for (size_t i = 0; i < m->count && rc == 0; i++)
		rc = put(&copy, m->values[i]);
	keep_known(&copy);
	*out = rc == 0 && copy.count > 0 ? xsp_quantile(copy.values, copy.count, 0.5) : NAN;
	free(copy.values);
	return rc;
}

static void subtract(struct measured *m, const struct measured *common)
{
	for (size_t i = 0; i < m->count && i < common->count; i++)
		m->values[i] -= common->values[i];
}

static int add(struct pair *p, const struct comparison *c)
{
	if (xsp_grow(&p->rows, &p->capacity, p->count + 1) < 0)
		return -ENOMEM;
	p->rows[p->count++] = *c;
	return 0;
}

/* Calls a step in the mean; NAN: no steps. */
static double calls_in_steps(const struct pair *p, const struct joined *j,
			     const struct xsp_compare_side *side)
{
	double ns[XSP_SERIES_STEPS], calls[XSP_SERIES_STEPS], steps_ns[XSP_SERIES_STEPS];
	const size_t first = side == p->b ? p->a->count : 0;
	double sum = 0;
	size_t steps = 0;

	for (size_t i = 0; i < side->count; i++) {
		const struct xsp_series *s = side->captures[i].series;
		const size_t n = xsp_series_steps(s, steps_ns);
		steps += n;
		if (j->rows[first + i] == NULL)
			continue;
		xsp_series_shares(s, j->rows[first + i], ns, calls);
		for (size_t k = 0; k < n; k++)
			sum += calls[k];
	}
	return steps > 0 ? sum / (double)steps : NAN;
}

/* What one run differs from the next by is not known from one. Where blocks of a run differ by a tenth and more it is
 * taken to be as much as they do; where they differ by less, a part of it. */
static double between_runs(double between_blocks)
{
	return between_blocks * fmin(1, between_blocks / RESTLESS);
}

/* Enough of them; of a step, all. */
static void difference(const struct pair *p, struct measured sides[2], struct comparison *c)
{
	const size_t least = p->repeats ? LEAST_REPEATS : LEAST_BLOCKS;
	const size_t unknown = keep_known(&sides[0]) + keep_known(&sides[1]);

	if (sides[0].count < least || sides[1].count < least ||
	    (unknown > 0 && is_of_steps(c->what))) {
		c->why = WHY_FEW;
		return;
	}
	c->d = xsp_difference(sides[0].values, sides[0].count, sides[1].values, sides[1].count,
			      p->repeats ? 0 : TRIMMED);
	if (p->repeats)
		return;
	c->fastest = sides[1].fastest - sides[0].fastest;
	if (c->what != COMPARED_GROWTH && c->d.error > 0)
		xsp_difference_widen(
			&c->d, hypot(between_runs(c->d.spread[0]), between_runs(c->d.spread[1])));
}

static int compare_times(struct pair *p, const struct joined *j, const struct common *common,
			 struct comparison *c)
{
	/* with repeats all of a step may well be slower: what the machine did to it is in their spread */
	const bool beside = !p->repeats || c->what != COMPARED_STEP;
	struct measured sides[2] = {{0}, {0}};
	double middle[2] = {NAN, NAN};
	int rc = 0;

	c->fastest = NAN;
	c->alone = common->sides[0].count == 0;
	for (unsigned i = 0; i < 2 && rc == 0; i++) {
		rc = measure(p, j, c->what, i == 0 ? p->a : p->b, &sides[i]);
		if (rc == 0)
			rc = middle_of(&sides[i], &middle[i]);
		if (beside)
			subtract(&sides[i], &common->sides[i]);
	}
	if (rc == 0) {
		c->a = exp(middle[0]);
		c->b = exp(middle[1]);
		c->raw = middle[1] - middle[0];
		difference(p, sides, c);
		rc = add(p, c);
	}
	free(sides[0].values);
	free(sides[1].values);
	return rc;
}

/* ---- names on both sides ---- */

struct names {
	struct joined *list;
	size_t count, capacity, width; /* width: captures of both sides */
	double all_a, all_b; /* own time, ns */
	struct xsp_u64map index;
};

static void free_names(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->list[i].rows);
	free(names->list);
	xsp_u64map_free(&names->index);
}

static int join(struct names *names, enum xsp_series_kind kind, const struct xsp_series *s,
		size_t capture)
{
	const struct xsp_series_row *rows;
	const size_t n = xsp_series_rows(s, kind, &rows);

	for (size_t i = 0; i < n; i++) {
		if (rows[i].calls == 0 && rows[i].timed == 0) /* of a name that nothing bore */
			continue;
		const long at = xsp_u64map_index(&names->index, rows[i].hash, &names->list,
						 &names->capacity, names->count);
		if (at < 0)
			return -ENOMEM;
		struct joined *j = &names->list[at];
		if ((size_t)at == names->count) {
			*j = (struct joined){.name = rows[i].name};
			names->count++;
			j->rows = calloc(names->width, sizeof(*j->rows));
		}
		if (j->rows == NULL)
			return -ENOMEM;
		j->rows[capture] = &rows[i];
	}
	return 0;
}

/* Own time of a row on one side. */
static double own_ns(const struct joined *j, size_t from, size_t to)
{
	double sum = 0;

	for (size_t i = from; i < to && j->rows != NULL; i++)
		sum += j->rows[i] != NULL ? (double)j->rows[i]->self_ns : 0;
	return sum;
}

static void sum_names(const struct pair *p, struct names *names)
{
	for (size_t i = 0; i < names->count; i++) {
		names->all_a += own_ns(&names->list[i], 0, p->a->count);
		names->all_b += own_ns(&names->list[i], p->a->count, names->width);
	}
}

static int join_all(const struct pair *p, enum xsp_series_kind kind, struct names *names)
{
	int rc = 0;

	names->width = p->a->count + p->b->count;
	for (size_t i = 0; i < p->a->count && rc == 0; i++)
		rc = join(names, kind, p->a->captures[i].series, i);
	for (size_t i = 0; i < p->b->count && rc == 0; i++)
		rc = join(names, kind, p->b->captures[i].series, p->a->count + i);
	sum_names(p, names);
	return rc;
}

/* ... of all own time, on the side where that is more. */
static double share_of(const struct pair *p, const struct names *names, const struct joined *j)
{
	const size_t middle = p->a->count;

	return fmax(own_ns(j, 0, middle) / fmax(names->all_a, 1),
		    own_ns(j, middle, names->width) / fmax(names->all_b, 1));
}

/* Is it in any capture of that side? *seldom is set if it is not in several pieces of time of each of them. */
static bool is_there(const struct joined *j, size_t from, size_t to, bool *seldom)
{
	bool there = false, always = true;

	for (size_t i = from; i < to; i++) {
		unsigned pieces = 0;
		for (unsigned k = 0; j->rows[i] != NULL && k < XSP_SERIES_PIECES; k++)
			pieces += j->rows[i]->pieces[k] != NULL;
		there = there || j->rows[i] != NULL;
		always = always && pieces >= LEAST_BLOCKS;
	}
	*seldom = *seldom || (there && !always);
	return there;
}

/* ---- what most operators did, or most kernels of a device ---- */

/* Those that tell of it, and of operators time in none. */
struct telling {
	struct measured sides[2];
	double before; /* median of the first side */
};

/* Known at enough places; in steps at all. */
static bool tells(const struct pair *p, const struct telling *t, enum compared what)
{
	const size_t least = p->repeats ? LEAST_REPEATS : LEAST_BLOCKS;

	for (unsigned side = 0; side < 2; side++) {
		size_t known = 0;
		for (size_t i = 0; i < t->sides[side].count; i++)
			known += isnan(t->sides[side].values[i]) ? 0 : 1;
		if (known < least || (is_of_steps(what) && known < t->sides[side].count))
			return false;
	}
	return true;
}

static int measure_telling(const struct pair *p, const struct joined *j, enum compared what,
			   struct telling *t)
{
	int rc = measure(p, j, what, p->a, &t->sides[0]);

	if (rc == 0)
		rc = measure(p, j, what, p->b, &t->sides[1]);
	return rc == 0 ? middle_of(&t->sides[0], &t->before) : rc;
}

/* At each place the median of what they are beside their own usual. */
static int median_of_all(const struct telling *all, size_t count, unsigned side,
			 struct measured *out)
{
	int rc = 0;

	for (size_t i = 0; i < all[0].sides[side].count && rc == 0; i++) {
		struct measured here = {0};
		double middle = NAN;
		for (size_t k = 0; k < count && rc == 0; k++)
			rc = put(&here, all[k].sides[side].values[i] - all[k].before);
		if (rc == 0)
			rc = middle_of(&here, &middle);
		if (rc == 0)
			rc = put(out, middle);
		free(here.values);
	}
	return rc;
}

static void free_common(struct common *c)
{
	free(c->sides[0].values);
	free(c->sides[1].values);
}

/* With few names there is none. */
static int find_common(const struct pair *p, const struct names *names, enum compared what,
		       struct common *out)
{
	struct telling *all = calloc(names->count + 1, sizeof(*all));
	size_t count = 0;
	int rc = all != NULL ? 0 : -ENOMEM;

	/* the last one: time in no call */
	for (size_t i = 0; i <= names->count && rc == 0; i++) {
		const struct joined *j = i < names->count ? &names->list[i] : NULL;
		struct telling *t = &all[count];
		if (j != NULL ? share_of(p, names, j) < TELLING : !is_of_steps(what))
			continue;
		rc = measure_telling(p, j, what, t);
		if (rc == 0 && tells(p, t, what)) {
			count++;
		} else {
			free(t->sides[0].values);
			free(t->sides[1].values);
			*t = (struct telling){0};
		}
	}
	for (unsigned side = 0; side < 2 && rc == 0 && count >= LEAST_TELLING; side++)
		rc = median_of_all(all, count, side, &out->sides[side]);
	for (size_t i = 0; i < count; i++) {
		free(all[i].sides[0].values);
		free(all[i].sides[1].values);
	}
	free(all);
	return rc;
}

/* By how much it changed; NAN: there is none. */
static int change_of(const struct common *c, double *by)
{
	double middle[2];
	int rc = middle_of(&c->sides[0], &middle[0]);

	if (rc == 0)
		rc = middle_of(&c->sides[1], &middle[1]);
	*by = rc == 0 ? middle[1] - middle[0] : NAN;
	return rc;
}

static int note_common(struct pair *p, const struct common *c)
{
	double by;
	int rc = change_of(c, &by);

	if (rc == 0 && c->sides[0].count > 0 && !p->common_known) {
		p->common_known = true;
		p->common = by;
	}
	return rc;
}

/* ---- all names of a kind ---- */

static int compare_name(struct pair *p, const struct names *names, const struct joined *j,
			enum xsp_series_kind kind, const struct common common[2])
{
	static const enum compared kinds[] = {
		[XSP_SERIES_OPERATOR] = COMPARED_OPERATOR,
		[XSP_SERIES_LINE] = COMPARED_LINE,
		[XSP_SERIES_MODULE] = COMPARED_MODULE,
		[XSP_SERIES_KERNEL] = COMPARED_KERNEL,
	};
	const size_t middle = p->a->count, all = names->width;
	struct comparison c = {.what = kinds[kind], .name = j->name};
	c.in_a = is_there(j, 0, middle, &c.seldom);
	c.in_b = is_there(j, middle, all, &c.seldom);
	c.share = share_of(p, names, j);
	c.calls_a = calls_in_steps(p, j, p->a);
	c.calls_b = calls_in_steps(p, j, p->b);
	int rc = compare_times(p, j, &common[1], &c);
	/* what is in a step now and then has no time a step */
	if (rc < 0 || kind != XSP_SERIES_OPERATOR || !p->steps || !c.in_a || !c.in_b)
		return rc;
	c.what = COMPARED_IN_STEP;
	c.d = (struct xsp_difference){0};
	return compare_times(p, j, &common[0], &c);
}

static int compare_names(struct pair *p, enum xsp_series_kind kind, const struct common common[2])
{
	struct names names = {0};
	int rc = join_all(p, kind, &names);

	for (size_t i = 0; i < names.count && rc == 0; i++)
		rc = compare_name(p, &names, &names.list[i], kind, common);
	free_names(&names);
	return rc;
}

/* Of blocks of steps, and of pieces of time. */
static int find_commons(struct pair *p, struct common common[2])
{
	struct names names = {0};
	int rc = join_all(p, XSP_SERIES_OPERATOR, &names);

	if (rc == 0 && p->steps)
		rc = find_common(p, &names, COMPARED_IN_STEP, &common[0]);
	if (rc == 0)
		rc = find_common(p, &names, COMPARED_OPERATOR, &common[1]);
	for (unsigned i = 0; i < 2 && rc == 0; i++)
		rc = note_common(p, &common[i]);
	free_names(&names);
	return rc;
}

/* ---- kernels, by the device on which they ran ---- */

/* On a side: the one device of all its captures, or several. */
static uint32_t device_of(const struct joined *j, size_t from, size_t to)
{
	const struct xsp_series_row *first = NULL;

	for (size_t i = from; i < to; i++) {
		if (j->rows[i] == NULL)
			continue;
		first = first != NULL ? first : j->rows[i];
		if (j->rows[i]->device != first->device)
			return XSP_SERIES_DEVICES;
	}
	return first != NULL ? first->device : XSP_SERIES_DEVICES;
}

static int by_devices(const void *a, const void *b)
{
	const struct joined *x = a, *y = b;

	for (unsigned side = 0; side < 2; side++)
		if (x->devices[side] != y->devices[side])
			return x->devices[side] < y->devices[side] ? -1 : 1;
	return 0;
}

/* " of device 1", and if the other side ran on another one " of device 1 (device 0 in A)". */
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

/* What the kernels have in common, as a row: with repeats it says when all of them became slower, as the step's row does
 * of operators. It has no time of its own. Uses up `common`. */
static int compare_all_kernels(struct pair *p, struct common *common, const char *name, double by)
{
	struct comparison c = {.what = COMPARED_KERNEL,
			       .name = name,
			       .in_a = true,
			       .in_b = true,
			       .a = NAN,
			       .b = NAN,
			       .calls_a = NAN,
			       .calls_b = NAN,
			       .raw = by,
			       .fastest = NAN,
			       .share = 1};

	difference(p, common->sides, &c);
	return add(p, &c);
}

/* `of`: those of one device among all names. */
static int compare_device(struct pair *p, const struct names *all, const struct names *of,
			  struct device_change *d)
{
	struct common common[2] = {{.sides = {{0}, {0}}}, {.sides = {{0}, {0}}}};
	int rc = find_common(p, of, COMPARED_KERNEL, &common[1]);

	for (size_t i = 0; i < of->count && rc == 0; i++)
		rc = compare_name(p, all, &of->list[i], XSP_SERIES_KERNEL, common);
	if (rc == 0)
		rc = change_of(&common[1], &d->by);
	d->known = rc == 0 && common[1].sides[0].count > 0;
	if (d->known && p->repeats)
		rc = compare_all_kernels(p, &common[1], d->all, d->by);
	free_common(&common[1]);
	return rc;
}

static int compare_devices(struct pair *p, const struct names *names)
{
	int rc = 0;

	p->devices = calloc(names->count + 1, sizeof(*p->devices));
	if (p->devices == NULL)
		return -ENOMEM;
	for (size_t from = 0, to; from < names->count && rc == 0; from = to) {
		for (to = from + 1; to < names->count; to++)
			if (by_devices(&names->list[from], &names->list[to]) != 0)
				break;
		struct names of = {
			.list = names->list + from, .count = to - from, .width = names->width};
		struct device_change *d = &p->devices[p->device_count++];
		sum_names(p, &of);
		name_devices(of.list, d, of.count == names->count);
		rc = compare_device(p, names, &of, d);
	}
	return rc;
}

static int compare_kernels(struct pair *p)
{
	struct names names = {0};
	int rc = join_all(p, XSP_SERIES_KERNEL, &names);

	for (size_t i = 0; i < names.count && rc == 0; i++) {
		struct joined *j = &names.list[i];
		j->devices[0] = device_of(j, 0, p->a->count);
		j->devices[1] = device_of(j, p->a->count, names.width);
	}
	if (rc == 0 && names.count > 0)
		qsort(names.list, names.count, sizeof(*names.list), by_devices);
	if (rc == 0)
		rc = compare_devices(p, &names);
	free_names(&names);
	return rc;
}

/* ---- memory ---- */

static const struct xsp_series_memory *memory_of(const struct xsp_series *s, uint64_t hash)
{
	const struct xsp_series_memory *all;
	const size_t n = xsp_series_memory(s, &all);

	for (size_t i = 0; i < n; i++)
		if (all[i].hash == hash)
			return &all[i];
	return NULL;
}

static double steps_or_seconds(const struct pair *p, const struct xsp_series *s)
{
	return p->steps ? (double)xsp_series_step_count(s)
			: (double)xsp_series_recorded_ns(s) * 1e-9;
}

/* Steps, or seconds, up to a time in pieces. */
static double units_until(const struct pair *p, const struct xsp_series *s, double at)
{
	return p->steps ? xsp_series_steps_until(s, at)
			: (double)xsp_series_recorded_ns(s) * 1e-9 / XSP_SERIES_PIECES * at;
}

/* By how much the least of a piece of time is above that of the one before it, per step or second: what a step takes
 * and gives back does not show in it. What was done between the times at which the two were there is counted. A program
 * that had to wait for the machine does little in a piece: where that is no step, the next one counts for both. */
static int measure_growth(const struct pair *p, const struct xsp_series *s,
			  const struct xsp_series_memory *m, struct measured *out)
{
	double first = 0, first_units = 0, before = 0, before_units = 0;

	/* the last piece is the program's end: what it gives back then says nothing */
	for (unsigned i = WARM_UP_PIECES; i + 1 < XSP_SERIES_PIECES; i++) {
		const bool there = m != NULL && i >= m->first;
		const double least = there ? (double)m->least[i] : 0;
		const double units = units_until(p, s, there ? m->least_at[i] : i);
		if (i == WARM_UP_PIECES) {
			first = least;
			first_units = units;
		} else if (!(units > before_units)) {
			continue;
		} else if (!p->repeats && put(out, (least - before) / (units - before_units)) < 0) {
			return -ENOMEM;
		}
		before = least;
		before_units = units;
	}
	if (!p->repeats)
		return 0;
	return put(out, before_units > first_units ? (before - first) / (before_units - first_units)
						   : NAN);
}

static int measure_peak(const struct pair *p, const struct xsp_series_memory *m,
			struct measured *out)
{
	if (m == NULL)
		return 0;
	if (p->repeats)
		return put(out, logarithm((double)m->peak));
	for (unsigned i = m->first; i < XSP_SERIES_PIECES; i++)
		if (put(out, logarithm((double)m->most[i])) < 0)
			return -ENOMEM;
	return 0;
}

static int measure_memory(const struct pair *p, uint64_t hash, enum compared what,
			  const struct xsp_compare_side *side, struct measured *m)
{
	int rc = 0;

	m->fastest = NAN;
	m->count = 0;
	for (size_t i = 0; i < side->count && rc == 0; i++) {
		const struct xsp_series *s = side->captures[i].series;
		const struct xsp_series_memory *found = memory_of(s, hash);
		rc = what == COMPARED_GROWTH ? measure_growth(p, s, found, m)
					     : measure_peak(p, found, m);
	}
	return rc;
}

/* In how many pieces of time it rose to what is typical (a logarithm), rather than being so from before. */
static size_t times_reached(const struct xsp_compare_side *side, uint64_t hash, double typical)
{
	size_t n = 0;

	for (size_t i = 0; i < side->count; i++) {
		const struct xsp_series_memory *m = memory_of(side->captures[i].series, hash);
		for (unsigned k = 0; m != NULL && k < XSP_SERIES_PIECES; k++)
			n += m->rose[k] && fabs(logarithm((double)m->most[k]) - typical) < 1e-9;
	}
	return n;
}

/* The most that a capture of the side had. */
static double most_of(const struct xsp_compare_side *side, uint64_t hash)
{
	double most = 0;

	for (size_t i = 0; i < side->count; i++) {
		const struct xsp_series_memory *m = memory_of(side->captures[i].series, hash);
		most = fmax(most, m != NULL ? (double)m->peak : 0);
	}
	return most;
}

/* What grew so much over the recording that it matters beside what was there. */
static double growth_that_matters(const struct pair *p, uint64_t hash)
{
	const double peak = most_of(p->a, hash);
	double steps = 0;

	for (size_t i = 0; i < p->b->count; i++)
		steps += steps_or_seconds(p, p->b->captures[i].series) / (double)p->b->count;
	return fmax(peak * p->threshold, 1 << 20) / fmax(steps, 1);
}

/* Pieces of one recording have a spread, but what counts is its most: where that differs otherwise nothing is known of
 * its spread. */
static void take_most(const struct pair *p, uint64_t hash, struct comparison *c)
{
	c->a = most_of(p->a, hash);
	c->b = most_of(p->b, hash);
	c->raw = logarithm(c->b) - logarithm(c->a);
	if (c->d.known && !(fabs(c->raw - c->d.by) <= log1p(p->threshold))) {
		c->d = (struct xsp_difference){0};
		c->why = WHY_PEAK;
	}
}

static int compare_memory_of(struct pair *p, const struct xsp_series_memory *m, enum compared what)
{
	struct comparison c = {.what = what,
			       .name = m->name,
			       .in_a = true,
			       .in_b = true,
			       .fastest = NAN,
			       .calls_a = NAN,
			       .calls_b = NAN,
			       .share = 1};
	struct measured sides[2] = {{0}, {0}};
	double middle[2] = {NAN, NAN};
	int rc = 0;

	for (unsigned i = 0; i < 2 && rc == 0; i++) {
		rc = measure_memory(p, m->hash, what, i == 0 ? p->a : p->b, &sides[i]);
		if (rc == 0)
			rc = middle_of(&sides[i], &middle[i]);
	}
	if (rc == 0) {
		difference(p, sides, &c);
		c.a = what == COMPARED_PEAK ? exp(middle[0]) : middle[0];
		c.b = what == COMPARED_PEAK ? exp(middle[1]) : middle[1];
		c.raw = c.d.by;
		c.fastest = NAN;
		c.once = what == COMPARED_PEAK &&
			 (times_reached(p->a, m->hash, middle[0]) < LEAST_BLOCKS ||
			  times_reached(p->b, m->hash, middle[1]) < LEAST_BLOCKS);
		c.beyond = what == COMPARED_GROWTH ? growth_that_matters(p, m->hash) : 0;
		if (what == COMPARED_PEAK && !p->repeats)
			take_most(p, m->hash, &c);
		rc = add(p, &c);
	}
	free(sides[0].values);
	free(sides[1].values);
	return rc;
}

/* Is the place perhaps among those of a capture that are not followed? */
static bool may_be_left_out(const struct xsp_compare_side *side, const struct xsp_series_memory *m)
{
	for (size_t i = 0; m->place && i < side->count; i++) {
		const struct xsp_series *s = side->captures[i].series;
		if (xsp_series_places_left_out(s) > 0 && memory_of(s, m->hash) == NULL)
			return true;
	}
	return false;
}

/* Each name once: those of the first capture that has it. */
static int compare_memory(struct pair *p)
{
	struct xsp_u64map seen = {0};
	int rc = 0;

	for (size_t i = 0; i < p->a->count + p->b->count && rc == 0; i++) {
		const struct xsp_compare_capture *capture =
			i < p->a->count ? &p->a->captures[i] : &p->b->captures[i - p->a->count];
		const struct xsp_series_memory *all;
		const size_t n = xsp_series_memory(capture->series, &all);
		for (size_t k = 0; k < n && rc == 0; k++) {
			if (xsp_u64map_get(&seen, all[k].hash) != NULL ||
			    may_be_left_out(p->a, &all[k]) || may_be_left_out(p->b, &all[k]))
				continue;
			rc = xsp_u64map_set(&seen, all[k].hash, 1);
			if (rc == 0)
				rc = compare_memory_of(p, &all[k], COMPARED_GROWTH);
			if (rc == 0 && !all[k].place)
				rc = compare_memory_of(p, &all[k], COMPARED_PEAK);
		}
	}
	xsp_u64map_free(&seen);
	return rc;
}

/* ---- all of it ---- */

static bool has_steps(const struct xsp_compare_side *side)
{
	for (size_t i = 0; i < side->count; i++)
		if (xsp_series_step_count(side->captures[i].series) == 0)
			return false;
	return true;
}

/* A step, and what of it is in no call. */
static int compare_steps(struct pair *p, const struct common *common)
{
	struct comparison c = {.what = COMPARED_STEP,
			       .name = "step",
			       .in_a = true,
			       .in_b = true,
			       .calls_a = NAN,
			       .calls_b = NAN,
			       .share = 1};
	int rc = compare_times(p, NULL, common, &c);

	if (rc < 0)
		return rc;
	const double step = fmin(p->rows[0].a, p->rows[0].b);
	c.what = COMPARED_IN_STEP;
	c.name = "[in no traced call]";
	c.d = (struct xsp_difference){0};
	rc = compare_times(p, NULL, common, &c);
	if (rc == 0 && step > 0)
		p->rows[1].share = fmax(p->rows[1].a, p->rows[1].b) / step;
	return rc;
}

int xsp_compare_measure(struct pair *p)
{
	static const struct common none;
	struct common common[2] = {none, none};

	p->steps = has_steps(p->a) && has_steps(p->b);
	p->repeats = p->a->count >= LEAST_REPEATS && p->b->count >= LEAST_REPEATS;
	int rc = find_commons(p, common);
	if (rc == 0 && p->steps)
		rc = compare_steps(p, &common[0]);
	for (enum xsp_series_kind kind = 0; kind < XSP_SERIES_KERNEL && rc == 0; kind++)
		rc = compare_names(p, kind, common);
	/* a GPU has a time of its own */
	if (rc == 0)
		rc = compare_kernels(p);
	free_common(&common[0]);
	free_common(&common[1]);
	return rc == 0 ? compare_memory(p) : rc;
}
