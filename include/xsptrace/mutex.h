/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mutex.h - which thread holds a mutex of glibc, from the bytes at the address where its waiters
 * wait.
 *
 * Other locks (Rust's, Go's) are 2, too, while a thread waits. Their program's own data follows,
 * and may look like a thread id. So all the bytes have to be as glibc keeps them.
 */
#ifndef XSPTRACE_MUTEX_H
#define XSPTRACE_MUTEX_H

#include "xsptrace/event.h"

/* sysdeps/nptl/bits/struct_mutex.h, of 64 bits */
struct xsp_mutex {
	__u32 lock, count, owner, users, kind, spins;
	__u64 list[2];
};

/* nptl/pthreadP.h */
#define XSP_MUTEX_WAITED_FOR 2U /* the lock word while a thread waits */
#define XSP_MUTEX_RECURSIVE 1U
#define XSP_MUTEX_TYPE 3U
#define XSP_MUTEX_ROBUST 16U
#define XSP_MUTEX_KINDS                                                                            \
	(XSP_MUTEX_TYPE | XSP_MUTEX_ROBUST | 128U | 256U | 512U) /* shared; elision */
#define XSP_MUTEX_USERS 65536U /* including those that wait at a condition variable */
/* include/uapi/linux/futex.h */
#define XSP_MUTEX_WAITERS 0x80000000U

/* `expected`: the value that the waiter expects at its address. 0: the bytes name no owner. */
static inline __u32 xsp_mutex_owner(const struct xsp_mutex *m, __u32 expected)
{
	const __u32 type = m->kind & XSP_MUTEX_TYPE;

	if (m->lock != expected || m->users == 0 || m->users > XSP_MUTEX_USERS ||
	    (m->kind & ~XSP_MUTEX_KINDS))
		return 0;
	/* its lock word is its owner */
	if (m->kind & XSP_MUTEX_ROBUST)
		return expected == (m->owner | XSP_MUTEX_WAITERS) ? m->owner : 0;
	if (expected != XSP_MUTEX_WAITED_FOR || m->list[0] != 0 || m->list[1] != 0)
		return 0;
	return m->count == 0 || type == XSP_MUTEX_RECURSIVE ? m->owner : 0;
}

#endif
