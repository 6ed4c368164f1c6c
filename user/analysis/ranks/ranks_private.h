/* SPDX-License-Identifier: BSD-2-Clause */
/* ranks_private.h - what collecting, matching and reporting share. Times are real time in ns,
 * signed, as clocks are subtracted. */
#ifndef XSP_ANALYSIS_RANKS_PRIVATE_H
#define XSP_ANALYSIS_RANKS_PRIVATE_H

#include <stdlib.h>

#include "analysis/ranks/ranks.h"
#include "base/arena.h"
#include "base/rows/array.h"
#include "base/rows/order.h"
#include "base/rows/tally.h"
#include "base/rows/u64map.h"
#include "catalog/collectives.h"

#define NO_INDEX UINT32_MAX
#define GROUPS_MAX 256 /* per rank; collectives of more groups are not matched */

/*
 * First member of what xsp_ranks_order_keys() sorts: by a key (the address of a work, a thread),
 * then by time. What xsp_ranks_order() sorts by time alone begins with the time.
 */
struct keyed {
	uint64_t key;
	int64_t ns;
};

/* A collective on one rank. */
struct instance {
	int64_t start_ns, end_ns; /* from when it was asked for to when it was over */
	uint32_t name; /* index of the job's names */
	bool meets;
};

/* A work that was queued, and one that ran: the address joins them. */
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

/* A time in which the rank was blocked: in a collective by late ranks, or by the other end of a
 * send or receive. */
struct held {
	int64_t start_ns, end_ns;
	int64_t before_ns; /* sum of all before this one */
};

/* A call that launched a collective's kernels on a GPU; each kernel with the time of its launch. */
struct gpu_call {
	struct keyed thread;
	uint32_t group, name;
	int64_t end_ns;
	bool meets;
};
struct gpu_kernel {
	struct keyed thread; /* the thread that launched it, and when */
	uint32_t device, stream;
	int64_t start_ns, end_ns;
};
/* The group of calls whose kernels are in no sequence: beyond GROUPS_MAX, or between two ranks. */
#define GROUP_LEFT_OUT (NO_INDEX - 1)
#define GROUP_OF_TWO (NO_INDEX - 2)

/* What one stream ran besides collectives. */
struct stream_work {
	uint32_t device, stream;
	int64_t sum_ns;
	XSP_ARRAY(struct interval) stretches;
	int64_t apart_ns; /* stretches closer than this are one */
};

/* A process group as one of its ranks sees it. */
struct group {
	uint64_t address;
	uint32_t rank, size; /* size 0: not known */
	XSP_ARRAY(struct instance) seq; /* in the order in which they were asked for */
	uint32_t joint; /* index of the job's group, or NO_INDEX */
};

/* Calls of one name on a rank. */
struct operator_sum {
	uint32_t name;
	bool gpu; /* a kernel: self_ns is its time on the GPU */
	bool waits; /* a call that waits for the GPU */
	uint64_t calls, self_ns;
	/* of collectives: bytes of tensors, and the calls for which they are known */
	uint64_t bytes, sized;
};

/* Time at a line of the program, in or below calls of one operator, or in none. */
struct line_sum {
	uint32_t line;
	uint32_t in; /* 1 + the operator's name; 0: none */
	int64_t ns;
};

struct rank_step {
	int64_t start_ns, end_ns;
	uint64_t number;
	bool warm_up; /* it counts in no mean */
	int64_t waited_ns; /* the part in which late ranks blocked it in collectives */
};

/* How late a rank was at the collectives of one name, through its own fault. */
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
	bool windows; /* part of the time was not recorded */
	bool waits_known; /* its waits for collectives were recorded; false: see find_held() */
	bool damaged; /* its capture is damaged or has no end */
	int64_t shift_ns;
	XSP_ARRAY(struct queued) queued;
	XSP_ARRAY(struct run) runs;
	XSP_ARRAY(struct gpu_call) gpu_calls;
	XSP_ARRAY(struct gpu_kernel) gpu_kernels;
	XSP_ARRAY(struct stream_work) streams;
	/* Blocked in a collective by late ranks, or by the other end of a send or receive. */
	XSP_ARRAY(struct interval) stood;
	uint64_t gpu_of_no_group; /* kernels of collectives without a known call */
	XSP_ARRAY(struct interval) blocked; /* in waits for collectives; sorted and disjoint */
	/* from its own arrival at a collective to that of the last rank */
	XSP_ARRAY(struct interval) early;
	XSP_ARRAY(struct held) held; /* the same as `stood`, with sums; sorted and disjoint */
	XSP_ARRAY(struct group) groups;
	XSP_TALLY(struct operator_sum) sums; /* by name */
	XSP_TALLY(struct line_sum) lines;
	XSP_ARRAY(struct rank_step) steps;
	XSP_TALLY(struct lateness) late; /* by name */
	/* Over all matched collectives. */
	uint64_t left_out; /* collectives of groups beyond GROUPS_MAX */
	uint64_t matched, unmatched, times_last;
	int64_t in_ns, waited_ns, blocked_ns, late_ns;
};

