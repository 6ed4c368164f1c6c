/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * waits.h - --waits: what threads waited for, and how they spent all of their time. It also gives
 * each span's time on a CPU (xsp_span.cpu_ns), exact to the last short wait: short waits without an
 * event of their own are reported before the span's own events.
 */
#ifndef XSP_TIMELINE_WAITS_H
#define XSP_TIMELINE_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "timeline/callers.h"
#include "xsptrace/event.h"

struct xsp_timeline;
struct xsp_timeline_thread;

/* One wait with an event of its own. With XSP_WAIT_SHORT only the short waits (short_ns) before an
 * event of the thread's spans. */
struct xsp_wait {
	uint32_t pid, tid; /* root namespace */
	uint64_t left_ns, woken_ns, back_ns; /* off its CPU; woken: when it could run again */
	uint64_t short_ns; /* in shorter waits since the last one with an event */
	enum xsp_wait_class why; /* the reason until its wakeup */
	int32_t syscall; /* or -1 */
	uint64_t argument; /* the first one of the system call */
	uint32_t owner, waker; /* threads, root namespace; 0: not known */
	unsigned flags; /* enum xsp_wait_flag */
	bool in_span; /* a span was open on its current stack */
	uint32_t span; /* xsp_name_id of the innermost */
	/* Where it waited, outermost first, as in xsp_span.path: open spans, and with --wait-stacks
	 * the functions around and below them. Valid during the call */
	const uint32_t *path; /* ends with the kernel's functions, if known */
	uint32_t path_length;
	uint32_t spans_length; /* up to the innermost span: the place of the short ones */
	struct xsp_details *details; /* its sections STACK and PYTHON, or NULL; during the call */
	/* 1 + xsp_name_id ("train.py:21 train_step"); 0: not known. The innermost frame; and the
	 * innermost one outside the interpreter, packages and the C library, if there is one */
	uint32_t inside, place;
	struct xsp_own_callers callers; /* of that place; only if a sink wants charges */
	bool for_lock; /* its stack is in a function that takes a lock (catalog/wait_reasons.h) */
	/* it wants a threading.Lock or the like, and does not wait on a condition variable */
	bool python_lock;
	/* 1 + xsp_name_id: what it waits for at one descriptor, "127.0.0.1:5432" or a file's name; 0: not known */
	uint32_t peer;
	/* 1 + xsp_name_id: the kernel's innermost function outside of its scheduler; 0: not
	 * known */
	uint32_t kernel;
};

/* All of a thread's time, added up by the kernel side. */
struct xsp_thread_times {
	const struct xsp_timeline_thread *thread;
	uint64_t since_ns, until_ns, running_ns, runnable_ns;
	uint64_t blocked_ns[XSP_WAIT_CLASSES];
	uint64_t waits[XSP_WAIT_CLASSES]; /* how many */
	bool ended; /* before the recording did */
	bool faults_known; /* page faults of all that time, not of a part */
	uint64_t minor_faults, major_faults; /* major: needed a read from a disk */
	struct xsp_thread_io io; /* all 0: not known */
	unsigned now; /* a state that still goes on, as in event.h: enum xsp_times_now */
};

/* For all reasons together. */
uint64_t xsp_thread_blocked_ns(const struct xsp_thread_times *times);

/* The lock that the threads of a Python interpreter share (GIL), at the position that the recorder
 * has read. */
struct xsp_python_lock {
	uint64_t address;
	/* the thread that releases the lock wakes waiters at these addresses; */
	uint32_t condition_bytes;
	uint32_t bytes; /* the thread that takes it wakes waiters at the others */
};
/* False: the process has none, or nobody knows it. */
bool xsp_timeline_python_lock(const struct xsp_timeline *t, uint32_t pid,
			      struct xsp_python_lock *out);

#define XSP_PEER_TEXT 160
/* The same with the process that was there, after the run: "127.0.0.1:5432 (postgres)", "of python3 (4361)"; NULL: nothing that
 * would help. `peer`: xsp_wait.peer. */
const char *xsp_timeline_peer(const struct xsp_timeline *t, uint32_t peer,
			      char text[XSP_PEER_TEXT]);

/* Does the capture hold waits? */
bool xsp_timeline_has_waits(const struct xsp_timeline *t);
/* Waits were on by default and were dropped at this time (CLOCK_MONOTONIC): nothing later is known.
 * 0: on to the end. */
uint64_t xsp_timeline_waits_until_ns(const struct xsp_timeline *t);
/* The least duration of a wait with an event of its own. */
uint64_t xsp_timeline_wait_least_ns(const struct xsp_timeline *t);
/* Complete after the run; in the order in which threads ended. While a capture is followed: news
 * since xsp_timeline_forget(). */
size_t xsp_timeline_times(const struct xsp_timeline *t, const struct xsp_thread_times **times);

#endif
