/* SPDX-License-Identifier: BSD-2-Clause */
/* ranks_match.c - which collectives of the ranks are the same one, how far clocks are apart, and
 * who came last. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/ranks/ranks_private.h"
#include "base/rows/search.h"

/* How many collectives, spread over all, are compared to align two sequences. */
#define SAMPLES 1024U
#define FEW 32U
#define MEAN_SHARE 16 /* the mean distance counts for a 16th of the median */
#define MEAN_SHARE_ONE_HOST 2
#define FAR_APART_NS 1000000000 /* a greater distance says no more */
/* Recordings need not begin together: tries so many collectives more and less than clocks say. */
#define SHIFTS 16L
/* The least lateness that counts: this, and also so many times the spread of ends. */
#define LATE_LEAST_NS 100000
#define LATE_SPREADS 2

/* ---- which processes are ranks ---- */

static bool is_rank(const struct rank *k)
{
	for (size_t i = 0; i < k->groups.count; i++)
		if (k->groups.rows[i].seq.count > 0)
			return true;
	return k->named;
}

bool xsp_ranks_known(const struct xsp_ranks *j)
{
	size_t i = 0;

	while (i < j->count && !is_rank(&j->ranks[i]))
		i++;
	return i < j->count;
}

/* A number of -1, which is none, comes last. */
static XSP_ORDER(order_ranks, struct rank,
		 XSP_COMPARE((unsigned long)x->number, (unsigned long)y->number)
			 ?: XSP_RISING(capture) ?: XSP_RISING(pid));

/* A launcher recorded with its ranks is no rank. If no process is a rank, all are compared. */
static void keep_ranks(struct xsp_ranks *j)
{
	const bool any = xsp_ranks_known(j);
	size_t kept = 0;

	for (size_t i = 0; i < j->count; i++) {
		if (any && !is_rank(&j->ranks[i]))
			xsp_ranks_free_rank(&j->ranks[i]);
		else
			j->ranks[kept++] = j->ranks[i];
	}
	j->count = kept;
	XSP_SORT(j->ranks, kept, order_ranks);
}

/* ---- hosts ---- */

static void number_hosts(struct xsp_ranks *j)
{
	for (size_t i = 0; i < j->count; i++) {
		struct rank *k = &j->ranks[i];
		for (size_t before = 0; before < i && k->host_index == NO_INDEX; before++)
			if (strcmp(j->ranks[before].host, k->host) == 0)
				k->host_index = j->ranks[before].host_index;
		if (k->host_index == NO_INDEX)
			k->host_index = (uint32_t)j->hosts++;
	}
}

/* ---- aligning two sequences ---- */

struct fit {
	long shift; /* b[n + shift] and a[n] are the same collective */
	int64_t cost, apart_ns; /* ends in b minus ends in a, median */
	bool good;
};

/* Two sequences, and what is known about their clocks. */
struct pair {
	const struct group *a, *b;
	int64_t ahead_ns; /* b's clock minus a's */
	unsigned trust; /* a clock off by this much costs 1; on one host, 1 */
};
#define TRUST_MEASURED 8 /* between hosts whose clocks a group has compared */
#define TRUST_NONE 1024 /* clocks as the hosts set them */

/* Index of the first collective that ends after ns. */
static size_t ended_before(const struct group *g, int64_t ns)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, g->seq.count, i, g->seq.rows[i].end_ns <= ns);
	return low;
}

static int64_t magnitude(int64_t x)
{
	return x < 0 ? -x : x;
}

/* Ends of the same collective differ by the difference of the clocks, which is constant, and 0 on
 * one host. Ends of different ones differ by whatever the program did in between. Where most of
 * that is just as regular, the remaining distances decide. If a collective is missing in the
 * middle, all later ones are out of step: up to half may be. */
static bool try_shift(const struct pair *p, long shift, size_t samples, int64_t *apart,
		      struct fit *out)
{
	const struct group *a = p->a, *b = p->b;
	const long from = shift < 0 ? -shift : 0, end_b = (long)b->seq.count - shift;
	const long to = end_b < (long)a->seq.count ? end_b : (long)a->seq.count;
	const size_t least = a->seq.count < b->seq.count ? a->seq.count : b->seq.count;
	size_t n = 0, others = 0;
	double sum = 0;

