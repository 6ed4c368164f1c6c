/* SPDX-License-Identifier: BSD-2-Clause */
/* divert.h - one attempt: stops a thread, looks whether it is safe, and has it make our thread. */
#ifndef XSP_INJECT_THREAD_DIVERT_H
#define XSP_INJECT_THREAD_DIVERT_H

#include "inject/held.h"
#include "inject/reader.h"
#include "inject/thread/stub.h"

struct xsp_attempt {
	const struct xsp_held *held;
	struct xsp_reader *reader;
	pid_t tid;
	struct xsp_stub_data stub; /* complete but for what depends on the thread */
	uint64_t code; /* where the blob goes (thread/stub.h) */
	unsigned die_at; /* struct xsp_inject_options */
	/* results */
	const char *danger; /* with -EAGAIN: why the thread was not used; constant text */
	const char *failed; /* with other errors: what went wrong; constant text */
	bool code_written; /* the blob is in the target */
	bool code_free; /* no thread runs in it, but perhaps the new one */
	uint64_t stopped_ns;
};

/*
 * Works in a thread of its own and waits for it. 0: the new thread exists. -EAGAIN: nothing was changed, try another
 * thread, or later. Other errors: give up; the target's thread goes on. -ESRCH: it has ended.
 */
int xsp_divert(struct xsp_attempt *a);

size_t xsp_divert_size(void);
/* Writes zeros over the blob. */
int xsp_divert_erase(const struct xsp_held *held, uint64_t code);

#endif
