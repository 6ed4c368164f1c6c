/* SPDX-License-Identifier: BSD-2-Clause */
/* states.h - --waits as successive states: when a thread ran, could have run, and was blocked. */
#ifndef XSP_MODEL_STATES_H
#define XSP_MODEL_STATES_H

#include "model/rows/thread_rows.h"

/* The number of the row of a thread's states (struct xsp_thread_row). */
#define XSP_STATES_ROW UINT32_MAX

enum xsp_state {
	XSP_STATE_RUNNING,
	XSP_STATE_RUNNABLE, /* woken, but others ran */
	XSP_STATE_PREEMPTED, /* the same, without a wait */
	XSP_STATE_BLOCKED,
	XSP_STATES
};

struct xsp_state_slice {
	enum xsp_state state;
	uint64_t start_ns, end_ns;
	bool finished; /* it ended before the recording */
	uint64_t short_ns; /* RUNNING: total of waits too short for an event */
	const struct xsp_wait *wait; /* NULL: RUNNING */
};

typedef int (*xsp_state_fn)(void *ctx, struct xsp_thread_row *row, const struct xsp_state_slice *s);

/* "Running", "Runnable", "Preempted", "Blocked". */
const char *xsp_state_name(enum xsp_state state);
/* The same with the reason: "Blocked: lock". */
#define XSP_STATE_TEXT 48
void xsp_state_text(const struct xsp_state_slice *s, char text[XSP_STATE_TEXT]);

/* Calls `fn` with what is known as of the wait, in order of time on `row`: the thread's row XSP_STATES_ROW, whose
 * last_ns and short_ns it uses. 1; 0: nothing is known (short waits, or no real one); or a negative value of `fn`. */
int xsp_states_wait(const struct xsp_timeline *t, struct xsp_thread_row *row,
		    const struct xsp_wait *w, xsp_state_fn fn, void *ctx);
/* After the run: up to the end of each thread of `rows`. */
int xsp_states_end(const struct xsp_timeline *t, struct xsp_thread_rows *rows, xsp_state_fn fn,
		   void *ctx);

#endif
