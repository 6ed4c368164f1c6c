/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ranks.h - several captures, or one of several processes, as one job: who arrives last at collectives, what the others
 * wait for, which operator is slower on one rank than on the others.
 *
 * One capture after the other is run through the sink; then all are set against each other: the n-th collective of a
 * group is the same one on all its ranks. Clocks of different hosts are corrected by collectives that nobody can leave
 * before all have come. Memory: some 100 bytes a collective and rank, and the names.
 */
#ifndef XSP_ANALYSIS_RANKS_H
#define XSP_ANALYSIS_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/report.h"
#include "base/error.h"
#include "timeline/timeline.h"

struct xsp_ranks;

int xsp_ranks_new(struct xsp_ranks **out); /* 0 or -ENOMEM */
void xsp_ranks_free(struct xsp_ranks *j); /* NULL is allowed */
/* Before the run of the first capture: what marks steps (xsp_timeline_mark_steps); kept by reference. */
void xsp_ranks_mark_steps(struct xsp_ranks *j, const char *marker);

/*
 * The next capture: before its run, with xsp_ranks_sink() among the sinks; and behind it, while reader and timeline are
 * still there. The same capture twice is an error. 0 or a negative errno.
 */
int xsp_ranks_begin(struct xsp_ranks *j, struct xsp_capture_reader *r, struct xsp_timeline *t,
		    const char *path, struct xsp_error *err);
struct xsp_timeline_sink xsp_ranks_sink(struct xsp_ranks *j);
int xsp_ranks_end(struct xsp_ranks *j);

/* All of that, with a run of its own. 0 or a negative errno. */
int xsp_ranks_read(struct xsp_ranks *j, struct xsp_capture_reader *r, const char *path,
		   struct xsp_error *err);

/* Behind the last capture, once. 0 or -ENOMEM. */
int xsp_ranks_match(struct xsp_ranks *j);

/* What one process of the job is. */
struct xsp_rank_info {
	size_t capture; /* in the order they were given */
	uint32_t pid; /* root namespace */
	long rank, world_size; /* -1: not known */
	const char *host; /* "": not known */
	int64_t shift_ns; /* added to its real time; 0 on the host of the first rank */
};
/* In order of their ranks. */
size_t xsp_ranks_count(const struct xsp_ranks *j);
/* Is any of them a rank, by its environment or its collectives? Else all processes are compared. */
bool xsp_ranks_known(const struct xsp_ranks *j);
struct xsp_rank_info xsp_ranks_at(const struct xsp_ranks *j, size_t index);

/* Sections job, ranks, rank_steps and collectives. 0 or -ENOMEM. */
int xsp_ranks_report(struct xsp_ranks *j, struct xsp_report *report);

/* Findings of one of these two: ranks that come late to collectives for at least the rule's share of the job's time. Of the
 * context it uses the rule, the threshold and the report. 0 or -ENOMEM. */
#define XSP_RULE_STRAGGLER "straggler" /* because of an operator that takes longer there */
#define XSP_RULE_LATE_RANK "late-rank" /* without one */
struct xsp_rule_context;
int xsp_ranks_find(struct xsp_ranks *j, const struct xsp_rule_context *c);

#endif
