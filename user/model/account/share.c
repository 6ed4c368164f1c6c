/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * share.c - time whose place is not known is shared out: time in no span and that of spans without lines by samples, waits by
 * those whose stacks were read.
 */
#include "model/account/sum.h"

#include <errno.h>
#include <math.h>

#include "base/share_interval.h"

#define FEW_SAMPLES                                                                                \
	5U /* with fewer of its own, a thread's time is shared out by all of its family */

static double weight_of(const struct part *p)
{
	return p->count > 0 ? (double)p->count : fmax(0, (double)p->ns);
}

/* The double next to a large figure may be larger than any int64_t. */
int64_t account_part_of(int64_t ns, double share)
{
	const double part = (double)ns * fmin(1, share);

	return part >= 0x1p63 ? INT64_MAX : part <= -0x1p63 ? INT64_MIN : (int64_t)part;
}

/* Parts of `whole` in the proportion of the weights; without any it is one part. The first gets what rounding leaves. */
static int share_out(struct sum *s, const struct part *whole, const struct part *weights,
		     size_t count)
{
	const size_t first = s->parts.count;
	int64_t left = whole->ns;
	double all = 0;

	for (size_t i = 0; i < count; i++)
		all += weight_of(&weights[i]);
	for (size_t i = 0; i < count && all > 0; i++) {
		const struct part *w = &weights[i];
		struct part p = *whole;
		p.ns = account_part_of(whole->ns, weight_of(w) / all);
		p.peer.ahead = account_part_of(whole->peer.ahead, weight_of(w) / all);
		p.loop_ns = w->loop_ns > 0
				    ? account_part_of(p.ns, (double)w->loop_ns / weight_of(w))
				    : 0;
		p.place = w->place;
		p.callee = w->callee;
		for (size_t k = 0; k < XSP_ACCOUNT_THIRDS; k++)
			p.thirds[k] = whole->kind == XSP_ACCOUNT_CPU
					      ? w->thirds[k] * (double)whole->ns / all
				      : whole->kind == XSP_ACCOUNT_SPAN
					      ? whole->thirds[k] * weight_of(w) / all
					      : 0;
		if (whole->kind != XSP_ACCOUNT_WAIT)
			p.count = w->used ? 0 : w->count;
		if (whole->kind == XSP_ACCOUNT_SPAN && count > 1) {
			p.steps = p.longest_ns = p.period = 0; /* of each line, nobody knows */
		} else if (whole->kind == XSP_ACCOUNT_CPU) {
			p.why = w->why;
			p.steps = w->used ? 0 : w->steps;
			p.period = w->period;
		} else if (
			whole->kind ==
			XSP_ACCOUNT_WAIT) { /* only stacks tell monitors from conditions. In which steps a part was, nobody knows */
			p.why = w->why == XSP_ACCOUNT_MONITOR && whole->why == XSP_WAIT_LOCK
					? w->why
					: p.why;
			p.steps = p.longest_ns = p.period = 0;
		}
		left = account_sum(left, -p.ns);
		if (XSP_PUT(&s->parts, p) < 0)
			return -ENOMEM;
	}
	if (s->parts.count == first)
		return XSP_PUT(&s->parts, *whole);
	s->parts.rows[first].ns = account_sum(s->parts.rows[first].ns, left);
	return 0;
}

/* ---- time in no span ---- */

static XSP_ORDER(samples_by_thread, struct part, XSP_RISING(pool) ?: XSP_RISING(thread));
static XSP_ORDER(pools_by_thread, struct pool, XSP_RISING(paused) ?: XSP_RISING(thread));

static int share_pool(struct sum *s, const struct part *whole, struct part *weights, size_t count)
{
	struct pool *p = &s->pools.rows[whole->pool];
	int rc = share_out(s, whole, weights, count);

	for (size_t i = 0; i < count; i++) {
		p->samples += weights[i].used ? 0 : weights[i].count;
		weights[i].used = true;
	}
	return rc;
}

static struct part part_of_pool(const struct sum *s, size_t pool)
{
	const struct pool *p = &s->pools.rows[pool];

	return (struct part){
		.kind = XSP_ACCOUNT_CPU, .thread = p->thread, .pool = (uint32_t)pool, .ns = p->ns};
}

/* Pools with few samples of their own are one, which all of the family's samples share out: those of the same kind, if there
 * are any. */
static int share_rest(struct sum *s, const struct pool *rest)
{
	struct part *w = s->weights.rows;
	size_t first = 0, end = s->weights.count;

	while (first < end && w[first].pool != rest->paused)
		first++;
	while (end > first && w[end - 1].pool != rest->paused)
		end--;
	if (first == end) {
		first = 0;
		end = s->weights.count;
	}
	if (rest->ns == 0)
		return 0;
	if (XSP_PUT(&s->pools, *rest) < 0)
		return -ENOMEM;
	const struct part whole = part_of_pool(s, s->pools.count - 1);
	return share_pool(s, &whole, w + first, end - first);
}