/* A group's member: its instance of the group's collective n is seq[n + shift]. Where instances
 * were not recorded, it is seq[n + now] from there on. */
struct member {
	uint32_t rank, group;
	long shift, now;
	/* State at the group's last collective, compared to the other members that recorded it. */
	uint64_t met; /* hash of these members; 0: there was none */
	int64_t ahead_ns, blamed_ns;
};
struct joint_group {
	XSP_ARRAY(struct member) members;
};

/* Collectives of one name in the job. */
struct collective_sum {
	uint32_t name;
	uint64_t calls; /* matched collectives, each once for all its ranks */
	int64_t in_ns, waited_ns, most_waited_ns; /* over all ranks */
	int64_t transfer_ns; /* time from the last rank's arrival on, over the calls */
	uint32_t ranks; /* the most in any of them */
	/* Set for the report. */
	uint64_t mean_bytes; /* for each call; 0: not known */
	/* The rank that was latest in all, and by how much; NULL: none was. */
	const struct rank *latest;
	int64_t late_ns;
};

struct xsp_ranks {
	const char *marker;
	struct rank *ranks;
	size_t count, capacity;
	/* Names of all captures. */
	struct xsp_arena text;
	XSP_TALLY(const char *) names; /* by hash */
	uint64_t *ids; /* ids of the captures read so far */
	size_t captures, id_capacity;
	/* The capture that is being read. */
	struct collecting *now;
	/* Results of matching. */
	XSP_ARRAY(struct joint_group) groups;
	struct turn *turns; /* see ranks_match.c; NULL: not known yet */
	size_t turn_count;
	XSP_TALLY(struct collective_sum) collectives; /* by name */
	size_t hosts, hosts_not_aligned;
	struct host_clock {
		bool known;
		/* relative to the first host, from the first groups that were matched */
		int64_t ahead_ns;
	} * clocks; /* by host */
	uint64_t spreads; /* collectives whose ends were compared */
	int64_t spread_median_ns, spread_most_ns; /* how far apart they are after correction */
	int64_t late_least_ns;
	int64_t start_ns, end_ns; /* of the job, by the first rank's clock */
};

/* ---- rank.c ---- */

void xsp_ranks_free_rank(struct rank *k); /* frees what it owns */
void xsp_ranks_free_gpu(struct rank *k); /* frees the part that only ranks_gpu.c needs */
/* For qsort(): entries that begin with a time in ns; entries that begin with a struct keyed. */
int xsp_ranks_order(const void *a, const void *b);
int xsp_ranks_order_keys(const void *a, const void *b);
/* Sorts intervals and joins those that overlap or touch. Returns how many remain. */
size_t xsp_ranks_merge(struct interval *all, size_t count);
/* The median, or 0 if there are no values; sorts `values`. */
int64_t xsp_ranks_median(int64_t *values, size_t count);
/* The job's index of a name, or -ENOMEM. */
long xsp_ranks_name(struct xsp_ranks *j, const char *text);
struct operator_sum *xsp_ranks_sum(struct rank *k, uint32_t name, bool make);
/* NULL if that much is not known of the rank. */
struct line_sum *xsp_ranks_line(struct rank *k, uint32_t line, uint32_t in);
int xsp_ranks_add_line(struct rank *k, const struct line_sum *part); /* or -ENOMEM */
int xsp_ranks_add_instance(struct rank *k, uint32_t group,
			   const struct instance *i); /* or -ENOMEM */
/* The step that contains a time by the rank's own clock; NULL: none. */
struct rank_step *xsp_ranks_step_at(const struct rank *k, int64_t ns);
/* "rank 3 (host)", or "process 4242 (host)". */
void xsp_ranks_title(const struct rank *k, char *out, size_t size);

/* ---- ranks_match.c ---- */

/* One rank's part in one collective. */
struct met {
	struct rank *rank;
	const struct instance *at;
	struct member *member;
	int64_t start_ns, end_ns; /* by the first rank's clock */
	int64_t not_compared_ns; /* time held up before all of them were recorded */
};
/* Finds which groups of the ranks are the same one, and how far clocks are apart. 0 or -ENOMEM. */
int xsp_ranks_match_groups(struct xsp_ranks *j);
/* Calls fn for each collective that at least two ranks recorded, in the order in which their last
 * rank came. Ends when fn does not return 0. */
int xsp_ranks_each_met(struct xsp_ranks *j,
		       int (*fn)(struct xsp_ranks *j, void *ctx, struct met *met, size_t count),
		       void *ctx);

/* ---- ranks_gpu.c ---- */

/* Adds a kernel that began and ended within the range; times are real time. `name`: the job's; not
 * used for a kernel that communicates. 0 or -ENOMEM. */
int xsp_ranks_gpu_kernel(struct rank *k, uint32_t name, bool communicates,
			 const struct gpu_kernel *kernel);
/* Call it after the capture's run: makes the groups' collectives, and finds when they blocked the
 * rank. 0 or -ENOMEM. */
int xsp_ranks_gpu_join(struct rank *k);

#endif