	if (to <= from || (size_t)(to - from) < (least + 1) / 2)
		return false;
	const long step = (to - from + (long)samples - 1) / (long)samples;
	for (long i = from; i < to; i += step) {
		const struct instance *x = &a->seq.rows[i], *y = &b->seq.rows[i + shift];
		if (x->name == y->name)
			apart[n++] = y->end_ns - x->end_ns;
		else
			others++;
	}
	if (n == 0 || n < others)
		return false;
	const int64_t median = xsp_ranks_median(apart, n);
	for (size_t i = 0; i < n; i++) {
		apart[i] = magnitude(apart[i] - median);
		sum += (double)(apart[i] < FAR_APART_NS ? apart[i] : FAR_APART_NS);
	}
	const double off = (double)magnitude(median - p->ahead_ns) / p->trust;
	const double cost = (double)xsp_ranks_median(apart, n) + off +
			    sum / (double)n / (p->trust == 1 ? MEAN_SHARE_ONE_HOST : MEAN_SHARE);
	*out = (struct fit){.shift = shift,
			    .cost = (int64_t)(cost * (double)(n + others) / (double)n),
			    .apart_ns = median,
			    .good = true};
	return true;
}

/* Tries shifts. *best: the best fit so far, which the next one must undercut. */
static void fit_shifts(const struct pair *p, long first, long last, size_t samples, int64_t *apart,
		       struct fit *best)
{
	for (long s = first; s <= last; s++) {
		struct fit fit;
		if (try_shift(p, s, samples, apart, &fit) && (!best->good || fit.cost < best->cost))
			*best = fit;
	}
}

/* `worse_than`: another pair that fits. A pair that cannot fit better is not examined closely. */
static struct fit fit_groups(const struct pair *p, const struct fit *worse_than)
{
	int64_t apart[SAMPLES];
	struct fit few = {.good = false}, best = {.good = false};
	const size_t middle = p->a->seq.count / 2;
	const long guess = (long)ended_before(p->b, p->a->seq.rows[middle].end_ns + p->ahead_ns) -
			   (long)middle;
	const long shifts = p->trust == 1 ? 2 : SHIFTS;

	fit_shifts(p, 0, 0, FEW, apart, &few);
	fit_shifts(p, guess - shifts, guess + shifts, FEW, apart, &few);
	if (!few.good || (worse_than->good && few.cost / 4 > worse_than->cost + LATE_LEAST_NS))
		return best;
	fit_shifts(p, 0, 0, SAMPLES, apart, &best);
	fit_shifts(p, guess - shifts, guess + shifts, SAMPLES, apart, &best);
	return best;
}

/* ---- groups over the ranks ---- */

static int add_member(struct joint_group *g, size_t rank, size_t group, long shift)
{
	return XSP_PUT(&g->members, (struct member){.rank = (uint32_t)rank,
						    .group = (uint32_t)group,
						    .shift = shift,
						    .now = shift});
}

/* Is that process already in it? A process has one rank in a group. */
static bool has_process(const struct joint_group *joint, size_t rank)
{
	for (size_t m = 0; m < joint->members.count; m++)
		if (joint->members.rows[m].rank == rank)
			return true;
	return false;
}

static struct pair pair_of(const struct xsp_ranks *j, const struct group *a, size_t a_rank,
			   const struct group *b, size_t b_rank)
{
	const uint32_t x = j->ranks[a_rank].host_index, y = j->ranks[b_rank].host_index;

	if (x == y)
		return (struct pair){a, b, 0, 1};
	if (!j->clocks[x].known || !j->clocks[y].known)
		return (struct pair){a, b, 0, TRUST_NONE};
	return (struct pair){a, b, j->clocks[y].ahead_ns - j->clocks[x].ahead_ns, TRUST_MEASURED};
}

static void note_clock(struct xsp_ranks *j, size_t a_rank, size_t b_rank, const struct fit *fit)
{
	struct host_clock *x = &j->clocks[j->ranks[a_rank].host_index];
	struct host_clock *y = &j->clocks[j->ranks[b_rank].host_index];

	if (x->known && !y->known)
		*y = (struct host_clock){true, x->ahead_ns + fit->apart_ns};
	else if (y->known && !x->known)
		*x = (struct host_clock){true, y->ahead_ns - fit->apart_ns};
}

