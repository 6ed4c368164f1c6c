/* SPDX-License-Identifier: BSD-2-Clause */
/* ranks_match.c - which collectives of the ranks are the same one, how far clocks are apart, who came last. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/ranks_private.h"
#include "base/grow.h"
#include "base/search.h"

/* Collectives that are held against each other to find how two sequences lie: spread over all. */
#define SAMPLES 1024U
/* Recordings need not begin together: so many collectives more or less are tried around what real time says. */
#define SHIFTS 16L
/* Less than that is not late, and neither is less than so many times what ends lie apart. */
#define LATE_LEAST_NS 100000
#define LATE_SPREADS 2

static int order_numbers(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

int64_t xsp_ranks_median(int64_t *values, size_t count)
{
	if (count == 0)
		return 0;
	qsort(values, count, sizeof(*values), order_numbers);
	const int64_t low = values[(count - 1) / 2], high = values[count / 2];
	return low + (high - low) / 2;
}

/* ---- which processes are ranks ---- */

static bool is_rank(const struct rank *k)
{
	for (size_t i = 0; i < k->group_count; i++)
		if (k->groups[i].count > 0)
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

static int order_ranks(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;
	const unsigned long m = (unsigned long)x->number,
			    n = (unsigned long)y->number; /* -1: last */

	if (m != n)
		return m < n ? -1 : 1;
	if (x->capture != y->capture)
		return x->capture < y->capture ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* A launcher that was recorded with its ranks is none of them; where nobody is a rank all processes are compared. */
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
	if (kept > 0)
		qsort(j->ranks, kept, sizeof(*j->ranks), order_ranks);
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

/* ---- how two sequences lie ---- */

struct fit {
	long shift; /* b[n + shift] is a[n] */
	int64_t cost;
	bool good;
};

/* The first of the sequence that ends later. */
static size_t ended_before(const struct group *g, int64_t ns)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, g->count, i, g->seq[i].end_ns <= ns);
	return low;
}

/* Ends of the same collective lie apart by what clocks do, always by the same; of others by whatever the program did
 * between. Where that is as regular, the least distance wins. */
static bool try_shift(const struct group *a, const struct group *b, long shift, int64_t *apart,
		      int64_t *cost)
{
	const long from = shift < 0 ? -shift : 0, end_b = (long)b->count - shift;
	const long to = end_b < (long)a->count ? end_b : (long)a->count;
	const size_t least = a->count < b->count ? a->count : b->count;
	size_t n = 0, others = 0;

	if (to <= from || (size_t)(to - from) < (least + 1) / 2)
		return false;
	const long step = (to - from + (long)SAMPLES - 1) / (long)SAMPLES;
	for (long i = from; i < to; i += step) {
		const struct instance *x = &a->seq[i], *y = &b->seq[i + shift];
		others += x->name != y->name;
		apart[n++] = y->end_ns - x->end_ns;
	}
	if (others > n / 10)
		return false;
	const int64_t median = xsp_ranks_median(apart, n);
	for (size_t i = 0; i < n; i++)
		apart[i] = apart[i] > median ? apart[i] - median : median - apart[i];
	*cost = xsp_ranks_median(apart, n) + (median < 0 ? -median : median) / 256;
	return true;
}

static void fit_shift(const struct group *a, const struct group *b, long shift, int64_t *apart,
		      struct fit *best)
{
	int64_t cost;

	if (!try_shift(a, b, shift, apart, &cost) || (best->good && best->cost <= cost))
		return;
	*best = (struct fit){.shift = shift, .cost = cost, .good = true};
}

static struct fit fit_groups(const struct group *a, const struct group *b)
{
	int64_t apart[SAMPLES];
	struct fit best = {.good = false};
	const size_t middle = a->count / 2;
	const long guess = (long)ended_before(b, a->seq[middle].end_ns) - (long)middle;

	fit_shift(a, b, 0, apart, &best);
	for (long s = guess - SHIFTS; s <= guess + SHIFTS; s++)
		fit_shift(a, b, s, apart, &best);
	return best;
}

/* ---- groups over the ranks ---- */

static int add_member(struct joint_group *g, size_t rank, size_t group, long shift)
{
	return XSP_APPEND(g->members, g->capacity, g->count,
			  (struct member){(uint32_t)rank, (uint32_t)group, shift, shift});
}

/* The rank `wanted` of the group that `first` is the first member of: of all that it may be, the one that fits best. */
static int find_member(struct xsp_ranks *j, struct joint_group *joint, uint32_t index,
		       const struct group *first, size_t first_rank, uint32_t wanted)
{
	struct fit best = {.good = false};
	size_t rank = 0, group = 0;

	for (size_t i = 0; i < j->count; i++) {
		for (size_t g = 0; i != first_rank && g < j->ranks[i].group_count; g++) {
			const struct group *other = &j->ranks[i].groups[g];
			if (other->joint != NO_INDEX || other->count == 0 ||
			    other->size != first->size || other->rank != wanted)
				continue;
			const struct fit fit = fit_groups(first, other);
			if (!fit.good || (best.good && best.cost <= fit.cost))
				continue;
			best = fit;
			rank = i;
			group = g;
		}
	}
	if (!best.good)
		return 0;
	j->ranks[rank].groups[group].joint = index;
	return add_member(joint, rank, group, best.shift);
}

/* Is that rank of the group found already? */
static bool has_rank(const struct xsp_ranks *j, const struct joint_group *joint, uint32_t wanted)
{
	for (size_t m = 0; m < joint->count; m++)
		if (j->ranks[joint->members[m].rank].groups[joint->members[m].group].rank == wanted)
			return true;
	return false;
}

static int join_group(struct xsp_ranks *j, size_t rank, size_t group)
{
	struct group *first = &j->ranks[rank].groups[group];
	const uint32_t index = (uint32_t)j->group_count;
	struct joint_group joint = {0};
	int rc = add_member(&joint, rank, group, 0);

	first->joint = index;
	for (size_t i = 0; i < j->count; i++)
		for (size_t g = 0; rc == 0 && i != rank && g < j->ranks[i].group_count; g++) {
			const struct group *other = &j->ranks[i].groups[g];
			if (other->joint == NO_INDEX && other->size == first->size &&
			    !has_rank(j, &joint, other->rank))
				rc = find_member(j, &joint, index, first, rank, other->rank);
		}
	if (rc == 0 && xsp_grow(&j->groups, &j->group_capacity, j->group_count + 1) < 0)
		rc = -ENOMEM;
	if (rc < 0) {
		free(joint.members);
		return rc;
	}
	j->groups[j->group_count++] = joint;
	return 0;
}

static int join_groups(struct xsp_ranks *j)
{
	int rc = 0;

	for (size_t i = 0; i < j->count && rc == 0; i++)
		for (size_t g = 0; g < j->ranks[i].group_count && rc == 0; g++)
			if (j->ranks[i].groups[g].joint == NO_INDEX &&
			    j->ranks[i].groups[g].count > 0 && j->ranks[i].groups[g].size > 0)
				rc = join_group(j, i, g);
	return rc;
}

/* ---- one collective on all of its ranks ---- */

struct met {
	struct rank *rank;
	const struct instance *at;
	int64_t start_ns, end_ns; /* by the first rank's clock */
	int64_t since_ns; /* by the rank's own: the end of the group's collective before, or where this one begins */
};

static struct met met_at(struct rank *k, const struct group *g, long n)
{
	const struct instance *i = &g->seq[n];
	const int64_t before = n > 0 ? g->seq[n - 1].end_ns : k->window_start_ns;

	return (struct met){.rank = k,
			    .at = i,
			    .start_ns = i->start_ns + k->shift_ns,
			    .end_ns = i->end_ns + k->shift_ns,
			    .since_ns = before < i->start_ns ? before : i->start_ns};
}

/* Do the clocks tell whether it is the same collective? Those of two hosts drift, and some may leave before all have come. */
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

/* The member's own of what `first` is, collective n of the group. Where some are missing (losses, windows of
 * --max-overhead) the moment tells which one it is. False: it was not recorded. */
static bool find_met(struct xsp_ranks *j, struct member *m, long n, const struct met *first,
		     struct met *out)
{
	struct rank *k = &j->ranks[m->rank];
	const struct group *its = &k->groups[m->group];
	long at = n + m->now;

	if (at >= 0 && at < (long)its->count) {
		*out = met_at(k, its, at);
		if (can_meet(first, out))
			return true;
	}
	if (!clocks_comparable(first, k))
		return false;
	at = (long)ended_before(its, first->start_ns - k->shift_ns);
	if (at >= (long)its->count)
		return false;
	*out = met_at(k, its, at);
	if (!can_meet(first, out))
		return false;
	m->now = at - n;
	return true;
}

/* Those of collective n of the group that were recorded; how many. */
static size_t meet(struct xsp_ranks *j, struct joint_group *g, long n, struct met *out)
{
	struct rank *k = &j->ranks[g->members[0].rank];
	size_t count = 1;

	out[0] = met_at(k, &k->groups[g->members[0].group], n);
	for (size_t m = 1; m < g->count; m++) {
		if (n == 0)
			g->members[m].now = g->members[m].shift;
		count += find_met(j, &g->members[m], n, &out[0], &out[count]);
	}
	return count;
}

static long calls_of(const struct xsp_ranks *j, const struct joint_group *g)
{
	return (long)j->ranks[g->members[0].rank].groups[g->members[0].group].count;
}

struct turn {
	int64_t start_ns;
	uint32_t group;
	long n;
};

static int order_turns(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->n < y->n ? -1 : x->n > y->n;
}

/* The collectives of all groups as they came. */
static int all_turns(const struct xsp_ranks *j, struct turn **out, size_t *count)
{
	size_t n = 0;

	for (size_t g = 0; g < j->group_count; g++)
		n += (size_t)calls_of(j, &j->groups[g]);
	*count = 0;
	*out = calloc(n + 1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	for (uint32_t g = 0; g < j->group_count; g++) {
		const struct member *first = &j->groups[g].members[0];
		const struct rank *k = &j->ranks[first->rank];
		for (long i = 0; i < calls_of(j, &j->groups[g]); i++)
			(*out)[(*count)++] = (struct turn){
				k->groups[first->group].seq[i].start_ns + k->shift_ns, g, i};
	}
	qsort(*out, *count, sizeof(**out), order_turns);
	return 0;
}

/* Each collective that at least two ranks were recorded in, in the order of time. */
static int each_met(struct xsp_ranks *j,
		    int (*fn)(struct xsp_ranks *j, void *ctx, struct met *met, size_t count),
		    void *ctx)
{
	struct met *met = calloc(j->count + 1, sizeof(*met));
	struct turn *turns = NULL;
	size_t turn_count = 0;
	int rc = met != NULL ? all_turns(j, &turns, &turn_count) : -ENOMEM;

	for (size_t i = 0; i < turn_count && rc == 0; i++) {
		const size_t count = meet(j, &j->groups[turns[i].group], turns[i].n, met);
		if (count >= 2)
			rc = fn(j, ctx, met, count);
	}
	free(turns);
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

/* Of each host how far its ends lie behind those of the first one. */
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
		rc = each_met(j, compare_hosts, apart);
	for (size_t h = 1; rc == 0 && h < j->hosts; h++) {
		const int64_t behind = xsp_ranks_median(apart[h].values, apart[h].count);
		j->hosts_not_aligned += apart[h].count == 0;
		for (size_t i = 0; i < j->count; i++)
			if (j->ranks[i].host_index == h)
				j->ranks[i].shift_ns = -behind;
	}
	for (size_t h = 0; apart != NULL && h < j->hosts; h++)
		free(apart[h].values);
	free(apart);
	return rc;
}

/* How far apart the ends are that should be one moment. */
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
	int rc = each_met(j, measure_spread, &spreads);

	j->spreads = spreads.count;
	j->spread_median_ns = xsp_ranks_median(spreads.values, spreads.count);
	j->spread_most_ns = spreads.count > 0 ? spreads.values[spreads.count - 1] : 0;
	j->late_least_ns = LATE_SPREADS * j->spread_median_ns;
	if (j->late_least_ns < LATE_LEAST_NS)
		j->late_least_ns = LATE_LEAST_NS;
	free(spreads.values);
	return rc;
}

/* ---- who comes last, and who waits ---- */

static struct interval overlap(struct interval a, struct interval b)
{
	return (struct interval){a.start_ns > b.start_ns ? a.start_ns : b.start_ns,
				 a.end_ns < b.end_ns ? a.end_ns : b.end_ns};
}

/* Each step has what of it the rank was blocked, wherever the collective had begun. */
static void block_steps(struct rank *k, struct interval blocked)
{
	size_t at = 0;

	XSP_LOWER_BOUND(at, k->step_count, i,
			k->steps[i].start_ns <= blocked.start_ns); /* the first that begins later */
	for (at -= at > 0; at < k->step_count && k->steps[at].start_ns < blocked.end_ns; at++) {
		struct rank_step *s = &k->steps[at];
		const struct interval in =
			overlap(blocked, (struct interval){s->start_ns, s->end_ns});
		if (in.end_ns > in.start_ns)
			s->waited_ns += in.end_ns - in.start_ns;
	}
}

static int add_held(struct rank *k, struct interval in)
{
	const struct held *last = k->held_count > 0 ? &k->held[k->held_count - 1] : NULL;
	const int64_t before = last != NULL ? last->before_ns + last->end_ns - last->start_ns : 0;

	k->blocked_ns += in.end_ns - in.start_ns;
	block_steps(k, in);
	return XSP_APPEND(k->held, k->held_capacity, k->held_count,
			  (struct held){in.start_ns, in.end_ns, before});
}

/* When it was blocked for others that were late: once, however many collectives were under way meanwhile. */
static int find_held(struct rank *k)
{
	size_t b = 0;
	int rc = 0;

	k->early_count = xsp_ranks_merge(k->early, k->early_count);
	for (size_t e = 0; e < k->early_count && rc == 0; e++) {
		while (b < k->blocked_count && k->blocked[b].end_ns <= k->early[e].start_ns)
			b++;
		for (size_t i = b;
		     i < k->blocked_count && rc == 0 && k->blocked[i].start_ns < k->early[e].end_ns;
		     i++)
			rc = add_held(k, overlap(k->early[e], k->blocked[i]));
	}
	return rc;
}

static int64_t held_until(const struct rank *k, int64_t ns)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, k->held_count, i, k->held[i].start_ns < ns);
	if (low == 0)
		return 0;
	const struct held *h = &k->held[low - 1];
	return h->before_ns + (h->end_ns < ns ? h->end_ns : ns) - h->start_ns;
}

