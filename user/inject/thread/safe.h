/* SPDX-License-Identifier: BSD-2-Clause */
/* safe.h - which threads may be diverted, and how a thread goes on afterwards. */
#ifndef XSP_INJECT_THREAD_SAFE_H
#define XSP_INJECT_THREAD_SAFE_H

#include "inject/reader.h"
#include "inject/thread/stub.h"
#include "inject/thread/tracee.h"

/* How promising a thread looks from outside, without stopping it. */
enum xsp_candidate {
	XSP_CANDIDATE_BLOCKED, /* in a system call that the kernel itself restarts exactly */
	XSP_CANDIDATE_RUNNING,
	XSP_CANDIDATE_INTERRUPTIBLE, /* in one that fails with EINTR when a thread is stopped: we
				      * restart it, a timeout of it then begins anew */
	XSP_CANDIDATE_NO,
};
enum xsp_candidate xsp_safe_candidate(pid_t pid, pid_t tid);

/*
 * *danger NULL: the stopped thread may be diverted; else why not, a constant text. *gap: bytes of free addresses that are
 * looked for, and then where; 0: nowhere. 0, or a negative errno: nothing is known.
 */
int xsp_safe_danger(struct xsp_reader *reader, const struct xsp_held *held,
		    const struct xsp_tracee *t, uint64_t *gap, const char **danger);

/*
 * Prepares the way on of a thread that was stopped in a system call. t->registers get what the
 * kernel needs to restart it (or to end it with EINTR, if a signal is to be handled first), `alone`
 * what the stub needs to do the same without a tracer.
 */
void xsp_safe_way_on(struct xsp_tracee *t, struct xsp_stub_registers *alone);

#endif
