/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tracee.h - a thread of the target that ptrace has stopped. One thread of ours makes all calls, and no other one waits
 * for children meanwhile. When that thread ends, the kernel releases whatever it still holds.
 */
#ifndef XSP_INJECT_THREAD_TRACEE_H
#define XSP_INJECT_THREAD_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "inject/held.h"

/* The largest state that xsave writes today has 11 KiB (AMX). */
#define XSP_XSTATE_MAX 16384U

struct xsp_tracee {
	pid_t tid;
	int status; /* of its present stop */
	/* a time at which it had not stopped yet; 0: not known */
	uint64_t before_stop_ns;
	struct user_regs_struct registers; /* when it was stopped */
	uint64_t mask; /* blocked signals: bit n is signal n + 1 */
	uint8_t xstate[XSP_XSTATE_MAX];
	size_t xstate_size;
};

/*
 * Stops a thread and reads its registers. -EAGAIN: a signal, or a stop of the whole process, came first, and it was
 * released; -ETIMEDOUT: not within 250 ms (end the calling thread); -ESRCH: it is gone; other errno of ptrace: not
 * allowed.
 */
int xsp_tracee_stop(struct xsp_tracee *t, pid_t tid);
/* Waits for the next stop. 0, -ETIMEDOUT; -ESRCH: it has ended, or has started another program, and was released as
 * that is none of ours. */
int xsp_tracee_wait(struct xsp_tracee *t, uint64_t limit_ns);
/* Stops the running thread again. As xsp_tracee_wait(). */
int xsp_tracee_interrupt(struct xsp_tracee *t, uint64_t limit_ns);
/* The signal that the thread is about to get; 0: it stopped for another reason. */
int xsp_tracee_signal(const struct xsp_tracee *t);
int xsp_tracee_get(const struct xsp_tracee *t, struct user_regs_struct *registers);
int xsp_tracee_set(const struct xsp_tracee *t, const struct user_regs_struct *registers);
int xsp_tracee_continue(const struct xsp_tracee *t);
/* Restores signal mask, vector state and registers of its first stop. `die` (tests): kill ourselves before the
 * registers. */
int xsp_tracee_restore(const struct xsp_tracee *t, bool die);
/* Lets the thread run, with `signal_number` (0: none). */
int xsp_tracee_release(const struct xsp_tracee *t, int signal_number);
/* Writes into the memory of the stopped thread, code included. */
int xsp_tracee_poke(const struct xsp_tracee *t, const struct xsp_held *held, uint64_t address,
		    const void *bytes, size_t size);
/* Is it in a restartable sequence (rseq(2))? Moving the thread would undo that. */
bool xsp_tracee_in_rseq(const struct xsp_tracee *t, const struct xsp_held *held);

#endif
