/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thread_stop.h - stops threads of a target for a moment, one at a time, and copies their registers and a bounded part
 * of the stack. A process beside the broker, with its rights, does that; it does not look into the bytes. After
 * XSP_STOP_LIMIT_MS it releases a thread by itself. If it dies, the kernel does (PTRACE_SEIZE).
 */
#ifndef XSP_ATTACH_THREAD_STOP_H
#define XSP_ATTACH_THREAD_STOP_H

#include <sys/types.h>

#include "attach/broker.h"
#include "broker/thread_stop.h"

struct xsp_thread_stopper;

/* Starts no process yet. Both are borrowed. 0 or -ENOMEM. */
int xsp_thread_stopper_new(struct xsp_broker *b, pid_t pid, struct xsp_thread_stopper **out);
void xsp_thread_stopper_free(struct xsp_thread_stopper *s); /* NULL is allowed */

/*
 * *out stays valid until the next call. After 0 call xsp_thread_release() soon. -ESRCH: the thread is gone, or another
 * process's; -EPERM: it is traced already, or must not be traced; -ETIMEDOUT: it did not stop in time, and will not;
 * -ETIME: it is in a call on a socket, whose timeout would begin again; -ENOTSUP: 32-bit code, or another
 * architecture.
 */
int xsp_thread_stop(struct xsp_thread_stopper *s, pid_t tid, const struct xsp_stopped_thread **out);
int xsp_thread_release(struct xsp_thread_stopper *s, struct xsp_released_thread *out);

#endif
