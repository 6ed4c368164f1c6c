/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thread_stop.h - a target's threads, stopped for a moment each, one at a time: registers, and a bounded part of
 * the stack. A process of its own does it, beside the broker and with its rights, and hands on bytes that it does
 * not understand. It lets go of a thread by itself when that has stood for XSP_STOP_LIMIT_MS, whoever has asked
 * for it; and if it dies, the kernel does (PTRACE_SEIZE).
 */
#ifndef XSP_ATTACH_THREAD_STOP_H
#define XSP_ATTACH_THREAD_STOP_H

#include <sys/types.h>

#include "attach/broker.h"
#include "broker/thread_stop.h"

struct xsp_thread_stopper;

/* Nothing is started yet. Both are borrowed. 0 or -ENOMEM. */
int xsp_thread_stopper_new(struct xsp_broker *b, pid_t pid, struct xsp_thread_stopper **out);
void xsp_thread_stopper_free(struct xsp_thread_stopper *s); /* NULL is allowed */

/*
 * What it returns in *out is there until the next call; with 0 release() is to follow soon. -ESRCH: the thread is
 * gone, or not of this process; -EPERM: it is traced already, or must not be; -ETIMEDOUT: it did not stop in time,
 * and will not; -ETIME: it is in a call of a socket whose timeout would begin anew; -ENOTSUP: 32-bit code, or not on this architecture.
 */
int xsp_thread_stop(struct xsp_thread_stopper *s, pid_t tid, const struct xsp_stopped_thread **out);
int xsp_thread_release(struct xsp_thread_stopper *s, struct xsp_released_thread *out);

#endif
