/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_private.h - the conditions of the rules, and what they share. */
#ifndef XSP_ANALYSIS_RULES_PRIVATE_H
#define XSP_ANALYSIS_RULES_PRIVATE_H

#include "analysis/rules/rules.h"
#include "analysis/summary_report.h"

/* rules_cpu.c */
int xsp_rule_hot_operation(const struct xsp_rule_context *c);
int xsp_rule_python_loop(const struct xsp_rule_context *c);
int xsp_rule_warm_up(const struct xsp_rule_context *c);
int xsp_rule_overhead(const struct xsp_rule_context *c);
/* rules_loader.c */
int xsp_rule_loader(const struct xsp_rule_context *c);
/* Does the rule about DataLoaders say that wait already? Theirs for their workers are no less than it. */
bool xsp_rule_is_of_loader(const struct xsp_rule_context *c, unsigned why, int64_t ns);
/* rules_hot.c */
#define XSP_SAMPLES_LEAST 30 /* fewer prove nothing */
int xsp_rule_hot_function(const struct xsp_rule_context *c);
/* The function with the most samples in spans of that name: "sgemm_ (libblas.so.3) in 97 % of
 * the samples"; false: none is known. */
#define XSP_RULE_INSIDE 400
bool xsp_rule_inside(const struct xsp_rule_context *c, xsp_name_id span, char out[XSP_RULE_INSIDE]);
/* account_part.c */
#define XSP_SAMPLES_FEW 5U
struct xsp_account_family;
/* The families of the account; the one that is shown comes first. */
size_t xsp_rule_families(const struct xsp_rule_context *c, const struct xsp_account_family **out);
/* rules_account.c */
int xsp_rule_page_faults(const struct xsp_rule_context *c);
int xsp_rule_dear_call(const struct xsp_rule_context *c);
/* rules_waiting.c */
int xsp_rule_disk(const struct xsp_rule_context *c);
int xsp_rule_waiting(const struct xsp_rule_context *c);
/* rules_steps.c */
int xsp_rule_stall(const struct xsp_rule_context *c);
int xsp_rule_outside(const struct xsp_rule_context *c);
int xsp_rule_growth(const struct xsp_rule_context *c);
/* rules_uneven.c */
int xsp_rule_uneven(const struct xsp_rule_context *c);
/* rules_locks.c */
int xsp_rule_lock(const struct xsp_rule_context *c);
int xsp_rule_gil(const struct xsp_rule_context *c);
int xsp_rule_pool(const struct xsp_rule_context *c);
struct xsp_summary_waits;
struct lock;
/* Do threads block each other at this Python lock? Where it is known, they wait for the lock
 * itself. The thread that releases it has mostly waited for it too. */
bool xsp_rule_is_fought_for(const struct xsp_summary_waits *w, const struct lock *lock);
/* rules_threads.c */
int xsp_rule_runnable(const struct xsp_rule_context *c);
/* rules_memory.c */
int xsp_rule_leak(const struct xsp_rule_context *c);
int xsp_rule_allocation(const struct xsp_rule_context *c);
int xsp_rule_pageable_copy(const struct xsp_rule_context *c);
int xsp_rule_small_copies(const struct xsp_rule_context *c);
/* rules_ranks.c */
int xsp_rule_ranks(const struct xsp_rule_context *c);
/* rules_sync.c */
int xsp_rule_sync(const struct xsp_rule_context *c);
/* rules_gpu.c */
int xsp_rule_gpu_idle(const struct xsp_rule_context *c);
int xsp_rule_launch_bound(const struct xsp_rule_context *c);
int xsp_rule_short_kernels(const struct xsp_rule_context *c);
int xsp_rule_serial_streams(const struct xsp_rule_context *c);
int xsp_rule_memory_bound(const struct xsp_rule_context *c);

#define XSP_FINDINGS_MAX 20 /* of one rule, whatever its threshold */

static inline struct xsp_summary *xsp_rule_summary(const struct xsp_rule_context *c)
{
	const struct xsp_summary_analysis *a = xsp_rule_state(c, "summary");

	return a->summary;
}

#endif
