/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * brake.h - how the target is kept from being slowed by more than it may: what to let go of, and how
 * long to stay off. Decides on figures alone; watched.c gathers them, changes.c does what is decided.
 *
 * The slowdown of a thread is its time in probes over the CPU time that it had without them: 0.2 says
 * that its work took 1.2 times as long. Its budget is the most of that.
 */
#ifndef XSP_RECORD_BRAKE_H
#define XSP_RECORD_BRAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/brake/costs.h"

/* All threads of a process are judged as one more thread, and so are all processes: above all ids of threads. */
#define XSP_BRAKE_WHOLE (1U << 31)

/* A thread over an interval. */
struct xsp_brake_thread {
	uint32_t tid; /* a process: XSP_BRAKE_WHOLE | its pid */
	uint64_t probe_ns; /* estimated */
	uint64_t cpu_ns; /* CPU time that it had, probes included */
	uint64_t wall_ns; /* the interval */
};

/* Time in probes beyond the budget that it has not got back. Zero-initialise. */
struct xsp_brake_debt {
	double ns;
	double unpaid_ns; /* at the beginning of the interval */
};

void xsp_brake_spend(struct xsp_brake_debt *d, double budget, uint64_t probe_ns);
/* cpu_ns: with probes, as it comes from the kernel. */
void xsp_brake_earn(struct xsp_brake_debt *d, double budget, uint64_t cpu_ns);
/* Is it too much? At a window's end any debt is. */
bool xsp_brake_is_over(const struct xsp_brake_debt *d, double budget, bool ends);

struct xsp_brake_input {
	double budget;
	const struct xsp_brake_thread *threads; /* threads to judge */
	size_t thread_count;
	const struct xsp_cost *costs; /* costs in the same interval, of any threads */
	size_t cost_count;
	/* May this probe be released alone? The others only pause, all together. */
	bool (*may_go)(void *ctx, uint32_t probe);
	void *ctx;
};

struct xsp_brake_plan {
	uint32_t *let_go; /* the greatest costs first; free() */
	size_t let_go_count;
	bool pause; /* what may not be released alone is over the budget */
	double worst; /* slowdown of the worst thread; of a process, if none is over the budget by itself */
	uint32_t worst_tid;
	double paused_share; /* of the worst thread's CPU time: what may not be released alone */
	uint64_t share_ns; /* ... in such an interval */
};

/* The budget's share of the CPU time. */
static inline double xsp_budget_share(double budget)
{
	return budget / (1 + budget);
}

double xsp_brake_slowdown(uint64_t probe_ns, uint64_t cpu_ns);

/* 0 or -ENOMEM; the caller clears *plan. */
int xsp_brake_decide(const struct xsp_brake_input *in, struct xsp_brake_plan *plan);
void xsp_brake_plan_clear(struct xsp_brake_plan *plan);

/* After `on_ns` with a `share` of the CPU time in probes: how long a pause keeps both together within the budget. */
uint64_t xsp_brake_off_ns(double budget, double share, uint64_t on_ns);

/* A hit's price beyond the calibrated `usual_ns`, if `hits` took `ns` in all. The first hits meet cold caches and take
 * twenty times as long, so few of them count for little. */
double xsp_brake_price_beyond(uint64_t ns, uint64_t hits, double usual_ns);

/* By how much the counted price of hits is too low: `samples` found threads in hits, and stand for sampled_ns. *error:
 * with 95 % certainty the factor is right to this part. Returns 1 if few samples are known. */
#define XSP_BRAKE_FEW_SAMPLES 25
double xsp_brake_price_factor(uint64_t sampled_ns, uint64_t samples, uint64_t counted_ns,
			      double *error);

#endif