/* For others, since the group's collective before: in those of other groups. */
static int64_t held_before(const struct met *met)
{
	return held_until(met->rank, met->at->start_ns) - held_until(met->rank, met->since_ns);
}

static struct lateness *lateness_of(struct rank *k, uint32_t name)
{
	for (size_t i = 0; i < k->late_count; i++)
		if (k->late[i].name == name)
			return &k->late[i];
	if (xsp_grow(&k->late, &k->late_capacity, k->late_count + 1) < 0)
		return NULL;
	k->late[k->late_count] = (struct lateness){.name = name};
	return &k->late[k->late_count++];
}

static struct collective_sum *sum_of(struct xsp_ranks *j, uint32_t name)
{
	for (size_t i = 0; i < j->collective_count; i++)
		if (j->collectives[i].name == name)
			return &j->collectives[i];
	if (xsp_grow(&j->collectives, &j->collective_capacity, j->collective_count + 1) < 0)
		return NULL;
	j->collectives[j->collective_count] = (struct collective_sum){.name = name};
	return &j->collectives[j->collective_count++];
}

static int64_t blamed_until(const struct rank *k, int64_t ns)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, k->blamed_count, i, k->blamed[i].at_ns <= ns);
	return low > 0 ? k->blamed[low - 1].sum_ns : 0;
}

