/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ranks.h - treats several captures, or one capture of several processes, as one job. Which rank
 * comes last to collectives, how long do others wait for it, and which operator is slower on one
 * rank than on the others?
 *
 * The captures run through the sink one after another; then all are compared. The n-th collective
 * of a group is the same one on all its ranks. Clocks of different hosts are corrected by
 * collectives that no rank can leave before all have come. Memory: some 100 bytes for each
 * collective and rank, plus the names.
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
/* Call it before the first capture's run. `marker` says what marks steps (xsp_timeline_mark_steps);
 * it must outlive `j`. */
void xsp_ranks_mark_steps(struct xsp_ranks *j, const char *marker);

/*
 * Call the first before the next capture's run, with xsp_ranks_sink() among the sinks. Call the
 * second after it, while reader and timeline still exist. To add the same capture twice is an
 * error. 0 or a negative errno.
 */
int xsp_ranks_begin(struct xsp_ranks *j, struct xsp_capture_reader *r, struct xsp_timeline *t,
		    const char *path, struct xsp_error *err);
struct xsp_timeline_sink xsp_ranks_sink(struct xsp_ranks *j);
int xsp_ranks_end(struct xsp_ranks *j);

/* Does all of that, with a run of its own. 0 or a negative errno. */
int xsp_ranks_read(struct xsp_ranks *j, struct xsp_capture_reader *r, const char *path,
		   struct xsp_error *err);

/* Call it once, after the last capture. 0 or -ENOMEM. */
int xsp_ranks_match(struct xsp_ranks *j);

/* One process of the job. */
struct xsp_rank_info {
	size_t capture; /* index, in the order in which captures were added */
	uint32_t pid; /* in the root namespace */
	long rank, world_size; /* -1: not known */
	const char *host; /* "": not known */
	int64_t shift_ns; /* added to its real time; 0 on the first rank's host */
};
/* Processes are in order of their ranks. */
size_t xsp_ranks_count(const struct xsp_ranks *j);
/* Do environment or collectives show that any process is a rank? If not, all are compared. */
bool xsp_ranks_known(const struct xsp_ranks *j);
struct xsp_rank_info xsp_ranks_at(const struct xsp_ranks *j, size_t index);

/* Sections job, ranks, rank_steps and collectives. 0 or -ENOMEM. */
int xsp_ranks_report(struct xsp_ranks *j, struct xsp_report *report);

/* Adds findings of one of these two rules: ranks that come late to collectives for at least the
 * rule's share of the job's time. Uses only the rule, the threshold and the report of the context.
 * 0 or -ENOMEM. */
#define XSP_RULE_STRAGGLER "straggler" /* an operator takes longer on that rank */
#define XSP_RULE_LATE_RANK "late-rank" /* no operator explains it */
struct xsp_rule_context;
int xsp_ranks_find(struct xsp_ranks *j, const struct xsp_rule_context *c);

#endif
