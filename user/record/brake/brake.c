/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/brake/brake.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/rows/order.h"

/* A release brings the thread this far below its budget, so that the next look finds it there. */
#define AIM 0.8
/* The estimate may exceed all the time that there was. */
#define LEAST_OWN 0.002
/* If probes take nearly all the time, the rest is mostly error. The thread then gets at least this part of its CPU time
 * as its own, and the next look knows more. */
#define GRANTED_OWN 0.1

/* So much time in probes beyond the budget is too much. */
#define DEBT_NS 8e6
/* The kernel updates a running thread's CPU time only at its ticks, mostly 1 to 4 ms apart. */
#define TICK_NS 5e6
/* What was not used before counts to this extent: events come later than the CPU time that pays. */
#define CREDIT_NS 5e6

void xsp_brake_spend(struct xsp_brake_debt *d, double budget, uint64_t probe_ns)
{
	d->ns += (1 + budget) * (double)probe_ns; /* it is in the CPU time that pays */
}

void xsp_brake_earn(struct xsp_brake_debt *d, double budget, uint64_t cpu_ns)
{
	d->ns -= budget * (double)cpu_ns;
	if (d->ns < -CREDIT_NS)
		d->ns = -CREDIT_NS;
}

bool xsp_brake_is_over(const struct xsp_brake_debt *d, double budget, bool ends)
{
	const double error = budget * TICK_NS;

	return d->ns > (ends ? 0 : DEBT_NS) + error && d->ns - d->unpaid_ns > error;
}

double xsp_brake_slowdown(uint64_t probe_ns, uint64_t cpu_ns)
{
	double cpu = (double)cpu_ns, own = cpu - (double)probe_ns;

	if (probe_ns == 0)
		return 0;
	if (own < cpu * LEAST_OWN)
		own = cpu * LEAST_OWN;
	return own > 0 ? (double)probe_ns / own : 1 / LEAST_OWN;
}

uint64_t xsp_brake_off_ns(double budget, double share, uint64_t on_ns)
{
	/* work done in a cycle, compared with an untraced thread: off + on * (1 - share) */
	double lost = xsp_budget_share(budget);

	return share > lost ? (uint64_t)((double)on_ns * (share / lost - 1)) : 0;
}

static XSP_ORDER(by_cost, struct xsp_cost, XSP_FALLING(ns));

static bool is_let_go(const struct xsp_brake_plan *plan, uint32_t probe)
{
	for (size_t i = 0; i < plan->let_go_count; i++)
		if (plan->let_go[i] == probe)
			return true;
	return false;
}

/* A thread's costs that may still be released, the greatest first. Returns how many; *others: the sum of those that may
 * not. */
static size_t collect(const struct xsp_brake_input *in, const struct xsp_brake_plan *plan,
		      uint32_t tid, struct xsp_cost *out, uint64_t *others)
{
	size_t n = 0;

	*others = 0;
	for (size_t i = 0; i < in->cost_count; i++) {
		const struct xsp_cost *c = &in->costs[i];
		if (c->tid != tid)
			continue;
		if (!in->may_go(in->ctx, c->probe))
			*others += c->ns;
		else if (!is_let_go(plan, c->probe))
			out[n++] = *c;
	}
	XSP_SORT(out, n, by_cost);
	return n;
}

static void judge(const struct xsp_brake_input *in, const struct xsp_brake_thread *t,
		  struct xsp_cost *scratch, struct xsp_brake_plan *plan)
{
	double slowdown = xsp_brake_slowdown(t->probe_ns, t->cpu_ns);
	uint64_t others, left = 0, least = (uint64_t)((double)t->cpu_ns * GRANTED_OWN);
	uint64_t own = t->cpu_ns > t->probe_ns ? t->cpu_ns - t->probe_ns : 0;

	if (own < least)
		own = least;

	const bool rather = plan->worst_tid & XSP_BRAKE_WHOLE && !(t->tid & XSP_BRAKE_WHOLE);

	if (rather || (slowdown > plan->worst &&
		       (plan->worst_tid == 0 || !((plan->worst_tid ^ t->tid) & XSP_BRAKE_WHOLE)))) {
		plan->worst = slowdown;
		plan->worst_tid = t->tid;
	}
	if (slowdown <= in->budget)
		return;
	size_t n = collect(in, plan, t->tid, scratch, &others);
	bool pause = xsp_brake_slowdown(others, own + others) > in->budget;
	if (pause) {
		double share = (double)others / (double)(own + others);
		plan->pause = true;
		if (share > plan->paused_share) {
			plan->paused_share = share;
			plan->share_ns = t->wall_ns;
		}
		/* costs that stay when everything is off half the time are not the probes' */
		others = 0;
	}
	for (size_t i = 0; i < n; i++)
		left += scratch[i].ns;
	for (size_t i = 0; i < n && xsp_brake_slowdown(left + others, own + left + others) >
					    (i == 0 ? in->budget : in->budget * AIM);
	     i++) {
		plan->let_go[plan->let_go_count++] = scratch[i].probe;
		left -= scratch[i].ns;
	}
}

int xsp_brake_decide(const struct xsp_brake_input *in, struct xsp_brake_plan *plan)
{
	struct xsp_cost *scratch = calloc(in->cost_count + 1, sizeof(*scratch));

	*plan = (struct xsp_brake_plan){.let_go =
						calloc(in->cost_count + 1, sizeof(*plan->let_go))};
	if (scratch == NULL || plan->let_go == NULL) {
		free(scratch);
		xsp_brake_plan_clear(plan);
		return -ENOMEM;
	}
	for (size_t i = 0; i < in->thread_count; i++)
		judge(in, &in->threads[i], scratch, plan);
	free(scratch);
	return 0;
}

void xsp_brake_plan_clear(struct xsp_brake_plan *plan)
{
	free(plan->let_go);
	*plan = (struct xsp_brake_plan){0};
}

/* Before any hit is timed, so many count at the usual price. */
#define PRIOR_HITS 64.0

double xsp_brake_price_beyond(uint64_t ns, uint64_t hits, double usual_ns)
{
	double more = ((double)ns - (double)hits * usual_ns) / ((double)hits + PRIOR_HITS);

	return more > 0 ? more : 0;
}

/* What is known before any sample, as so many samples that agree with it: to 30 %. */
#define PRIOR_SAMPLES 11.0
#define PRIOR_ERROR 0.3

double xsp_brake_price_factor(uint64_t sampled_ns, uint64_t samples, uint64_t counted_ns,
			      double *error)
{
	*error = PRIOR_ERROR;
	if (samples < XSP_BRAKE_FEW_SAMPLES)
		return 1;
	const double prior_ns = PRIOR_SAMPLES * (double)sampled_ns / (double)samples;
	const double factor = ((double)sampled_ns + prior_ns) / ((double)counted_ns + prior_ns);

	*error = fmin(PRIOR_ERROR, 2 / sqrt((double)samples + PRIOR_SAMPLES));
	return fmin(fmax(factor, 0.5), 4);
}