/* By how much it came behind the others, in the median, and is to blame itself: what it was held up more than they by a late
 * rank of another group is that rank's; what it was late by itself in another group since then has been counted there. */
static int64_t own_lateness(const struct met *met, size_t count, size_t which, int64_t *scratch)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (i != which)
			scratch[n++] = met[i].start_ns;
	const int64_t late = met[which].start_ns - xsp_ranks_median(scratch, n);
	if (late <= 0)
		return late;
	n = 0;
	for (size_t i = 0; i < count; i++)
		if (i != which)
			scratch[n++] = held_before(&met[i]);
	int64_t known = held_before(&met[which]) - xsp_ranks_median(scratch, n);
	known = (known > 0 ? known : 0) + blamed_until(met[which].rank, INT64_MAX) -
		blamed_until(met[which].rank, met[which].since_ns);
	return known < late ? late - known : 0;
}

static int note_lateness(struct xsp_ranks *j, const struct met *met, int64_t by_ns)
{
	struct rank *k = met->rank;
	struct lateness *l = lateness_of(k, met->at->name);

	if (l == NULL)
		return -ENOMEM;
	l->calls++;
	if (by_ns < j->late_least_ns)
		return 0;
	l->times++;
	l->sum_ns += by_ns;
	k->late_ns += by_ns;
	if (XSP_APPEND(k->blamed, k->blamed_capacity, k->blamed_count,
		       (struct blamed){met->at->start_ns, k->late_ns}) < 0)
		return -ENOMEM;
	if (by_ns > l->most_ns) {
		l->most_ns = by_ns;
		l->most_at_ns = met->start_ns;
	}
	return 0;
}

