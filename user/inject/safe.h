/* SPDX-License-Identifier: BSD-2-Clause */
/* safe.h - which threads may be diverted, and how a thread goes on afterwards. */
#ifndef XSP_INJECT_SAFE_H
#define XSP_INJECT_SAFE_H

#include "inject/image.h"
#include "inject/stub.h"
#include "inject/tracee.h"

/* How promising a thread looks from outside, without stopping it. */
enum xsp_candidate {
	XSP_CANDIDATE_BLOCKED, /* in a system call that the kernel itself restarts exactly */
	XSP_CANDIDATE_RUNNING,
	XSP_CANDIDATE_INTERRUPTIBLE, /* in one that fails with EINTR when a thread is stopped: we
				      * restart it, a timeout of it then begins anew */
	XSP_CANDIDATE_NO,
};
enum xsp_candidate xsp_safe_candidate(pid_t pid, pid_t tid);

/* NULL: the stopped thread may be diverted; else why not, a constant text. */
const char *xsp_safe_danger(const struct xsp_image *image, const struct xsp_tracee *t);

/*
 * Prepares the way on of a thread that was stopped in a system call. t->registers get what the
 * kernel needs to restart it (or to end it with EINTR, if a signal is to be handled first), `alone`
 * what the stub needs to do the same without a tracer.
 */
void xsp_safe_way_on(struct xsp_tracee *t, struct xsp_stub_registers *alone);

#endif
