/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_waits_private.h - what collecting waits and reporting them share. */
#ifndef XSP_ANALYSIS_SUMMARY_WAITS_PRIVATE_H
#define XSP_ANALYSIS_SUMMARY_WAITS_PRIVATE_H

#include "analysis/waits/summary_waits.h"
#include "base/rows/tally.h"
#include "report/list.h"

#define GAP_SPOTS 4
#define GAPS_SHOWN 3
#define GAPS_KEPT 64 /* later spans of other stacks may end some */

/* A place where threads waited: see struct xsp_wait. */
struct spot {
	uint32_t owner; /* index of a member or of a lock */
	bool of_lock;
	uint8_t why;
	uint32_t place, inside, kernel;
	uint64_t ns, times;
};

/* A thread, and what it did since its last span. */
struct member {
	uint32_t pid, tid;
	uint64_t spans;
	uint64_t span_end_ns; /* latest end of an outermost span, on any row; 0: no span yet */
	uint64_t waited_ns; /* end of the last wait outside spans since then */
	uint64_t gap_end_ns; /* end of its last gap */
	uint64_t blocked_ns[XSP_WAIT_CLASSES]; /* since then; RUNNABLE: all time it was runnable */
	struct spot spots[GAP_SPOTS]; /* since then; the first places only */
};

struct gap {
	uint32_t tid;
	uint64_t start_ns, end_ns, waited_ns; /* waited_ns: end of the last wait in it */
	uint64_t blocked_ns[XSP_WAIT_CLASSES];
	struct spot spot; /* where it waited longest; place 0: not known */
};

struct lock {
	uint64_t address;
	uint32_t pid;
	bool owned; /* its holder was known at least once */
	/* For Python's lock (GIL): offset from the address to where those wait whom the holder
	 * wakes when it lets the lock go. 0: another lock. */
	uint32_t python;
	uint64_t waits, ns;
	/* Time whose place is known; the part with xsp_wait.python_lock. */
	uint64_t placed_ns, python_ns;
	uint64_t longest_ns, longest_left_ns; /* the longest wait; when it began */
};

/* A thread that held a lock while others waited, woke the waiters, or waited. */
enum role { HOLDER, WAKER, WAITER };
struct person {
	uint32_t lock, tid;
	enum role role;
	uint64_t ns, times, longest_ns;
};

static inline uint64_t xsp_waits_person_key(uint32_t lock, enum role role, uint32_t tid)
{
	return ((uint64_t)lock << 2 | role) << 32 | tid;
}

struct xsp_summary_waits {
	struct xsp_timeline *timeline;
	uint64_t start_ns; /* start of the capture, for reports */
	XSP_TALLY(struct member) members; /* by pid and tid */
	struct gap gaps[GAPS_KEPT]; /* the longest first */
	size_t gap_count;
	XSP_TALLY(struct lock) locks; /* by pid and address */
	uint64_t locks_left_out_ns; /* waits for locks over the limit */
	XSP_TALLY(struct person) people; /* by lock, role and tid */
	XSP_TALLY(struct spot) spots; /* by owner, reason and place */
};

/* "12 waits (3.00 ms) were for more locks than are followed; ..."; false: all are followed. */
#define XSP_WAITS_LEFT_OUT 400
bool xsp_waits_left_out(const struct xsp_summary_waits *w, char out[XSP_WAITS_LEFT_OUT]);

/* Where that member, or the waiters of that lock, waited, the longest first. Returns how many. */
size_t xsp_waits_spots(const struct xsp_summary_waits *w, uint32_t owner, bool of_lock,
		       const struct spot **spots);
/* The same for a thread. */
size_t xsp_waits_thread_spots(const struct xsp_summary_waits *w,
			      const struct xsp_timeline_thread *t, const struct spot **spots);
/* Finds the index of the thread's member; false: it had no span and no wait of its own. */
bool xsp_waits_member(const struct xsp_summary_waits *w, const struct xsp_timeline_thread *t,
		      uint32_t *out);
/* The number of the thread's spans. */
uint64_t xsp_waits_spans(const struct xsp_summary_waits *w, const struct xsp_timeline_thread *t);
/* Rows: struct xsp_thread_times, lock, person, gap and spot. Owner: a struct xsp_summary_waits. */
extern const struct xsp_list xsp_waits_threads, xsp_waits_threads_narrow, xsp_waits_lock_list;
extern const struct xsp_list xsp_waits_people[]; /* by role: HOLDER or WAKER */
extern const struct xsp_list xsp_waits_gaps, xsp_waits_places;
/* Time in a gap in which the thread was not blocked. */
static inline uint64_t xsp_waits_gap_running(const struct gap *g)
{
	const uint64_t all = g->end_ns - g->start_ns;
	uint64_t off = 0;

	for (size_t i = 0; i < XSP_WAIT_CLASSES; i++)
		off += g->blocked_ns[i];
	return all > off ? all - off : 0;
}
/* Call it after all spans and waits, and before the functions below. */
void xsp_waits_end(struct xsp_summary_waits *w);
/* The thread that spent longest in that role at the lock, other than `but` (0: whichever); NULL: none is known. */
const struct person *xsp_waits_person(const struct xsp_summary_waits *w, const struct lock *lock,
				      enum role role, uint32_t but);
/* "comm (tid)", with the tid that the process sees. Returns the columns it takes. */
size_t xsp_waits_thread(const struct xsp_timeline *t, uint32_t tid, char *out, size_t size);
/* "poll 2.91 s (30), lock 12 ms (4)": the longest first, at most `most`. `counts` may be NULL. */
void xsp_waits_reasons(const uint64_t *ns, const uint64_t *counts, size_t most, char *out,
		       size_t size);
/* Locks with a holder come first, then the longest. The caller frees it. NULL: out of memory. */
const struct lock **xsp_waits_locks(const struct xsp_summary_waits *w);

#endif
