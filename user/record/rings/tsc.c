/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rings/tsc.h"

#include <math.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "base/clock.h"

#define TRIES 5
#define DISTURBED 20000U /* ticks: the thread lost its processor in between */
#define RATE_NS 500000000ULL
#define UNEVEN 200e-6

#define INVARIANT (1U << 8) /* EDX of CPUID's leaf 0x80000007: at one rate, in all states */

bool xsp_tsc_is_even(void)
{
#ifdef __x86_64__
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & INVARIANT);
#else
	return false;
#endif
}

struct xsp_tsc_pair xsp_tsc_read(void)
{
	struct xsp_tsc_pair best = {.ticks = UINT64_MAX};

#ifdef __x86_64__
	for (int i = 0; i < TRIES; i++) {
		const uint64_t before = __rdtsc(), ns = xsp_now_ns(), after = __rdtsc();
		if (after - before < best.ticks)
			best = (struct xsp_tsc_pair){before + (after - before) / 2, ns,
						     after - before};
	}
#endif
	return best;
}

/* NULL: there are not so many, or it has been overwritten. */
static const struct xsp_tsc_pair *last(const struct xsp_tsc *t, uint64_t back)
{
	return back < t->count && back < XSP_TSC_PAIRS
		       ? &t->pairs[(t->count - 1 - back) % XSP_TSC_PAIRS]
		       : NULL;
}

static double rate_between(const struct xsp_tsc_pair *a, const struct xsp_tsc_pair *b)
{
	return (double)(b->ns - a->ns) / (double)(b->tsc - a->tsc);
}

static void check_rate(struct xsp_tsc *t, const struct xsp_tsc_pair *pair)
{
	if (t->base.ns == 0)
		t->base = *pair;
	if (pair->ns - t->base.ns < RATE_NS)
		return;
	const double rate = rate_between(&t->base, pair);
	t->uneven += t->rate > 0 && fabs(rate / t->rate - 1) > UNEVEN;
	t->rate = rate;
	t->base = *pair;
}

void xsp_tsc_add(struct xsp_tsc *t, const struct xsp_tsc_pair *pair)
{
	const struct xsp_tsc_pair *before = last(t, 0);

	if (before != NULL && (pair->tsc <= before->tsc || pair->ns <= before->ns ||
			       (t->count > 1 && pair->ticks > DISTURBED)))
		return;
	t->pairs[t->count++ % XSP_TSC_PAIRS] = *pair;
	check_rate(t, pair);
}

/* From that pair on, in either direction. A counter that the target has made up may lie anywhere. */
static uint64_t from(const struct xsp_tsc_pair *p, uint64_t tsc, double rate)
{
	const double ns =
		tsc >= p->tsc ? (double)(tsc - p->tsc) * rate : -(double)(p->tsc - tsc) * rate;

	if (ns < 0)
		return -ns >= (double)p->ns ? 0 : p->ns - (uint64_t)-ns;
	return ns >= (double)(INT64_MAX - (int64_t)p->ns) ? INT64_MAX : p->ns + (uint64_t)ns;
}

/* The rate of the pairs before: over many of them, as two of them may be close. */
static double rate_before(const struct xsp_tsc *t, const struct xsp_tsc_pair *latest)
{
	const uint64_t back = t->count < XSP_TSC_PAIRS ? t->count - 1 : XSP_TSC_PAIRS - 1;
	const struct xsp_tsc_pair *first = last(t, back);

	return t->rate > 0 ? t->rate : first != latest ? rate_between(first, latest) : 0;
}

uint64_t xsp_tsc_ns(const struct xsp_tsc *t, uint64_t tsc)
{
	const struct xsp_tsc_pair *later = last(t, 0), *pair;

	if (later == NULL)
		return 0;
	if (tsc >= later->tsc)
		return from(later, tsc, rate_before(t, later));
	for (uint64_t back = 1; (pair = last(t, back)) != NULL; back++, later = pair)
		if (tsc >= pair->tsc)
			return from(pair, tsc, rate_between(pair, later));
	return from(later, tsc, rate_before(t, last(t, 0)));
}
