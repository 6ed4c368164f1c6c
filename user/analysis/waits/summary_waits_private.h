/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_waits_private.h - what collecting waits and telling of them share. */
#ifndef XSP_ANALYSIS_SUMMARY_WAITS_PRIVATE_H
#define XSP_ANALYSIS_SUMMARY_WAITS_PRIVATE_H

#include "analysis/waits/summary_waits.h"
#include "base/rows/tally.h"
#include "report/list.h"

#define GAP_SPOTS 4
#define GAPS_SHOWN 3
#define GAPS_KEPT 64 /* spans that are told later, of other stacks, may lie in some */

/* Where threads waited: struct xsp_wait. */
struct spot {
	uint32_t owner; /* index of a member, or of a lock */
	bool of_lock;
	uint8_t why;
	uint32_t place, inside, kernel;
	uint64_t ns, times;
};

/* A thread, and its time since a span was open on it. */
struct member {
	uint32_t pid, tid;
	uint64_t spans;
	uint64_t span_end_ns; /* latest one of the outermost, on any row; 0: there was none */
	uint64_t waited_ns; /* end of the last wait in no span since then */
	uint64_t gap_end_ns; /* of the last gap that it had */
	uint64_t blocked_ns[XSP_WAIT_CLASSES]; /* since then; RUNNABLE: all it was runnable */
	struct spot spots[GAP_SPOTS]; /* since then, the first ones */
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
	uint32_t
		python; /* of Python's lock (GIL): bytes from the address on at which those wait whom the holder wakes
			  * when it lets go; 0: it is another */
	uint64_t waits, ns;
	uint64_t placed_ns, python_ns; /* where is known; of that: xsp_wait.python_lock */
	uint64_t longest_ns, longest_left_ns; /* and when it began */
};

/* Who held a lock while others waited, let them go on, or waited. */
enum role { HOLDER, WAKER, WAITER };
struct person {
	uint32_t lock, tid;
	enum role role;
	uint64_t ns, times, longest_ns;
};

struct xsp_summary_waits {
	struct xsp_timeline *timeline;
	uint64_t start_ns; /* of the capture; for reports */
	XSP_TALLY(struct member) members; /* by pid and tid */
	struct gap gaps[GAPS_KEPT]; /* the longest first */
	size_t gap_count;
	XSP_TALLY(struct lock) locks; /* by pid and address */
	uint64_t locks_left_out_ns; /* waits at those that are not followed */
	XSP_TALLY(struct person) people; /* by lock, role and tid */
	XSP_TALLY(struct spot) spots; /* by owner, reason and place */
};

/* "12 waits (3.00 ms) were for more locks than are followed; ..."; false: all are followed. */
#define XSP_WAITS_LEFT_OUT 400
bool xsp_waits_left_out(const struct xsp_summary_waits *w, char out[XSP_WAITS_LEFT_OUT]);

/* Where that member, or that lock's waiters, waited, the longest first: how many places. */
size_t xsp_waits_spots(const struct xsp_summary_waits *w, uint32_t owner, bool of_lock,
		       const struct spot **spots);
/* The same of a thread. */
size_t xsp_waits_thread_spots(const struct xsp_summary_waits *w,
			      const struct xsp_timeline_thread *t, const struct spot **spots);
/* Index of the member; false: it showed no span, and no wait of its own. */
bool xsp_waits_member(const struct xsp_summary_waits *w, const struct xsp_timeline_thread *t,
		      uint32_t *out);
/* Spans that a thread showed. */
uint64_t xsp_waits_spans(const struct xsp_summary_waits *w, const struct xsp_timeline_thread *t);
/* Rows of struct xsp_thread_times, lock, person, gap and spot, of struct xsp_summary_waits. */
extern const struct xsp_list xsp_waits_threads, xsp_waits_threads_narrow, xsp_waits_lock_list;
extern const struct xsp_list xsp_waits_people[]; /* by their role: HOLDER or WAKER */
extern const struct xsp_list xsp_waits_gaps, xsp_waits_places;
/* What is left of a gap. */
static inline uint64_t xsp_waits_gap_running(const struct gap *g)
{
	const uint64_t all = g->end_ns - g->start_ns;
	uint64_t off = 0;

	for (size_t i = 0; i < XSP_WAIT_CLASSES; i++)
		off += g->blocked_ns[i];
	return all > off ? all - off : 0;
}
/* After all spans and waits, before any of the others here. */
void xsp_waits_end(struct xsp_summary_waits *w);
/* Who had to do longest with it in that role; NULL: nobody is known. */
const struct person *xsp_waits_person(const struct xsp_summary_waits *w, const struct lock *lock,
				      enum role role);
/* "comm (tid)" as the process sees it: columns that are shown. */
size_t xsp_waits_thread(const struct xsp_summary_waits *w, uint32_t tid, char *out, size_t size);
/* "poll 2.91 s (30), lock 12 ms (4)": what took most first, at most `most` of them. `counts` may be NULL. */
void xsp_waits_reasons(const uint64_t *ns, const uint64_t *counts, size_t most, char *out,
		       size_t size);
/* Those with a holder first, then the longest. NULL: no memory; the caller frees it. */
const struct lock **xsp_waits_locks(const struct xsp_summary_waits *w);

#endif