/* What a rank spends in it from the moment on in which the last one has come is the transfer; before, it waits. */
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
	return XSP_APPEND(k->early, k->early_capacity, k->early_count,
			  (struct interval){met->at->start_ns, met->at->start_ns + waited});
}

static int judge(struct xsp_ranks *j, void *ctx, struct met *met, size_t count)
{
	struct collective_sum *sum = sum_of(j, met[0].at->name);
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
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = note_lateness(j, &met[i], own_lateness(met, count, i, ctx));
	return rc;
}

static int judge_all(struct xsp_ranks *j)
{
	int64_t *scratch = calloc(j->count + 1, sizeof(*scratch));
	int rc = scratch != NULL ? each_met(j, judge, NULL) : -ENOMEM;

	for (size_t i = 0; i < j->count && rc == 0; i++) {
		uint64_t all = j->ranks[i].left_out;
		for (size_t g = 0; g < j->ranks[i].group_count; g++)
			all += j->ranks[i].groups[g].count;
		j->ranks[i].unmatched = all - j->ranks[i].matched;
		rc = find_held(&j->ranks[i]);
	}
	if (rc == 0)
		rc = each_met(j, blame, scratch);
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
	int rc;

	keep_ranks(j);
	number_hosts(j);
	rc = join_groups(j);
	if (rc == 0)
		rc = align_clocks(j);
	if (rc == 0)
		rc = measure_spreads(j);
	if (rc == 0)
		rc = judge_all(j);
	find_window(j);
	return rc;
}
