/* SPDX-License-Identifier: BSD-2-Clause */
/* step_shares.h - what was called in each step, by whatever who listens counts it under. */
#ifndef XSP_ANALYSIS_STEP_SHARES_H
#define XSP_ANALYSIS_STEP_SHARES_H

#include "timeline/timeline.h"

struct xsp_step_shares;

struct xsp_step_share {
	uint32_t key;
	uint64_t calls, ns;
};

int xsp_step_shares_new(struct xsp_step_shares **out);
void xsp_step_shares_free(struct xsp_step_shares *s);

/* A span of the step at hand, which counts under `key` with so much time. 0 or -ENOMEM. */
int xsp_step_shares_add(struct xsp_step_shares *s, const struct xsp_span *span, uint32_t thread,
			uint32_t key, uint64_t ns);
/* To be called with all news. *shares: of one that counts or is warm-up, what was called in it; valid until the next call.
 * 0 or -ENOMEM. */
int xsp_step_shares_step(struct xsp_step_shares *s, const struct xsp_step *step,
			 const struct xsp_step_share **shares, size_t *count);

/* Sums over the steps that count: under one key, of all threads; *ns may be NULL. */
uint64_t xsp_step_shares_calls(const struct xsp_step_shares *s, uint32_t key, uint64_t *ns);
/* Of a thread: under each key, and under one; NULL: there is none. */
size_t xsp_step_shares_sums(const struct xsp_step_shares *s, uint32_t thread,
			    const struct xsp_step_share **sums);
const struct xsp_step_share *xsp_step_shares_sum(const struct xsp_step_shares *s, uint32_t thread,
						 uint32_t key);

#endif