/* Finds rank `wanted` of the group whose first member is `first`: the candidate that fits best. */
static int find_member(struct xsp_ranks *j, struct joint_group *joint, uint32_t index,
		       const struct group *first, size_t first_rank, uint32_t wanted)
{
	struct fit best = {.good = false};
	size_t rank = 0, group = 0;

	for (size_t i = 0; i < j->count; i++) {
		if (has_process(joint, i))
			continue;
		for (size_t g = 0; g < j->ranks[i].groups.count; g++) {
			const struct group *other = &j->ranks[i].groups.rows[g];
			const struct pair pair = pair_of(j, first, first_rank, other, i);
			if (other->joint != NO_INDEX || other->seq.count == 0 ||
			    other->size != first->size || other->rank != wanted)
				continue;
			const struct fit fit = fit_groups(&pair, &best);
			if (!fit.good || (best.good && best.cost <= fit.cost))
				continue;
			best = fit;
			rank = i;
			group = g;
		}
	}
	if (!best.good)
		return 0;
	note_clock(j, first_rank, rank, &best);
	j->ranks[rank].groups.rows[group].joint = index;
	return add_member(joint, rank, group, best.shift);
}

/* Finds all ranks of the group, each once. */
static int find_members(struct xsp_ranks *j, struct joint_group *joint, uint32_t index,
			const struct group *first, size_t first_rank)
{
	struct xsp_u64map looked_for = {0};
	int rc = xsp_u64map_set(&looked_for, first->rank, 1);

	for (size_t i = 0; i < j->count; i++)
		for (size_t g = 0; rc == 0 && g < j->ranks[i].groups.count; g++) {
			const struct group *other = &j->ranks[i].groups.rows[g];
			if (other->joint != NO_INDEX || other->size != first->size ||
			    xsp_u64map_get(&looked_for, other->rank) != NULL)
				continue;
			rc = xsp_u64map_set(&looked_for, other->rank, 1);
			if (rc == 0)
				rc = find_member(j, joint, index, first, first_rank, other->rank);
		}
	xsp_u64map_free(&looked_for);
	return rc;
}

static int join_group(struct xsp_ranks *j, size_t rank, size_t group)
{
	struct group *first = &j->ranks[rank].groups.rows[group];
	const uint32_t index = (uint32_t)j->groups.count;
	struct joint_group joint = {0};
	int rc = add_member(&joint, rank, group, 0);

	first->joint = index;
	if (rc == 0)
		rc = find_members(j, &joint, index, first, rank);
	if (rc == 0 && xsp_grow(&j->groups.rows, &j->groups.capacity, j->groups.count + 1) < 0)
		rc = -ENOMEM;
	if (rc < 0) {
		free(joint.members.rows);
		return rc;
	}
	j->groups.rows[j->groups.count++] = joint;
	return 0;
}

struct candidate {
	uint32_t rank, group, size;
	size_t count;
};

static XSP_ORDER(order_candidates, struct candidate,
		 XSP_FALLING(size) ?: XSP_FALLING(count) ?: XSP_RISING(rank) ?: XSP_RISING(group));

/* Takes the largest groups first: fewest others resemble them, and they show how far clocks are
 * apart. Among equals it takes the longest, since only what the first member recorded is
 * compared. */
static int join_groups(struct xsp_ranks *j)
{
	struct candidate *all = NULL;
	size_t count = 0, capacity = 0;
	int rc = 0;

	j->clocks = calloc(j->hosts + 1, sizeof(*j->clocks));
	if (j->clocks == NULL)
		return -ENOMEM;
	j->clocks[0].known = true;
	for (uint32_t i = 0; i < j->count && rc == 0; i++)
		for (uint32_t g = 0; g < j->ranks[i].groups.count && rc == 0; g++)
			if (j->ranks[i].groups.rows[g].seq.count > 0 &&
			    j->ranks[i].groups.rows[g].size > 0)
				rc = XSP_APPEND(
					all, capacity, count,
					(struct candidate){i, g, j->ranks[i].groups.rows[g].size,
							   j->ranks[i].groups.rows[g].seq.count});
	XSP_SORT(all, count, order_candidates);
	for (size_t i = 0; i < count && rc == 0; i++)
		if (j->ranks[all[i].rank].groups.rows[all[i].group].joint == NO_INDEX)
			rc = join_group(j, all[i].rank, all[i].group);
	free(all);
	return rc;
}

