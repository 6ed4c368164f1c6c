/* SPDX-License-Identifier: BSD-2-Clause */
/* sum.h - an account's sum in progress: adding up (families.c) and sharing out (share.c). */
#ifndef XSP_MODEL_ACCOUNT_SUM_H
#define XSP_MODEL_ACCOUNT_SUM_H

#include "base/rows/array.h"
#include "model/account/account_private.h"

#define NO_POOL UINT32_MAX
#define NO_THREAD UINT32_MAX /* of the family as a whole */

/* A thread's part in a row. */
struct part {
	uint8_t kind, why;
	bool used; /* a sample: its thread has shared out time by it */
	uint32_t place, callee, thread;
	struct account_lead peer;
	int64_t loop_ns;
	uint32_t pool; /* of a sample: 1 in a pause, else 0 */
	int64_t ns;
	uint64_t count; /* samples */
	uint64_t steps, longest_ns, period;
	double thirds[XSP_ACCOUNT_THIRDS]; /* a step: ns, or samples */
	uint64_t function; /* hash of the place without its line */
};

/* CPU time of a thread in no span, or in a span whose line is not known. */
struct pool {
	uint32_t thread;
	bool paused;
	int64_t ns;
	uint64_t samples, here; /* here: those of the place at hand */
};

struct sum {
	struct xsp_account *a;
	bool steps; /* of steps */
	XSP_ARRAY(struct part) parts; /* of the family */
	XSP_ARRAY(struct part) weights; /* what is shared out by: samples, or waits with a place */
	XSP_ARRAY(struct part) homeless; /* waits without a place */
	XSP_ARRAY(struct part) chosen; /* what fits one of them */
	XSP_ARRAY(struct part) spans; /* on lines that are not known */
	XSP_ARRAY(struct part) lines; /* samples in them */
	XSP_ARRAY(struct pool) pools;
};

/* That share of it. */
int64_t account_part_of(int64_t ns, double share);
/* Each 0 or -ENOMEM. Waits first, pools before spans. */
int account_place_waits(struct sum *s);
int account_share_pools(struct sum *s);
int account_place_spans(struct sum *s);

#endif
