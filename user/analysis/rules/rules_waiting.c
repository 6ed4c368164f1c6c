/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_waiting.c - threads that wait for another machine, process or program, or that sleep:
 * --waits.
 *
 * It is a finding where steps wait, or a thread that computes much of its time. Otherwise no figure shows whether it
 * is a fault, as a server waits for requests and a client for answers: a note names the line. A thread that polls or
 * accepts, or waited only a few times, is not reported.
 */
#include "analysis/rules/rules_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/waits/summary_waits_private.h"
#include "base/rows/order.h"
#include "base/rows/u64map.h"

/* A parent waits once for its child, a reader once for its input. */
#define WAITS_LEAST 5U

static const struct {
	enum xsp_wait_class why;
	const char *for_what, *advice;
} reasons[] = {
	{XSP_WAIT_NETWORK, "waits for the network",
	 "what answers is slow, or there is nothing to do. If it should be working: look at what is at the other end, ask for several things at once, keep connections and what was answered"},
	{XSP_WAIT_CHILD, "waits for programs that it started",
	 "start them ahead or several at once, keep one running, or do their work in the process itself; -f records them too"},
	{XSP_WAIT_PIPE, "waits for what is at the other end of a pipe",
	 "who reads it is slower than what is written, or who writes it than what is read: look at that process, larger pieces, or a file between the two"},
	{XSP_WAIT_SLEEP, "sleeps",
	 "it does so itself. If it waits for something to happen: a condition, a queue or epoll tells at once; in a loop of events (asyncio) a sleep holds up all of them"},
};
#define REASONS (sizeof(reasons) / sizeof(reasons[0]))

/* Threads of a process that wait for the same thing at the same place. */
struct waiting {
	uint32_t pid, place;
	size_t reason;
	uint32_t first; /* the thread that waited longest */
	uint64_t most_ns, first_time_ns, first_running_ns;
	uint64_t threads, waits, ns, time_ns;
};

struct all_waiting {
	struct waiting *list;
	size_t count, capacity;
	struct xsp_u64map of;
};

/* Where it waited longest for that; NULL: not known, or it waits for any peer. */
static const struct spot *place_of(const struct xsp_rule_context *c,
				   const struct xsp_summary_waits *w,
				   const struct xsp_thread_times *t, enum xsp_wait_class why)
{
	const struct spot *spots;
	const size_t count = xsp_waits_thread_spots(w, t->thread, &spots);

	for (size_t i = 0; i < count; i++)
		if (spots[i].why == why)
			return strstr(xsp_timeline_name(c->timeline, spots[i].inside - 1),
				      "accept") == NULL
				       ? &spots[i]
				       : NULL;
	return NULL;
}

static int add_thread(struct all_waiting *a, const struct xsp_thread_times *t, size_t reason,
		      uint32_t place)
{
	const struct waiting first = {.pid = t->thread->pid, .place = place, .reason = reason};
	const uint64_t key = xsp_u64_mix((uint64_t)first.pid << 32 | place) + reason;
	const uint64_t ns = t->blocked_ns[reasons[reason].why];
	struct waiting *x =
		xsp_u64map_element(&a->of, key, &a->list, &a->capacity, &a->count, &first);

	if (x == NULL)
		return -ENOMEM;
	if (ns > x->most_ns) {
		x->most_ns = ns;
		x->first_time_ns = t->until_ns - t->since_ns;
		x->first_running_ns = t->running_ns;
		x->first = t->thread->tid;
	}
	x->threads++;
	x->ns += ns;
	x->waits += t->waits[reasons[reason].why];
	x->time_ns += t->until_ns - t->since_ns;
	return 0;
}

#define COMPUTES 0.3

/* Do steps wait, or does the thread compute a good part of its time? */
static bool is_held_up(const struct xsp_rule_context *c, const struct waiting *x)
{
	const double wanted = (1 - c->ready) * (double)x->first_time_ns;

	return c->steps.steps > 0 || (double)x->first_running_ns >= COMPUTES * wanted;
}

static void find(const struct xsp_rule_context *c, const struct waiting *x, double share,
		 bool its_own)
{
	char who[160];
	struct xsp_rule_finding f = {.subject = xsp_timeline_name(c->timeline, x->place - 1),
				     .part.share = share,
				     .note = !is_held_up(c, x),
				     .advice = reasons[x->reason].advice};

	xsp_waits_thread(xsp_rule_summary(c)->waits, x->first, who, sizeof(who));
	xsp_finding_ns(&f, "total_ns", "in all", x->ns);
	xsp_finding_count(&f, "waits", "waits", x->waits);
	xsp_finding_count(&f, "threads", "threads", x->threads);
	xsp_finding_text(&f, "who", NULL, who);
	xsp_finding_text(&f, "waits_for", NULL, reasons[x->reason].for_what);
	xsp_finding_text(&f, "whose", NULL, its_own ? "its" : "the recorded");
	xsp_rule_found(c, &f);
}

static XSP_ORDER(longest, struct waiting, XSP_FALLING(ns) ?: XSP_RISING(place));

#define FINDINGS_MAX 5U

int xsp_rule_waiting(const struct xsp_rule_context *c)
{
	const struct xsp_summary_waits *w = xsp_rule_summary(c)->waits;
	const uint64_t watched = xsp_rule_waits_ns(c);
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(c->timeline, &times);
	struct all_waiting all = {.list = NULL};
	size_t found = 0;
	int rc = w == NULL ? XSP_RULE_NO_DATA : 0;

	for (size_t i = 0; rc == 0 && i < count; i++)
		for (size_t k = 0; rc == 0 && k < REASONS; k++) {
			const struct spot *s = times[i].blocked_ns[reasons[k].why] > 0
						       ? place_of(c, w, &times[i], reasons[k].why)
						       : NULL;
			if (s != NULL)
				rc = add_thread(&all, &times[i], k, s->place);
		}
	if (all.count > 0)
		qsort(all.list, all.count, sizeof(*all.list), longest);
	for (size_t i = 0; rc == 0 && i < all.count && found < FINDINGS_MAX; i++) {
		const struct waiting *x = &all.list[i];
		/* short-lived threads are compared with all of the time */
		const bool its_own = xsp_rule_was_there(c, x->first_time_ns);
		const double share =
			its_own ? xsp_rule_share(x->most_ns, x->first_time_ns)
				: xsp_rule_share(x->ns,
						 x->time_ns > watched ? x->time_ns : watched);
		if (share / (1 - c->ready) < c->threshold || share <= 0 || x->waits < WAITS_LEAST)
			continue;
		find(c, x, share, its_own);
		found++;
	}
	xsp_u64map_free(&all.of);
	free(all.list);
	return rc;
}