/* ---- one collective on all of its ranks ---- */

static struct met met_at(struct rank *k, struct member *m, long n)
{
	const struct instance *i = &k->groups.rows[m->group].seq.rows[n];

	return (struct met){.rank = k,
			    .at = i,
			    .member = m,
			    .start_ns = i->start_ns + k->shift_ns,
			    .end_ns = i->end_ns + k->shift_ns};
}

/* Can clocks decide whether it is the same collective? Clocks of two hosts drift, and some ranks
 * may leave before all have come. */
static bool clocks_comparable(const struct met *a, const struct rank *b)
{
	return a->at->meets && a->rank->host_index == b->host_index;
}

static bool can_meet(const struct met *a, const struct met *b)
{
	if (a->at->name != b->at->name || !clocks_comparable(a, b->rank))
		return a->at->name == b->at->name;
	return a->start_ns <= b->end_ns + LATE_LEAST_NS && b->start_ns <= a->end_ns + LATE_LEAST_NS;
}

/* Finds the member's part of collective n of the group; `first` is another member's part. Where
 * some are missing (losses, windows of --max-overhead), the time decides. False: it was not
 * recorded. */
static bool find_met(struct xsp_ranks *j, struct member *m, long n, const struct met *first,
		     struct met *out)
{
	struct rank *k = &j->ranks[m->rank];
	const struct group *its = &k->groups.rows[m->group];
	long at = n + m->now;

	if (at >= 0 && at < (long)its->seq.count) {
		*out = met_at(k, m, at);
		if (can_meet(first, out))
			return true;
	}
	if (!clocks_comparable(first, k))
		return false;
	at = (long)ended_before(its, first->start_ns - k->shift_ns);
	if (at >= (long)its->seq.count)
		return false;
	*out = met_at(k, m, at);
	if (!can_meet(first, out))
		return false;
	m->now = at - n;
	return true;
}

/* Collects the recorded parts of collective n of the group; returns how many. */
static size_t meet(struct xsp_ranks *j, struct joint_group *g, long n, struct met *out)
{
	struct rank *k = &j->ranks[g->members.rows[0].rank];
	size_t count = 1;

	out[0] = met_at(k, &g->members.rows[0], n);
	for (size_t m = 1; m < g->members.count; m++) {
		if (n == 0)
			g->members.rows[m].now = g->members.rows[m].shift;
		count += find_met(j, &g->members.rows[m], n, &out[0], &out[count]);
	}
	return count;
}

static long calls_of(const struct xsp_ranks *j, const struct joint_group *g)
{
	return (long)j->ranks[g->members.rows[0].rank]
		.groups.rows[g->members.rows[0].group]
		.seq.count;
}

struct turn {
	int64_t last_ns;
	uint32_t group;
	long n;
};

static XSP_ORDER(order_turns, struct turn,
		 XSP_RISING(last_ns) ?: XSP_RISING(group) ?: XSP_RISING(n));

/* Lists collectives that two ranks or more recorded, in the order in which the last rank came. */
static int find_turns(struct xsp_ranks *j, struct met *met)
{
	size_t n = 0;

	for (size_t g = 0; g < j->groups.count; g++)
		n += (size_t)calls_of(j, &j->groups.rows[g]);
	j->turn_count = 0;
	j->turns = calloc(n + 1, sizeof(*j->turns));
	if (j->turns == NULL)
		return -ENOMEM;
	for (uint32_t g = 0; g < j->groups.count; g++)
		for (long i = 0; i < calls_of(j, &j->groups.rows[g]); i++) {
			const size_t ranks = meet(j, &j->groups.rows[g], i, met);
			int64_t last = met[0].start_ns;
			for (size_t m = 1; m < ranks; m++)
				last = met[m].start_ns > last ? met[m].start_ns : last;
			if (ranks >= 2)
				j->turns[j->turn_count++] = (struct turn){last, g, i};
		}
	XSP_SORT(j->turns, j->turn_count, order_turns);
	return 0;
}

