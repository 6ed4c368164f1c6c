/* SPDX-License-Identifier: BSD-2-Clause */
/* safe.h - which threads may be diverted, and how a thread resumes afterwards. */
#ifndef XSP_INJECT_THREAD_SAFE_H
#define XSP_INJECT_THREAD_SAFE_H

#include "inject/reader.h"
#include "inject/thread/stub.h"
#include "inject/thread/tracee.h"

/* How suitable a thread looks from outside. */
enum xsp_candidate {
	XSP_CANDIDATE_BLOCKED, /* in a system call that the kernel restarts exactly */
	XSP_CANDIDATE_RUNNING,
	/* in one that fails with EINTR when the thread is stopped; we restart it, and its timeout begins again */
	XSP_CANDIDATE_INTERRUPTIBLE,
	XSP_CANDIDATE_NO,
};
enum xsp_candidate xsp_safe_candidate(pid_t pid, pid_t tid);

/*
 * May this stopped thread be diverted? *danger: why not, a constant text; NULL: it may. *gap: bytes of free addresses
 * to look for, then their address; 0: there are none. 0, or a negative errno: nothing is known.
 */
int xsp_safe_danger(struct xsp_reader *reader, const struct xsp_held *held,
		    const struct xsp_tracee *t, uint64_t *gap, const char **danger);

/*
 * Prepares how a thread resumes that was stopped in a system call. The kernel restarts the call from t->registers, or
 * ends it with EINTR if a signal is to be handled first. The stub does the same from `alone`, without a tracer.
 */
void xsp_safe_way_on(struct xsp_tracee *t, struct xsp_stub_registers *alone);

#endif
