/* SPDX-License-Identifier: BSD-2-Clause */
/* ranks_blame.c - who comes last to collectives, who waits for it, and who is to blame for that. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/ranks/ranks_private.h"
#include "base/rows/search.h"

static struct interval overlap(struct interval a, struct interval b)
{
	return (struct interval){a.start_ns > b.start_ns ? a.start_ns : b.start_ns,
				 a.end_ns < b.end_ns ? a.end_ns : b.end_ns};
}

/* Adds to each step the time in it that the rank was blocked, wherever the collective began. */
static void block_steps(struct rank *k, struct interval blocked)
{
	size_t at = 0;

	XSP_LOWER_BOUND(at, k->steps.count, i,
			k->steps.rows[i].start_ns <=
				blocked.start_ns); /* the first step that begins later */
	for (at -= at > 0; at < k->steps.count && k->steps.rows[at].start_ns < blocked.end_ns;
	     at++) {
		struct rank_step *s = &k->steps.rows[at];
		const struct interval in =
			overlap(blocked, (struct interval){s->start_ns, s->end_ns});
		if (in.end_ns > in.start_ns)
			s->waited_ns += in.end_ns - in.start_ns;
	}
}

static int add_blocked(struct rank *k, struct interval in)
{
	k->blocked_ns += in.end_ns - in.start_ns;
	block_steps(k, in);
	return XSP_PUT(&k->stood, in);
}

/* Finds when the rank was blocked by late ranks. Collectives that overlap count once. Where no wait
 * was recorded, it is taken to stand still from its arrival to the last rank's. */
static int find_held(struct rank *k)
{
	int64_t before = 0;
	size_t b = 0;
	int rc = 0;

	k->early.count = xsp_ranks_merge(k->early.rows, k->early.count);
	for (size_t e = 0; e < k->early.count && rc == 0; e++) {
		if (!k->waits_known)
			rc = add_blocked(k, k->early.rows[e]);
		while (b < k->blocked.count &&
		       k->blocked.rows[b].end_ns <= k->early.rows[e].start_ns)
			b++;
		for (size_t i = b; i < k->blocked.count && rc == 0 &&
				   k->blocked.rows[i].start_ns < k->early.rows[e].end_ns;
		     i++)
			rc = add_blocked(k, overlap(k->early.rows[e], k->blocked.rows[i]));
	}
	k->stood.count = xsp_ranks_merge(k->stood.rows, k->stood.count);
	for (size_t i = 0; i < k->stood.count && rc == 0; i++) {
		const struct interval *in = &k->stood.rows[i];
		rc = XSP_PUT(&k->held, (struct held){in->start_ns, in->end_ns, before});
		before += in->end_ns - in->start_ns;
	}
	return rc;
}

static int64_t held_until(const struct rank *k, int64_t ns)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, k->held.count, i, k->held.rows[i].start_ns < ns);
	if (low == 0)
		return 0;
	const struct held *h = &k->held.rows[low - 1];
	return h->before_ns + (h->end_ns < ns ? h->end_ns : ns) - h->start_ns;
}

/* One rank's figure minus the median of the others' figures. */
static int64_t against_others(const struct met *met, size_t count, size_t which,
			      int64_t (*figure)(const struct met *m), int64_t *scratch)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (i != which)
			scratch[n++] = figure(&met[i]);
	return figure(&met[which]) - xsp_ranks_median(scratch, n);
}

static int64_t came_at(const struct met *m)
{
	return m->start_ns;
}

/* When it would have come if no other rank had held it up. */
static int64_t own_doing(const struct met *m)
{
	return m->start_ns - (held_until(m->rank, m->at->start_ns) - m->not_compared_ns);
}

static int64_t blamed_so_far(const struct met *m)
{
	return m->rank->late_ns;
}

static uint64_t who_met(const struct met *met, size_t count)
{
	uint64_t who = count;

	for (size_t i = 0; i < count; i++)
		who = xsp_u64_mix(who ^ met[i].member->rank);
	return who | 1;
}

/*
 * How much later it came than the others through its own fault. What held it up in other
 * collectives is not its fault.
 *
 * A delay counts only once. This group's last collective may have reported it already, while nobody
 * waited (buckets of gradients reduced while others are computed). Or another group's collective
 * has reported it since.
 */
static int64_t own_lateness(const struct met *met, size_t count, size_t which, uint64_t who,
			    int64_t *scratch)
{
	const struct member *m = met[which].member;
	const int64_t late = against_others(met, count, which, came_at, scratch);

	if (late <= 0 || (m->met != 0 && m->met != who))
		return late;
	const int64_t own = against_others(met, count, which, own_doing, scratch) - m->ahead_ns;
	const int64_t told =
		against_others(met, count, which, blamed_so_far, scratch) - m->blamed_ns;
	return own - told < late ? own - told : late;
}