int account_share_pools(struct sum *s)
{
	const size_t pools = s->pools.count;
	struct pool rest[2] = {{.thread = NO_THREAD}, {.thread = NO_THREAD, .paused = true}};
	int rc = 0;

	XSP_SORT(s->weights.rows, s->weights.count, samples_by_thread);
	XSP_SORT(s->pools.rows, s->pools.count, pools_by_thread);
	for (size_t i = 0, at = 0, end; i < pools && rc == 0; i++, at = end) {
		const struct pool p = s->pools.rows[i];
		const struct part key = {.pool = p.paused, .thread = p.thread};
		uint64_t samples = 0;
		while (at < s->weights.count && samples_by_thread(&s->weights.rows[at], &key) < 0)
			at++;
		for (end = at;
		     end < s->weights.count && samples_by_thread(&s->weights.rows[end], &key) == 0;
		     end++)
			samples += s->weights.rows[end].count;
		if (samples >= FEW_SAMPLES) {
			const struct part whole = part_of_pool(s, i);
			rc = share_pool(s, &whole, s->weights.rows + at, end - at);
			continue;
		}
		rest[p.paused].ns = account_sum(rest[p.paused].ns, p.ns);
	}
	for (size_t i = 0; i < 2 && rc == 0; i++)
		rc = share_rest(s, &rest[i]);
	return rc;
}

/* ---- spans on lines that are not known ---- */

static XSP_ORDER(lines_by_span, struct part, XSP_RISING(callee));
static XSP_ORDER(lines_by_thread, struct part, XSP_RISING(callee) ?: XSP_RISING(thread));

/* The samples that are equal to the key; *samples: how many. */
static struct part *find_lines(const struct sum *s, const struct part *key,
			       int (*order)(const void *, const void *), size_t *count,
			       uint64_t *samples)
{
	size_t first = 0, end = s->lines.count;

	while (first < end) {
		const size_t middle = first + (end - first) / 2;
		if (order(&s->lines.rows[middle], key) < 0)
			first = middle + 1;
		else
			end = middle;
	}
	*samples = 0;
	for (end = first; end < s->lines.count && order(&s->lines.rows[end], key) == 0; end++)
		*samples += s->lines.rows[end].count;
	*count = end - first;
	return s->lines.rows + first;
}

/* Shares a span's time out to lines by the samples in spans of that name: by the thread's own, else by its family's. With too
 * few of them it is the place itself. */
int account_place_spans(struct sum *s)
{
	int rc = 0;

	XSP_SORT(s->lines.rows, s->lines.count, lines_by_thread);
	for (size_t i = 0; i < s->spans.count && rc == 0; i++) {
		struct part whole = s->spans.rows[i];
		const struct part key = {.callee = whole.place, .thread = whole.thread};
		uint64_t samples;
		size_t count;
		struct part *lines = find_lines(s, &key, lines_by_thread, &count, &samples);
		if (samples < FEW_SAMPLES)
			lines = find_lines(s, &key, lines_by_span, &count, &samples);
		if (samples < FEW_SAMPLES) {
			rc = XSP_PUT(&s->parts, whole);
			continue;
		}
		whole.pool = (uint32_t)s->pools.count;
		rc = XSP_PUT(&s->pools, (struct pool){.thread = whole.thread, .ns = whole.ns});
		if (rc == 0)
			rc = share_pool(s, &whole, lines, count);
	}
	return rc;
}

/* ---- waits without a place ---- */

static bool same_reason(const struct part *w, const struct part *whole)
{
	return w->why == whole->why ||
	       (whole->why == XSP_WAIT_LOCK && w->why == XSP_ACCOUNT_MONITOR);
}
static bool any_wait(const struct part *w, const struct part *whole)
{
	return whole->why == XSP_ACCOUNT_SHORT && w->why != XSP_ACCOUNT_SHORT &&
	       w->why != XSP_WAIT_RUNNABLE;
}

/* The waits with a place, among the first `known` parts, that fit. 0 or -ENOMEM. */
static int choose(struct sum *s, size_t known, const struct part *whole,
		  bool (*fits)(const struct part *w, const struct part *whole))
{
	int rc = 0;

	s->chosen.count = 0;
	for (size_t i = 0; i < known && rc == 0; i++) {
		const struct part *p = &s->parts.rows[i];
		if (p->kind == XSP_ACCOUNT_WAIT && p->place != 0 && fits(p, whole))
			rc = XSP_PUT(&s->chosen, *p);
	}
	return rc;
}

static XSP_ORDER(same_why, struct part, XSP_RISING(why));

static void add_homeless(void *to, const void *more)
{
	struct part *p = to;
	const struct part *m = more;

	p->thread = NO_THREAD;
	account_vote(&p->peer, m->peer.what, m->peer.ahead);
	p->ns = account_sum(p->ns, m->ns);
	p->steps += m->steps;
	p->longest_ns = m->longest_ns > p->longest_ns ? m->longest_ns : p->longest_ns;
}

/* They go where those of their reason were that have a place. */
int account_place_waits(struct sum *s)
{
	const size_t known = s->parts.count;
	int rc = 0;

	s->homeless.count = XSP_SUM_UP(s->homeless.rows, s->homeless.count, same_why, add_homeless);
	for (size_t i = 0; i < s->homeless.count && rc == 0; i++) {
		const struct part *h = &s->homeless.rows[i];
		rc = choose(s, known, h, same_reason);
		if (rc == 0 && s->chosen.count == 0)
			rc = choose(s, known, h, any_wait);
		if (rc == 0)
			rc = share_out(s, h, s->chosen.rows, s->chosen.count);
	}
	return rc;
}