int xsp_ranks_each_met(struct xsp_ranks *j,
		       int (*fn)(struct xsp_ranks *j, void *ctx, struct met *met, size_t count),
		       void *ctx)
{
	struct met *met = calloc(j->count + 1, sizeof(*met));
	int rc = met == NULL ? -ENOMEM : j->turns == NULL ? find_turns(j, met) : 0;

	for (size_t i = 0; i < j->turn_count && rc == 0; i++) {
		const size_t count =
			meet(j, &j->groups.rows[j->turns[i].group], j->turns[i].n, met);
		if (count >= 2)
			rc = fn(j, ctx, met, count);
	}
	free(met);
	return rc;
}

/* ---- clocks ---- */

struct numbers {
	int64_t *values;
	size_t count, capacity;
};

static int put(struct numbers *n, int64_t value)
{
	return XSP_APPEND(n->values, n->capacity, n->count, value);
}

/* For each host, collects how much later its ends are than those of the first host. */
static int compare_hosts(struct xsp_ranks *j, void *ctx, struct met *met, size_t count)
{
	struct numbers *apart = ctx;
	int64_t first = 0;
	size_t n = 0;
	int rc = 0;

	if (!met[0].at->meets)
		return 0;
	(void)j;
	for (size_t i = 0; i < count; i++)
		if (met[i].rank->host_index == 0) {
			first += (met[i].end_ns - met[0].end_ns);
			n++;
		}
	if (n == 0)
		return 0;
	first = met[0].end_ns + first / (int64_t)n;
	for (size_t i = 0; i < count && rc == 0; i++)
		if (met[i].rank->host_index != 0)
			rc = put(&apart[met[i].rank->host_index], met[i].end_ns - first);
	return rc;
}

static int align_clocks(struct xsp_ranks *j)
{
	struct numbers *apart = calloc(j->hosts + 1, sizeof(*apart));
	int rc = apart != NULL ? 0 : -ENOMEM;

	if (rc == 0 && j->hosts > 1)
		rc = xsp_ranks_each_met(j, compare_hosts, apart);
	for (size_t h = 1; rc == 0 && h < j->hosts; h++) {
		const int64_t behind = xsp_ranks_median(apart[h].values, apart[h].count);
		j->hosts_not_aligned += apart[h].count == 0;
		for (size_t i = 0; i < j->count; i++)
			if (j->ranks[i].host_index == h)
				j->ranks[i].shift_ns = -behind;
	}
	for (size_t h = 0; apart != NULL && h < j->hosts; h++)
		free(apart[h].values);
	free(j->turns); /* they are in the order of the old clocks */
	j->turns = NULL;
	free(apart);
	return rc;
}

/* Collects how far apart ends are that should be one moment. */
static int measure_spread(struct xsp_ranks *j, void *ctx, struct met *met, size_t count)
{
	int64_t least = met[0].end_ns, most = met[0].end_ns;

	(void)j;
	if (!met[0].at->meets)
		return 0;
	for (size_t i = 1; i < count; i++) {
		least = met[i].end_ns < least ? met[i].end_ns : least;
		most = met[i].end_ns > most ? met[i].end_ns : most;
	}
	return put(ctx, most - least);
}

static int measure_spreads(struct xsp_ranks *j)
{
	struct numbers spreads = {0};
	int rc = xsp_ranks_each_met(j, measure_spread, &spreads);

	j->spreads = spreads.count;
	j->spread_median_ns = xsp_ranks_median(spreads.values, spreads.count);
	j->spread_most_ns = spreads.count > 0 ? spreads.values[spreads.count - 1] : 0;
	j->late_least_ns = LATE_SPREADS * j->spread_median_ns;
	if (j->late_least_ns < LATE_LEAST_NS)
		j->late_least_ns = LATE_LEAST_NS;
	free(spreads.values);
	return rc;
}

int xsp_ranks_match_groups(struct xsp_ranks *j)
{
	int rc;

	keep_ranks(j);
	number_hosts(j);
	rc = join_groups(j);
	if (rc == 0)
		rc = align_clocks(j);
	return rc == 0 ? measure_spreads(j) : rc;
}
