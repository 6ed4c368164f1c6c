/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * waits.h - --waits: what threads waited for, and where all of their time went.
 *
 * Of a span it tells how long its thread was on a CPU (xsp_span.cpu_ns), to the last short wait: those that have
 * no event of their own are told before the span's own events.
 */
#ifndef XSP_TIMELINE_WAITS_H
#define XSP_TIMELINE_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xsptrace/event.h"

struct xsp_timeline;
struct xsp_timeline_thread;

/* One wait with an event of its own; or, with XSP_WAIT_SHORT, nothing but short ones (short_ns) before an event of the
 * thread's spans. */
struct xsp_wait {
	uint32_t pid, tid; /* root namespace */
	uint64_t left_ns, woken_ns, back_ns; /* off its CPU; woken: when it could run again */
	uint64_t short_ns; /* in shorter ones since the last one that was told */
	enum xsp_wait_class why; /* until it was woken */
	int32_t syscall; /* or -1 */
	uint64_t argument; /* the first one of the system call */
	uint32_t owner, waker; /* threads, root namespace; 0: not known */
	unsigned flags; /* enum xsp_wait_flag */
	bool in_span; /* a span was open on its current stack */
	uint32_t span; /* xsp_name_id of the innermost */
	/* Where it waited, from the outermost on, as xsp_span.path: open spans, and with --wait-stacks what lies around and
	 * below them. Valid during the call */
	const uint32_t *path; /* ends with the kernel's functions, where they are known */
	uint32_t path_length;
	uint32_t spans_length; /* ... up to the innermost span: where the short ones were */
	struct xsp_details *details; /* its sections STACK and PYTHON, or NULL; during the call */
	/* 1 + xsp_name_id; 0: not known. The innermost frame, and the innermost one that is not the interpreter's, a
	 * package's or the C library's, if there is such: "train.py:21 train_step" */
	uint32_t inside, place;
	bool python_lock; /* ... wants a threading.Lock or its like, and not as a condition variable does */
	uint32_t
		kernel; /* 1 + xsp_name_id: the innermost function of the kernel's that is not the scheduler's; 0: not known */
};

/* All of a thread's time, as the kernel side added it up. */
struct xsp_thread_times {
	const struct xsp_timeline_thread *thread;
	uint64_t since_ns, until_ns, running_ns, runnable_ns;
	uint64_t blocked_ns[XSP_WAIT_CLASSES];
	uint64_t waits[XSP_WAIT_CLASSES]; /* how many */
	bool ended; /* before the recording did */
	bool faults_known; /* of its page faults in that time, not in a part of it */
	uint64_t minor_faults, major_faults; /* major: something was read from a disk for it */
	unsigned now; /* of one that goes on, as event.h has it: enum xsp_times_now */
};

/* Of all reasons. */
uint64_t xsp_thread_blocked_ns(const struct xsp_thread_times *times);

/* The lock that the threads of a Python interpreter share (GIL), as the recorder read where it lies. */
struct xsp_python_lock {
	uint64_t address;
	uint32_t
		condition_bytes; /* who waits at these is woken by the thread that lets go of it; */
	uint32_t bytes; /* ... at the others, of all, by the one that takes it */
};
/* False: the process has none, or it is not known. */
bool xsp_timeline_python_lock(const struct xsp_timeline *t, uint32_t pid,
			      struct xsp_python_lock *out);

/* Does the capture hold waits? */
bool xsp_timeline_has_waits(const struct xsp_timeline *t);
/* They were on by default, and taken out then (CLOCK_MONOTONIC): nothing later is known. 0: they were on to the end. */
uint64_t xsp_timeline_waits_until_ns(const struct xsp_timeline *t);
/* Those shorter than this are in no event. */
uint64_t xsp_timeline_wait_least_ns(const struct xsp_timeline *t);
/* Complete after the run; in the order in which threads ended. While a capture is followed: what has come since
 * xsp_timeline_forget(). */
size_t xsp_timeline_times(const struct xsp_timeline *t, const struct xsp_thread_times **times);

#endif
