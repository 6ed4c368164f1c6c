/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * account.h - the account of the time: each nanosecond of a thread in one row of {kind, place, callee}, without overlap and
 * without rest. Threads that do the same work are one family.
 *
 * A listener of one pass: add the sink, run, then call xsp_account_end(). Memory is bounded by the rows, not by the run.
 */
#ifndef XSP_MODEL_ACCOUNT_H
#define XSP_MODEL_ACCOUNT_H

#include "catalog/dear_calls.h"
#include "timeline/timeline.h"

enum xsp_account_kind {
	XSP_ACCOUNT_WAIT, /* off its CPU; `why` is the reason */
	XSP_ACCOUNT_SPAN, /* on a CPU in a span, without its children */
	XSP_ACCOUNT_CPU, /* on a CPU in no span: shared out by samples */
	XSP_ACCOUNT_READY, /* ready to run, and without a CPU */
	XSP_ACCOUNT_PROBES, /* the recording's own hits, estimated */
	XSP_ACCOUNT_OFF, /* not on a CPU, by samples alone: the capture has no waits */
	XSP_ACCOUNT_KINDS,
};
/* `why`, beside enum xsp_wait_class. */
enum xsp_account_why {
	XSP_ACCOUNT_SHORT = XSP_WAIT_CLASSES, /* waits without an event of their own */
	XSP_ACCOUNT_GIL, /* the lock of a Python interpreter */
	XSP_ACCOUNT_MUTEX, /* a lock that another thread holds; XSP_WAIT_LOCK: a condition, a join, a queue */
	XSP_ACCOUNT_MONITOR, /* the same, known by the stack alone */
	XSP_ACCOUNT_CLIENT, /* a server's wait for a request, or for somebody to connect */
	XSP_ACCOUNT_SYNC, /* a disk, in fsync or the like */
	XSP_ACCOUNT_FAULT, /* CPU: the kernel handled page faults there */
	XSP_ACCOUNT_DEAR, /* CPU: and from here on: + enum xsp_dear_call */
	XSP_ACCOUNT_WHYS = XSP_ACCOUNT_DEAR + XSP_DEAR_CALLS,
};

/* A thread or a family with less than that part of the busiest one's time on a CPU, or ready, is idle. */
#define XSP_ACCOUNT_IDLE 50U

#define XSP_ACCOUNT_BRIEF_NS 50000000U
#define XSP_ACCOUNT_MANY 8U /* members */

/* A part of a place. */
struct xsp_account_row {
	enum xsp_account_kind kind;
	unsigned
		why; /* WAIT, READY: enum xsp_wait_class or xsp_account_why; CPU: 0, XSP_ACCOUNT_FAULT, or DEAR + one of these */
	uint32_t place; /* 1 + xsp_name_id, a line of Python or a function; 0: not known */
	uint32_t callee; /* 1 + xsp_name_id: what the place called; 0: itself */
	uint32_t
		peer; /* WAIT: for xsp_timeline_peer(): what most of it was for; 0: not known, or for several */
	int64_t ns; /* of all members, or all steps */
	int64_t loop_ns; /* WAIT: of it in what an event loop called, which does nothing else meanwhile */
	int64_t least_ns, most_ns; /* of a member */
	uint32_t
		most; /* the tid of that one; root namespace; 0: nobody knows, part of it was shared out over all members */
	uint64_t samples;
	uint64_t steps; /* it was in so many; 0: the account is not of steps */
	uint64_t longest_ns; /* in one step */
	uint64_t
		period; /* the least number of steps from one that has it to the next; 0: not known */
};

/* Who calls a place, outwards: of each level but the last there is one. */
#define XSP_ACCOUNT_CALLERS 5U
struct xsp_account_caller {
	uint32_t name; /* 1 + xsp_name_id, of its line with most time */
	uint32_t level; /* 1: it calls the place; 2: it calls that one */
	double share; /* of the time of the one before that was seen */
};

#define XSP_ACCOUNT_THIRDS 3U

/* Rows of one function or span, the largest first. */
struct xsp_account_place {
	uint32_t name; /* 1 + xsp_name_id of its line with most time; 0: not known */
	enum xsp_account_kind kind; /* of its largest row */
	int64_t ns;
	uint64_t error_ns; /* 95 %: half width */
	const struct xsp_account_row *rows;
	size_t count;
	double thirds
		[XSP_ACCOUNT_THIRDS]; /* ns a step in each third of the steps, but the first few; 0: not known */
	struct xsp_account_caller callers[XSP_ACCOUNT_CALLERS]; /* the program's own functions */
	size_t caller_count;
};

struct xsp_account_family {
	uint32_t pid, tid; /* of its busiest member, root namespace */
	const char *comm;
	size_t members, idle; /* idle ones are not in the figures */
	uint64_t ns; /* of all members, or of all their steps: the sum of the rows */
	uint64_t cpu_ns, ready_ns; /* of that */
	uint64_t all_ns, all_cpu_ns, all_ready_ns; /* of the recording */
	uint64_t steps; /* 0: the account is of the whole recording */
	uint64_t paused_ns; /* of the recording: probes were out */
	/* more than XSP_ACCOUNT_MANY members, each of which lives for less than XSP_ACCOUNT_BRIEF_NS: programs that are
	 * started for each record, for example */
	bool brief;
	uint32_t index; /* private */
	const struct xsp_account_place *places; /* the largest first; ready and probes last */
	size_t count;
	uint64_t stack_ns; /* waits whose place was read, of wait_ns */
	uint64_t wait_ns;
	uint64_t off_ns; /* XSP_ACCOUNT_OFF, of ns */
	/* the busiest member asks for so many answers, one after the other, before it computes for longer; 0: it does not */
	double in_a_row;
	/* waits for conditions, queues and the like, of members that live on: all whose end is known; and those that another
	 * member ended, and none else at that time: they pass something on to each other */
	uint64_t woken_ns, passed_ns;
	uint32_t
		server; /* the thread that they nearly always wait for, for results of work that they gave away; 0: none */
	uint32_t waker; /* the thread that ends nearly all of woken_ns; 0: none does */
	uint64_t samples;
};

/* The length of a place's name without the comprehension, lambda or generator expression in it: these belong to the function
 * that they stand in. */
size_t xsp_account_name_length(const char *name);

struct xsp_account;

/* *out stays NULL if the capture has neither waits nor samples. 0 or -ENOMEM. */
int xsp_account_new(struct xsp_timeline *t, struct xsp_capture_reader *r, struct xsp_account **out);
void xsp_account_free(struct xsp_account *a);
struct xsp_timeline_sink xsp_account_sink(struct xsp_account *a);
/* After the run: adds up. 0 or -ENOMEM. */
int xsp_account_end(struct xsp_account *a);
/* The one to show comes first. Valid until xsp_account_free(). */
size_t xsp_account_families(const struct xsp_account *a, const struct xsp_account_family **out);
/* Threads and rows beyond the bounds. */
uint64_t xsp_account_left_out(const struct xsp_account *a);

#endif
