/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * off_cpu.h - --weight off-cpu: how long each thread was off its CPU, to the nanosecond. The sums of threads have all
 * of it. The rest is time without an event of its own: waits too short for one, or with a lost event.
 */
#ifndef XSP_MODEL_OFF_CPU_H
#define XSP_MODEL_OFF_CPU_H

#include "base/rows/tally.h"
#include "model/view.h"

/* A sum of each thread: what its waits account for, or what its spans had of a CPU. */
struct xsp_off_reported {
	XSP_TALLY(uint64_t) ns; /* by pid << 32 | tid */
};

/* 0 or -ENOMEM. */
int xsp_off_reported_add(struct xsp_off_reported *reported, const struct xsp_wait *wait);
int xsp_off_reported_put(struct xsp_off_reported *reported, uint32_t pid, uint32_t tid,
			 uint64_t ns);
void xsp_off_reported_free(struct xsp_off_reported *reported);

/* Once, at the end: each thread with a rest. `add` returns 0 or a negative errno, which ends it. */
typedef int (*xsp_off_rest_fn)(void *ctx, const struct xsp_timeline_thread *thread, uint64_t ns);
int xsp_off_rest(struct xsp_view *v, struct xsp_off_reported *reported, xsp_off_rest_fn add,
		 void *ctx);
/* The same of time on a CPU. */
int xsp_on_cpu_rest(struct xsp_view *v, struct xsp_off_reported *reported, xsp_off_rest_fn add,
		    void *ctx);

/* The innermost frame: "[lock]". */
#define XSP_OFF_REST XSP_WAIT_CLASSES
#define XSP_NOT_SAMPLED (XSP_OFF_REST + 1) /* on a CPU */
const char *xsp_off_frame(const struct xsp_view *v, unsigned why);

/* A wait as stacks: the short ones before it, the wait until its wakeup, and the time from then on. */
struct xsp_off_part {
	unsigned why;
	uint32_t length; /* of the wait's path */
	uint64_t ns;
};
#define XSP_OFF_PARTS 3
/* How many there are. */
size_t xsp_off_parts(const struct xsp_wait *wait, struct xsp_off_part parts[XSP_OFF_PARTS]);

#endif
