/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thread_rows.h - the rows of a trace and the numbers that outputs show for them. A row is one stack: a thread's own
 * (number 0), or another stack that the thread ran on (fiber, sigaltstack). Readers know only pid and tid, so further
 * stacks get tids of their own, from XSP_FIBER_TID up: above any Linux thread id (at most 2^22) and within int32. Ids
 * are those that the target sees. If two processes of different pid namespaces have the same number there, both have
 * their ids of the root namespace.
 */
#ifndef XSP_MODEL_THREAD_ROWS_H
#define XSP_MODEL_THREAD_ROWS_H

#include "model/view.h"

#define XSP_FIBER_TID 0x20000001U

struct xsp_thread_row {
	uint32_t root_pid, root_tid, number; /* as in struct xsp_span */
	uint32_t pid, tid; /* as shown */
	uint32_t thread_tid; /* as shown: of the thread, also for number > 0 */
	uint32_t index; /* of xsp_thread_rows_at */
	bool first_of_process;
	uint64_t last_ns; /* the format's: 0 at first */
	char text[96]; /* the format's: empty at first */
	unsigned text_length;
	uint64_t short_ns; /* the format's: 0 at first */
};

struct xsp_thread_rows;

int xsp_thread_rows_new(struct xsp_view *v, struct xsp_thread_rows **out);
void xsp_thread_rows_free(struct xsp_thread_rows *r); /* NULL is allowed */

/* The row of a span, made when it is new; NULL: no memory. Valid until free. */
struct xsp_thread_row *xsp_thread_rows_get(struct xsp_thread_rows *r, const struct xsp_span *span);

/* The same by the thread's numbers: row 0. */
static inline struct xsp_thread_row *xsp_thread_rows_of(struct xsp_thread_rows *r, uint32_t pid,
							uint32_t tid, uint32_t number)
{
	return xsp_thread_rows_get(r, &(struct xsp_span){.pid = pid, .tid = tid, .row = number});
}

/* All rows so far, the oldest first. */
size_t xsp_thread_rows_count(const struct xsp_thread_rows *r);
struct xsp_thread_row *xsp_thread_rows_at(const struct xsp_thread_rows *r, size_t index);

/* The number that outputs show for a process (root pid). */
uint32_t xsp_thread_rows_pid(const struct xsp_thread_rows *r, uint32_t root_pid);

/* Do outputs show ids of the root namespace for this process (root pid), because its own are taken? */
bool xsp_thread_rows_uses_root_ids(const struct xsp_thread_rows *r, uint32_t root_pid);

/* Last known name of a thread (root tid); "" if none. Valid until the timeline goes on. */
const char *xsp_thread_rows_comm(const struct xsp_view *v, uint32_t pid, uint32_t tid);

#endif
