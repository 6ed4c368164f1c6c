/* SPDX-License-Identifier: BSD-2-Clause */
/* spans.h - shared by the files of spans/: the mechanics of rows, and the rules of pairing. */
#ifndef XSP_TIMELINE_SPANS_H
#define XSP_TIMELINE_SPANS_H

#include "catalog/relay.h"
#include "timeline/timeline_private.h"

/* Two stack pointers farther apart count as different stacks if nothing else decides. */
#define XSP_FAR ((uint64_t)256 << 10)
/* An unwind mark reaches so far below itself: a whole default stack. */
#define XSP_UNWIND_REACH ((uint64_t)8 << 20)

#define XSP_MAX_ROWS 1024U /* of a thread */
#define XSP_MAX_DEPTH (1U << 20) /* open spans on a row */
#define XSP_MAX_PARKED 64U /* runs of a thread that shows one stack */
#define XSP_MAX_PARKED_MANY 512U /* the same for several stacks */
#define XSP_MAX_FAR_ENDS 4096U

/* ---- rows.c: the mechanics; each 0 or a negative errno ---- */

/* A span's ancestors. Only the names of the outermost `prefix` ones are known. */
struct around {
	struct open_span *spans; /* the others */
	const xsp_name_id *names; /* of all, outermost first, and then the span's own */
	size_t prefix, depth;
	uint64_t kept_parent; /* id of the prefix's innermost one that -e keeps; 0: none */
};
/* Hands a span to the sinks and counts it; drops its details. */
int xsp_emit(struct xsp_timeline *t, const struct thread *th, uint32_t row,
	     const struct open_span *s, uint64_t end_ns, uint32_t flags, const struct around *a);
int xsp_row_get(struct xsp_timeline *t, struct thread *th, uint32_t index, struct row **out);
/* An empty row on which nothing happened after start_ns; -E2BIG if there are too many rows. */
int xsp_row_free_since(struct xsp_timeline *t, struct thread *th, uint64_t start_ns,
		       struct row **out);
int xsp_row_push(struct xsp_timeline *t, struct row *row, const struct open_span *s);
/* Closes the innermost span. */
int xsp_row_pop(struct xsp_timeline *t, struct thread *th, struct row *row, uint64_t end_ns,
		uint32_t flags);
/* The same one by one, until `count` are left. */
int xsp_row_pop_to(struct xsp_timeline *t, struct thread *th, struct row *row, size_t count,
		   uint64_t end_ns, uint32_t flags);
/* Closes the span at `i`. It gets a row of its own if others are above it, or were later than its
 * end. */
int xsp_row_remove(struct xsp_timeline *t, struct thread *th, struct row *row, size_t i,
		   uint64_t end_ns, uint32_t flags);
/* Index of the outermost span with limit <= x (count if none). */
size_t xsp_row_below(const struct row *row, uint64_t x);
/* Moves spans [from, count) of the row to a parked run. */
int xsp_park(struct xsp_timeline *t, struct thread *th, struct row *row, size_t from, uint64_t now,
	     bool far, bool marked);
/* The spans of parked run `which` from `i` on are gone. The rest stays; an empty run is removed. */
int xsp_parked_gone(struct xsp_timeline *t, struct thread *th, size_t which, size_t i);
/* Its spans from `from` on become a parked run of their own. */
int xsp_parked_split(struct xsp_timeline *t, struct thread *th, size_t which, size_t from);
/* Returns the run to its row, or to a free one, which becomes the current one. */
int xsp_parked_resume(struct xsp_timeline *t, struct thread *th, size_t which, struct row **out);
/* Closes everything open or parked in a thread: thread exit, exec, end of the run. */
int xsp_thread_close(struct xsp_timeline *t, struct thread *th, uint64_t end_ns, uint32_t flags);

void xsp_path_cut(struct row *row, size_t level);

/* ---- choose.c: which stack of a thread, and what an event proves about its open spans ---- */

/* The row of an event at stack pointer x. */
int xsp_choose_row(struct xsp_timeline *t, struct thread *th, uint64_t x, struct row **out);
/* Spans [0, below) of a parked run come back: their row. */
int xsp_resume_for(struct xsp_timeline *t, struct thread *th, size_t which, size_t below,
		   struct row **row);
/* A span is gone when its slot is used again; deeper ones are passed over. */
int xsp_slot_reused(struct xsp_timeline *t, struct thread *th, struct row *row, size_t i,
		    uint64_t now);
/* The same for spans that are parked or on other rows. */
int xsp_slot_reused_elsewhere(struct xsp_timeline *t, struct thread *th, const struct row *row,
			      uint64_t x, uint64_t now);
/* An event has passed over the spans at or below x; there is at least one. */
int xsp_pass_over(struct xsp_timeline *t, struct thread *th, struct row *row, uint64_t x,
		  uint64_t now);

static inline int xsp_row_for(struct xsp_timeline *t, struct thread *th, uint64_t x,
			      struct row **out)
{
	*out = th->rows[th->current];
	if (!th->many_stacks && th->parked_count == 0)
		return 0;
	return xsp_choose_row(t, th, x, out);
}

static inline int xsp_settle(struct xsp_timeline *t, struct thread *th, struct row *row, uint64_t x,
			     uint64_t now)
{
	if (row->count == 0 || row->spans[row->count - 1].limit > x)
		return 0;
	return xsp_pass_over(t, th, row, x, now);
}

/* ---- calls.c: entries and exits of functions ---- */

/* All members: otherwise all of it is set to 0 first, which takes longer. */
static inline struct open_span xsp_begun_by(const struct xsp_event *e, uint64_t limit,
					    xsp_name_id name)
{
	return (struct open_span){
		.sp = e->sp,
		.limit = limit,
		.start_ns = e->time_ns,
		.event_ns = 0,
		.child = {0, 0},
		.same = {0, 0},
		.has_same = false,
		.probe_ns = 0,
		.self_probe_ns = 0,
		.off_ns = 0,
		.serial = 0,
		.probe = e->probe,
		.name = name,
		.text = 0,
		.range = false,
		.relay = XSP_RELAY_NONE,
		.passed = false,
		.let_go = false,
		.python = NULL,
		.python_first = 0,
		.python_calls = false,
		.place = 0,
		.in_step = false,
		.details = NULL,
	};
}

/* Opens the span *s that `e` begins on the row; xsp_begun_by() and what else is known made it. Owns
 * its details. */
int xsp_open_span(struct xsp_timeline *t, struct thread *th, struct row *row,
		  const struct xsp_event *e, struct open_span *s);
int xsp_pair_entry(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e);
int xsp_pair_exit(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e);
int xsp_pair_point(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e);
/* `e` is the thread's next event (NULL: there is none): decides what the last exit left open. */
int xsp_pair_last_exit(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e);

/* ---- ranges.c: their begins, names and ends ---- */

int xsp_pair_begin(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e);
int xsp_pair_label(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e);
int xsp_pair_end(struct xsp_timeline *t, struct thread *th, const struct xsp_event *e);

#endif
