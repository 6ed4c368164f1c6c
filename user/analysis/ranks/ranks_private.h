/* SPDX-License-Identifier: BSD-2-Clause */
/* ranks_private.h - what collecting, matching and reporting share. Times are real time, ns, signed: clocks are subtracted. */
#ifndef XSP_ANALYSIS_RANKS_PRIVATE_H
#define XSP_ANALYSIS_RANKS_PRIVATE_H

#include <stdlib.h>

#include "analysis/ranks/ranks.h"
#include "base/arena.h"
#include "base/rows/grow.h"
#include "base/rows/u64map.h"
#include "catalog/collectives.h"

/* A list that grows: PUT() adds one behind the others, 0 or -ENOMEM. */
#define LIST(type)                                                                                 \
	struct {                                                                                   \
		type *at;                                                                          \
		size_t count, capacity;                                                            \
	}
#define PUT(list, ...) XSP_APPEND((list).at, (list).capacity, (list).count, __VA_ARGS__)
#define SORT(list, order) SORT_ARRAY((list).at, (list).count, order)
#define SORT_ARRAY(array, n, order) ((n) > 0 ? qsort(array, n, sizeof(*(array)), order) : (void)0)

#define NO_INDEX UINT32_MAX
#define GROUPS_MAX 256 /* of a rank; collectives of more are not matched */

/*
 * What is put in order by its time begins with that (xsp_ranks_order()), what is by something else first with both: the
 * address of a work, a thread (xsp_ranks_order_keys()).
 */
struct keyed {
	uint64_t key;
	int64_t ns;
};

/* A collective on one rank. */
struct instance {
	int64_t start_ns, end_ns; /* it was asked for; it was over */
	uint32_t name; /* of the job's names */
	bool meets;
};

/* What was queued, and what ran: joined by the address of the work. */
struct queued {
	struct keyed work;
	uint32_t group, name;
	bool meets;
};
struct run {
	struct keyed work;
	int64_t end_ns;
};

struct interval {
	int64_t start_ns, end_ns;
};

/* The rank was blocked in a collective for others that were late, or by another rank that it sent to or received from. */
struct held {
	int64_t start_ns, end_ns;
	int64_t before_ns; /* all before this one */
};

/* A collective whose kernels run on a GPU: the call that launched them, and each kernel with the moment of its launch. */
struct gpu_call {
	struct keyed thread;
	uint32_t group, name;
	int64_t end_ns;
	bool meets;
};
struct gpu_kernel {
	struct keyed thread; /* that launched it, when */
	uint32_t device, stream;
	int64_t start_ns, end_ns;
};
/* Calls whose kernels are in no sequence: of groups beyond GROUPS_MAX, and from one rank to another. */
#define GROUP_LEFT_OUT (NO_INDEX - 1)
#define GROUP_OF_TWO (NO_INDEX - 2)

/* What one stream ran that is no collective. */
struct stream_work {
	uint32_t device, stream;
	int64_t sum_ns;
	LIST(struct interval) stretches;
	int64_t apart_ns; /* less than that between two of them is not told */
};

/* A process group as one of its ranks sees it. */
struct group {
	uint64_t address;
	uint32_t rank, size; /* in the group; size 0: not known */
	LIST(struct instance) seq; /* in the order in which they were asked for */
	uint32_t joint; /* index of the job's group, or NO_INDEX */
};

/* Calls of one name on a rank. */
struct operator_sum {
	uint32_t name;
	bool gpu; /* a kernel: self_ns is its time on the GPU */
	bool waits; /* a call that waits for the GPU */
	uint64_t calls, self_ns;
	uint64_t bytes, sized; /* of collectives: bytes of the tensors of so many calls */
};

struct rank_step {
	int64_t start_ns, end_ns;
	uint64_t number;
	bool warm_up; /* it is in no mean */
	int64_t waited_ns; /* of that: blocked in collectives, for others that were late */
};

/* How late it was at the collectives of one name, by its own doing. */
struct lateness {
	uint32_t name;
	uint64_t calls, times;
	int64_t sum_ns, most_ns, most_at_ns;
};

struct rank {
	size_t capture;
	uint32_t pid, display_pid;
	long number, world;
	char host[64];
	uint32_t host_index;
	bool named; /* its environment says that it is a rank */
	int64_t window_start_ns, window_end_ns, recorded_ns;
	bool lossy; /* events were lost */
	bool windows; /* not all of the time was recorded */
	bool damaged; /* its capture, or it has no end */
	int64_t shift_ns;
	LIST(struct queued) queued;
	LIST(struct run) runs;
	LIST(struct gpu_call) gpu_calls;
	LIST(struct gpu_kernel) gpu_kernels;
	LIST(struct stream_work) streams;
	/* it stood still for others: for one that it sent to or received from, or in a collective for late ones */
	LIST(struct interval) stood;
	uint64_t gpu_of_no_group; /* kernels of collectives that no known call launched */
	LIST(struct interval) blocked; /* in a wait for a collective; sorted, apart */
	LIST(struct interval) early; /* from its own arrival at a collective to the last one's */
	LIST(struct held) held; /* those, in order, apart */
	LIST(struct group) groups;
	struct xsp_u64map sum_of; /* name → index of sums */
	LIST(struct operator_sum) sums;
	LIST(struct rank_step) steps;
	LIST(struct lateness) late; /* few names: searched */
	/* over all matched collectives */
	uint64_t left_out; /* collectives of groups beyond GROUPS_MAX */
	uint64_t matched, unmatched, times_last;
	int64_t in_ns, waited_ns, blocked_ns, late_ns;
};

