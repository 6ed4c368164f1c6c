/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tracee.h - one thread of the target, stopped by ptrace. All calls from one thread of ours, and no
 * other thread of ours waits for children meanwhile; when that thread ends, the kernel lets go of
 * whatever it still holds.
 */
#ifndef XSP_INJECT_THREAD_TRACEE_H
#define XSP_INJECT_THREAD_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "inject/held.h"

/* Largest state that xsave writes today is 11 KiB (AMX). */
#define XSP_XSTATE_MAX 16384U

struct xsp_tracee {
	pid_t tid;
	int status; /* of the stop it is in */
	uint64_t before_stop_ns; /* it had not stopped yet; 0: not known */
	struct user_regs_struct registers; /* when it was stopped */
	uint64_t mask; /* blocked signals, bit n: signal n + 1 */
	uint8_t xstate[XSP_XSTATE_MAX];
	size_t xstate_size;
};

/*
 * Stops a thread and reads its registers. -EAGAIN: it did not stop where it can be used (a signal or
 * a stop of the job came first): it was let go; -ETIMEDOUT: not within 250 ms (end the thread
 * that called); -ESRCH: gone; other errno of ptrace: not allowed.
 */
int xsp_tracee_stop(struct xsp_tracee *t, pid_t tid);
/* Waits for the next stop; 0, -ETIMEDOUT; -ESRCH: it has ended, or started another program, in which
 * nothing of ours may be done: it was let go. */
int xsp_tracee_wait(struct xsp_tracee *t, uint64_t limit_ns);
/* Stops it again, when it was running. As xsp_tracee_wait. */
int xsp_tracee_interrupt(struct xsp_tracee *t, uint64_t limit_ns);
/* The signal that it is about to get in this stop; 0: it stopped for another reason. */
int xsp_tracee_signal(const struct xsp_tracee *t);
int xsp_tracee_get(const struct xsp_tracee *t, struct user_regs_struct *registers);
int xsp_tracee_set(const struct xsp_tracee *t, const struct user_regs_struct *registers);
int xsp_tracee_continue(const struct xsp_tracee *t);
/* Signal mask, vector state and registers as they were when it was stopped first. `die` (tests): we
 * kill ourselves before the registers. */
int xsp_tracee_restore(const struct xsp_tracee *t, bool die);
/* Lets it go on, with `signal_number` (0: none). */
int xsp_tracee_release(const struct xsp_tracee *t, int signal_number);
/* Writes into the memory of the stopped thread, code included. */
int xsp_tracee_poke(const struct xsp_tracee *t, const struct xsp_held *held, uint64_t address,
		    const void *bytes, size_t size);
/* Is it inside a restartable sequence (rseq(2))? Those are undone when a thread is moved. */
bool xsp_tracee_in_rseq(const struct xsp_tracee *t, const struct xsp_held *held);

#endif
