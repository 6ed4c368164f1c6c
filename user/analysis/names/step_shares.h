/* SPDX-License-Identifier: BSD-2-Clause */
/* step_shares.h - what was called in each step, by a key that the listener chooses. */
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

/* Counts a span of the current step under `key`, with time `ns`. 0 or -ENOMEM. */
int xsp_step_shares_add(struct xsp_step_shares *s, const struct xsp_span *span, uint32_t thread,
			uint32_t key, uint64_t ns);
/* Takes all news of steps. *shares: the calls of a step that counts or is warm-up; valid until
 * the next call. 0 or -ENOMEM. */
int xsp_step_shares_step(struct xsp_step_shares *s, const struct xsp_step *step,
			 const struct xsp_step_share **shares, size_t *count);

/* Sums of one key over the steps that count, of all threads; *ns may be NULL. */
uint64_t xsp_step_shares_calls(const struct xsp_step_shares *s, uint32_t key, uint64_t *ns);
/* Sums of one thread: all keys, or one key (NULL: it has none). */
size_t xsp_step_shares_sums(const struct xsp_step_shares *s, uint32_t thread,
			    const struct xsp_step_share **sums);
const struct xsp_step_share *xsp_step_shares_sum(const struct xsp_step_shares *s, uint32_t thread,
						 uint32_t key);

#endif