/* A group over the ranks: member m's instance n is its seq[n + shift]; where some of its instances were not recorded it is
 * seq[n + now] from there on. */
struct member {
	uint32_t rank, group;
	long shift, now;
	/* as they were at the group's last collective, set against the other members that were recorded in it */
	uint64_t met; /* hash of those; 0: there was none */
	int64_t ahead_ns, blamed_ns;
};
struct joint_group {
	LIST(struct member) members;
};

/* Collectives of one name over the job. */
struct collective_sum {
	uint32_t name;
	uint64_t calls; /* matched ones, over all their ranks once */
	int64_t in_ns, waited_ns, most_waited_ns; /* over all ranks */
	int64_t transfer_ns; /* what the last one to come took, over the calls */
	uint32_t ranks; /* at most, in one of them */
	/* as it is reported */
	uint64_t mean_bytes; /* of a call; 0: not known */
	const struct rank *latest; /* who was late at it most, in all by so much; NULL: nobody */
	int64_t late_ns;
};

struct xsp_ranks {
	const char *marker;
	struct rank *ranks;
	size_t count, capacity;
	/* names of all captures */
	struct xsp_arena text;
	const char **names;
	size_t name_count, name_capacity;
	struct xsp_u64map name_of;
	uint64_t *ids; /* of the captures so far */
	size_t captures, id_capacity;
	/* the capture at hand */
	struct collecting *now;
	/* matched */
	LIST(struct joint_group) groups;
	struct turn *turns; /* ranks_match.c; NULL: not known yet */
	size_t turn_count;
	LIST(struct collective_sum) collectives;
	size_t hosts, hosts_not_aligned;
	struct host_clock {
		bool known;
		int64_t ahead_ns; /* of the first host's, as the first groups that were matched tell */
	} * clocks; /* by host */
	uint64_t spreads; /* collectives whose ends were compared */
	int64_t spread_median_ns, spread_most_ns; /* how far apart they are, after correction */
	int64_t late_least_ns;
	int64_t start_ns, end_ns; /* of the job, by the first rank's clock */
};

/* ---- rank.c ---- */

void xsp_ranks_free_rank(struct rank *k); /* what it owns */
void xsp_ranks_free_gpu(struct rank *k); /* of that what ranks_gpu.c alone needs */
/* For qsort(): of what begins with its time in ns, and with a struct keyed. */
int xsp_ranks_order(const void *a, const void *b);
int xsp_ranks_order_keys(const void *a, const void *b);
/* Sorts them and makes one of those that overlap or touch. How many are left. */
size_t xsp_ranks_merge(struct interval *all, size_t count);
/* Median; sorts `values`. 0 of none. */
int64_t xsp_ranks_median(int64_t *values, size_t count);
/* The job's index of a name. -ENOMEM. */
long xsp_ranks_name(struct xsp_ranks *j, const char *text);
struct operator_sum *xsp_ranks_sum(struct rank *k, uint32_t name, bool make);
int xsp_ranks_add_instance(struct rank *k, uint32_t group,
			   const struct instance *i); /* or -ENOMEM */
/* The step of a rank around a moment by its own clock; NULL: none. */
struct rank_step *xsp_ranks_step_at(const struct rank *k, int64_t ns);
/* "rank 3 (host)", or "process 4242 (host)". */
void xsp_ranks_title(const struct rank *k, char *out, size_t size);

/* ---- ranks_match.c ---- */

/* One collective on one of its ranks. */
struct met {
	struct rank *rank;
	const struct instance *at;
	struct member *member;
	int64_t start_ns, end_ns; /* by the first rank's clock */
	int64_t not_compared_ns; /* held up before all of them were recorded */
};
/* Finds which groups of the ranks are the same one, how far clocks are apart. 0 or -ENOMEM. */
int xsp_ranks_match_groups(struct xsp_ranks *j);
/* Each collective that at least two ranks were recorded in, in the order in which their last rank came; fn: 0, or what ends it. */
int xsp_ranks_each_met(struct xsp_ranks *j,
		       int (*fn)(struct xsp_ranks *j, void *ctx, struct met *met, size_t count),
		       void *ctx);

/* ---- ranks_gpu.c ---- */

/* A kernel that has begun and ended, not cut; times are real. `name` of the job, of one that communicates not used. 0 or -ENOMEM. */
int xsp_ranks_gpu_kernel(struct rank *k, uint32_t name, bool communicates,
			 const struct gpu_kernel *kernel);
/* Behind the capture's run: collectives of the groups, and when the rank was blocked in them. 0 or -ENOMEM. */
int xsp_ranks_gpu_join(struct rank *k);

#endif
