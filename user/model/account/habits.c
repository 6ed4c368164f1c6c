/* SPDX-License-Identifier: BSD-2-Clause */
/* habits.c - how threads wait: whether they ask for many answers in a row, hold up an event loop, or pass something on to each
 * other. */
#include "model/account/account_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Between two waits for answers it computes: that many, by the logarithm of the time. */
int account_count_ask(struct account_thread *th)
{
	if (th->asks == NULL && (th->asks = calloc(1, sizeof(*th->asks))) == NULL)
		return -ENOMEM;
	const size_t k = (size_t)(63 - __builtin_clzll(th->between_ns | 1));
	th->asks->count[k]++;
	th->asks->ns[k] += th->between_ns;
	th->between_ns = 0;
	return 0;
}

/* Is it called by an event loop (asyncio, or node's), which does nothing else meanwhile? */
bool account_is_in_loop(const struct xsp_account *a, const struct xsp_wait *w)
{
	if (w->why == XSP_WAIT_LOCK || w->why == XSP_WAIT_FAULT || w->why == XSP_WAIT_RUNNABLE)
		return false;
	for (uint32_t i = 0; i < w->path_length; i++) {
		const char *name = xsp_timeline_name(a->timeline, w->path[i] & ~XSP_PATH_FRAME);
		if ((strncmp(name, "events.py:", 10) == 0 &&
		     strstr(name, " Handle._run") != NULL) ||
		    strstr(name, "node::SyncProcessRunner::") != NULL)
			return true;
	}
	return false;
}

/* Work that it gave away: who waits for a queue may have nothing to do. */
static bool is_for_result(const struct xsp_account *a, const struct xsp_wait *w)
{
	static const char *const waits[] = {" Future.result", " ApplyResult.wait"};
	static const char *const functions[] = {"std::__atomic_futex_unsigned_base::",
						"std::__future_base::"};

	for (uint32_t i = 0; i < w->path_length; i++) {
		const char *name = xsp_timeline_name(a->timeline, w->path[i] & ~XSP_PATH_FRAME);
		if (XSP_BEGINS_WITH_ANY(name, functions))
			return true;
		for (size_t k = 0; k < sizeof(waits) / sizeof(waits[0]); k++)
			if (xsp_ends_with(name, strlen(name), waits[k]))
				return true;
	}
	return false;
}

#define TOGETHER_NS                                                                                \
	100000U /* a thread that wakes several at once hands nothing over: it ends a barrier */

/* Who of the other threads ended such a wait: those of one kind may pass something on to each other. */
int account_count_waker(struct xsp_account *a, const struct account_thread *th,
			const struct xsp_wait *w)
{
	struct account_thread *by = xsp_tally_find(&a->threads, xsp_u64_pair(w->pid, w->waker));

	if (by == NULL) /* of another process, or it did nothing yet */
		return 0;
	const uint32_t waiter = xsp_tally_index(&a->threads, th);
	const uint32_t waker = xsp_tally_index(&a->threads, by);
	struct account_pass *p =
		xsp_tally_row(&a->passes, xsp_u64_pair(waiter, waker),
			      &(struct account_pass){.waiter = waiter, .waker = waker});
	if (p == NULL)
		return a->passes.tally.error;
	p->ns += w->woken_ns - w->left_ns;
	p->results_ns += is_for_result(a, w) ? w->woken_ns - w->left_ns : 0;
	p->times++;
	p->together += by->last_woken != waiter + 1 && w->woken_ns < by->woke_ns + TOGETHER_NS &&
		       by->woke_ns < w->woken_ns + TOGETHER_NS;
	by->woke_ns = w->woken_ns;
	by->last_woken = waiter + 1;
	return 0;
}

#define LONGER 3U /* logarithm: so much longer it computes after the last one of a row */
#define ROW_LEAST 8.0
#define ROWS_LEAST 5U
#define LONGER_LEAST 0.2 /* of the time that it computes */

/* It asks for one answer after the other, does little between, and then computes for longer: how many in a row. A thread that
 * does the same after each of them has no rows. */
static double in_a_row(const struct account_asks *asks)
{
	uint64_t all = 0, all_ns = 0, longer = 0, longer_ns = 0, below = 0;
	size_t usual = 0;

	if (asks == NULL)
		return 0;
	for (size_t k = 0; k < 64; k++) {
		all += asks->count[k];
		all_ns += asks->ns[k];
	}
	while (usual < 63 && 2 * (below += asks->count[usual]) < all)
		usual++;
	for (size_t k = usual + LONGER; k < 64; k++) {
		longer += asks->count[k];
		longer_ns += asks->ns[k];
	}
	return longer >= ROWS_LEAST && (double)longer_ns >= LONGER_LEAST * (double)all_ns &&
			       (double)all >= ROW_LEAST * (double)longer
		       ? (double)all / (double)longer
		       : 0;
}

#define SERVED 0.6 /* four fifths are of one thread, and the rest are not */

static const char *comm_of(const struct xsp_account *a, const struct account_thread *th)
{
	const struct xsp_timeline_thread *t = xsp_timeline_thread(a->timeline, th->tid);

	return t != NULL ? t->comm : "";
}

/* Of one family, or numbered threads of a pool, whose routine is not always known. */
static bool is_same_kind(const struct xsp_account *a, const struct account_pass *p)
{
	const struct account_thread *x = &a->threads.rows[p->waiter];
	const struct account_thread *y = &a->threads.rows[p->waker];

	return x->family == y->family ||
	       (x->group == y->group && strcmp(comm_of(a, x), comm_of(a, y)) != 0);
}

/* The thread of so much of that time; 0: none has. */
static uint32_t leader(const struct xsp_account *a, const struct account_lead *by, uint64_t ns)
{
	return by->ahead > 0 && (double)by->ahead >= SERVED * (double)ns
		       ? a->threads.rows[by->what - 1].tid
		       : 0;
}

void account_find_habits(struct xsp_account *a)
{
	for (size_t i = 0; i < a->threads.count; i++) {
		struct xsp_account_family *f = &a->families.rows[a->threads.rows[i].family].shown;
		if (f->tid == a->threads.rows[i].tid && f->pid == a->threads.rows[i].pid)
			f->in_a_row = in_a_row(a->threads.rows[i].asks);
	}
	for (size_t i = 0; i < a->passes.count; i++) {
		const struct account_pass *p = &a->passes.rows[i];
		const uint32_t family = a->threads.rows[p->waiter].family;
		struct xsp_account_family *f = &a->families.rows[family].shown;
		if (a->threads.rows[p->waiter].idle)
			continue;
		f->woken_ns += p->ns;
		account_vote(&a->families.rows[family].waker, p->waker + 1, (int64_t)p->ns);
		if (is_same_kind(a, p) && 4 * p->together < p->times)
			f->passed_ns += p->ns;
		if (!is_same_kind(a, p))
			account_vote(&a->families.rows[family].server, p->waker + 1,
				     (int64_t)p->results_ns);
	}
	for (size_t i = 0; i < a->families.count; i++) {
		struct account_family *f = &a->families.rows[i];
		f->shown.server = leader(a, &f->server, f->shown.woken_ns);
		f->shown.waker = leader(a, &f->waker, f->shown.woken_ns);
	}
}
