/* SPDX-License-Identifier: BSD-2-Clause */
/* account_private.h - shared by collecting (collect.c) and adding up (families.c). */
#ifndef XSP_MODEL_ACCOUNT_PRIVATE_H
#define XSP_MODEL_ACCOUNT_PRIVATE_H

#include "base/rows/array.h"
#include "base/rows/tally.h"
#include "model/account/account.h"
#include "timeline/steps.h"

/* Steps are counted in so many slices of the same number of steps, of which pairs become one when all are full. */
#define ACCOUNT_SLICES 24U
struct account_slices {
	double part[ACCOUNT_SLICES]; /* ns, or samples */
};

/* No thread lives for so long: a damaged capture may say so. */
static inline int64_t account_sum(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? (b > 0 ? INT64_MAX : INT64_MIN) : sum;
}

/* What has most of something, if that is more than half of it, and by how much it is ahead of all others: Boyer and Moore's
 * vote. Zero-initialise. */
struct account_lead {
	uint64_t what;
	int64_t ahead;
};

static inline void account_vote(struct account_lead *to, uint64_t what, int64_t much)
{
	if (to->what == what || to->ahead >= much) {
		to->ahead = account_sum(to->ahead, to->what == what ? much : -much);
	} else {
		to->ahead = much - to->ahead;
		to->what = what;
	}
}

/* A thread's time at a place. Samples are counted apart from the time that they share out. */
struct account_cell {
	uint32_t thread; /* index */
	uint8_t kind, why;
	bool paused; /* CPU: in a pause of --max-overhead, where no span was recorded */
	bool sampled; /* ns is 0, and the counts are samples */
	bool touched; /* in the thread's current step */
	uint32_t place, callee;
	struct account_lead peer; /* of its waits' time: 1 + xsp_name_id; 0: none */
	int64_t ns, step_ns, now_ns; /* of all time, of counted steps, of the current one */
	int64_t loop_ns; /* of ns: see struct xsp_account_row */
	uint64_t count, step_count, now_count;
	uint64_t steps, longest_ns;
	struct account_slices *slices; /* owned; NULL: in no step beyond the first ones */
	uint64_t last_step, period; /* the last one that it was in, and the least distance of two */
};

/* A cell's part in one of the first steps, of which the end tells whether they count. */
struct account_part {
	uint32_t cell, step;
	int64_t ns;
	uint64_t count;
};

/* How long a thread computed between waits for answers, by the logarithm of the time. */
struct account_asks {
	uint64_t count[64], ns[64];
};

/* Waits for no lock that one thread ended for another. */
struct account_pass {
	uint32_t waiter, waker; /* indexes */
	uint64_t ns, times;
	uint64_t together; /* times: when it woke others, too */
	uint64_t results_ns; /* of ns: for results */
};

/* A place and the last functions that led to it, of which each one is another. */
#define ACCOUNT_LEVELS 3U
struct account_chain {
	uint32_t thread; /* index */
	uint32_t names[1 + ACCOUNT_LEVELS]; /* 1 + xsp_name_id, the place first; 0: no more */
	uint64_t functions[1 + ACCOUNT_LEVELS]; /* hashes */
	uint64_t ns;
};

struct account_thread {
	uint32_t pid, tid;
	uint32_t family; /* families.c */
	uint64_t group; /* of threads whose names differ in numbers only, whatever their routines */
	struct account_lead
		routine; /* of its stacks: hash of the function that it started in; 0: not known */
	uint64_t ns, paused_ns;
	XSP_ARRAY(uint32_t) touched; /* cells */
	XSP_ARRAY(struct account_part) first;
	uint32_t first_steps, judged;
	uint64_t steps, ended; /* those that count; all that ended */
	uint64_t later, slice; /* ended beyond the first ones; and steps in a slice */
	struct account_asks *asks; /* owned; NULL: it waited for none */
	uint64_t between_ns; /* computed since its last wait for an answer */
	uint64_t woke_ns; /* when it last ended another one's wait; */
	uint32_t last_woken; /* 1 + index of that one */
	bool lock_asked, idle; /* idle: families.c */
	struct xsp_python_lock lock; /* of its process's interpreter; bytes 0: none */
};

struct account_family {
	struct xsp_account_family shown;
	XSP_ARRAY(struct xsp_account_row) rows;
	XSP_ARRAY(struct xsp_account_place) places;
	uint64_t busiest_ns; /* CPU and ready of its busiest member */
	struct account_lead server; /* by their waits for results: 1 + a thread's index */
	struct account_lead waker; /* by all of their waits for no lock */
};

struct xsp_account {
	struct xsp_timeline *timeline;
	struct xsp_capture_reader *reader;
	bool by_samples; /* there are no charges */
	XSP_TALLY(struct account_thread) threads;
	XSP_TALLY(struct account_cell) cells;
	XSP_TALLY(struct account_pass) passes;
	XSP_TALLY(struct account_chain) chains;
	struct account_thread *last;
	XSP_TALLY(struct account_family) families;
	struct xsp_account_family *shown; /* a copy, in the order to show */
	uint8_t *dear; /* by name: 1 + enum xsp_dear_call; 0: not looked at yet */
	size_t dear_capacity;
	struct xsp_u64map
		ports; /* of a process, own or (| 1 << 16) of the peer → the other one, or several */
};

/* collect.c: without charges, the rest of the recording's time is off the CPU. 0 or -ENOMEM. */
int xsp_account_add_off(struct xsp_account *a);
/* callers.c: "train.py:10 cleanup" and "train.py:12 cleanup" are one function. */
uint64_t account_function(const struct xsp_account *a, uint32_t name);
/* 0 or -ENOMEM. `place`: 1 + xsp_name_id; 0: not known. */
int account_count_callers(struct xsp_account *a, const struct account_thread *th, uint32_t place,
			  const struct xsp_own_callers *callers, uint64_t ns);
/* Of the family's places, once they are there. 0 or -ENOMEM. */
int account_find_callers(const struct xsp_account *a, struct account_family *f, uint32_t index);
/* habits.c: a wait for an answer, or one that another thread ended, begins. 0 or -ENOMEM. */
int account_count_ask(struct account_thread *th);
int account_count_waker(struct xsp_account *a, const struct account_thread *th,
			const struct xsp_wait *w);
bool account_is_in_loop(const struct xsp_account *a, const struct xsp_wait *w);
/* After the threads' families and busiest members are known. */
void account_find_habits(struct xsp_account *a);

#endif