static int note_lateness(struct xsp_ranks *j, const struct met *met, int64_t by_ns)
{
	struct rank *k = met->rank;
	struct lateness *l =
		xsp_tally_row(&k->late, met->at->name, &(struct lateness){.name = met->at->name});

	if (l == NULL)
		return -ENOMEM;
	l->calls++;
	if (by_ns < j->late_least_ns)
		return 0;
	l->times++;
	l->sum_ns += by_ns;
	k->late_ns += by_ns;
	if (by_ns > l->most_ns) {
		l->most_ns = by_ns;
		l->most_at_ns = met->start_ns;
	}
	return 0;
}

/* A rank in the collective waits until the last rank has come; the rest is transfer. */
static int share_out(struct collective_sum *sum, const struct met *met, int64_t last_ns)
{
	struct rank *k = met->rank;
	const int64_t in = met->end_ns - met->start_ns;
	int64_t waited = last_ns - met->start_ns;

	waited = waited < in ? waited : in;
	k->matched++;
	k->in_ns += in;
	k->waited_ns += waited;
	sum->in_ns += in;
	sum->waited_ns += waited;
	if (waited > sum->most_waited_ns)
		sum->most_waited_ns = waited;
	if (waited <= 0)
		return 0;
	return XSP_PUT(&k->early, (struct interval){met->at->start_ns, met->at->start_ns + waited});
}

static int judge(struct xsp_ranks *j, void *ctx, struct met *met, size_t count)
{
	struct collective_sum *sum =
		xsp_tally_row(&j->collectives, met[0].at->name,
			      &(struct collective_sum){.name = met[0].at->name});
	size_t last = 0;

	(void)ctx;
	if (sum == NULL)
		return -ENOMEM;
	for (size_t i = 1; i < count; i++)
		if (met[i].start_ns > met[last].start_ns)
			last = i;
	sum->calls++;
	sum->transfer_ns += met[last].end_ns - met[last].start_ns;
	sum->ranks = count > sum->ranks ? (uint32_t)count : sum->ranks;
	met[last].rank->times_last++;
	for (size_t i = 0; i < count; i++)
		if (share_out(sum, &met[i], met[last].start_ns) < 0)
			return -ENOMEM;
	return 0;
}

static int blame(struct xsp_ranks *j, void *ctx, struct met *met, size_t count)
{
	int64_t *late = ctx, *scratch = late + j->count, from = met[0].rank->window_start_ns;
	const uint64_t who = who_met(met, count);
	int rc = 0;

	for (size_t i = 0; i < count; i++) {
		const int64_t start = met[i].rank->window_start_ns + met[i].rank->shift_ns;
		from = i == 0 || start > from ? start : from;
	}
	for (size_t i = 0; i < count; i++)
		met[i].not_compared_ns = held_until(met[i].rank, from - met[i].rank->shift_ns);
	for (size_t i = 0; i < count; i++)
		late[i] = own_lateness(met, count, i, who, scratch);
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = note_lateness(j, &met[i], late[i]);
	for (size_t i = 0; i < count; i++) {
		met[i].member->met = who;
		met[i].member->ahead_ns = against_others(met, count, i, own_doing, scratch);
		met[i].member->blamed_ns = against_others(met, count, i, blamed_so_far, scratch);
	}
	return rc;
}

static int judge_all(struct xsp_ranks *j)
{
	int64_t *scratch = calloc(2 * j->count + 1, sizeof(*scratch));
	int rc = scratch != NULL ? xsp_ranks_each_met(j, judge, NULL) : -ENOMEM;

	for (size_t i = 0; i < j->count && rc == 0; i++) {
		uint64_t all = j->ranks[i].left_out;
		for (size_t g = 0; g < j->ranks[i].groups.count; g++)
			all += j->ranks[i].groups.rows[g].seq.count;
		j->ranks[i].unmatched = all - j->ranks[i].matched;
		rc = find_held(&j->ranks[i]);
	}
	if (rc == 0)
		rc = xsp_ranks_each_met(j, blame, scratch);
	free(scratch);
	return rc;
}

static void find_window(struct xsp_ranks *j)
{
	for (size_t i = 0; i < j->count; i++) {
		const struct rank *k = &j->ranks[i];
		const int64_t start = k->window_start_ns + k->shift_ns;
		const int64_t end = k->window_end_ns + k->shift_ns;
		j->start_ns = i == 0 || start < j->start_ns ? start : j->start_ns;
		j->end_ns = i == 0 || end > j->end_ns ? end : j->end_ns;
	}
}

int xsp_ranks_match(struct xsp_ranks *j)
{
	const int rc = xsp_ranks_match_groups(j);

	find_window(j);
	return rc == 0 ? judge_all(j) : rc;
}
