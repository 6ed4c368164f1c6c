/* SPDX-License-Identifier: BSD-2-Clause */
/* divert.h - one attempt: stop a thread, look, and if it is safe have it make our thread. */
#ifndef XSP_INJECT_THREAD_DIVERT_H
#define XSP_INJECT_THREAD_DIVERT_H

#include "inject/held.h"
#include "inject/reader.h"
#include "inject/thread/stub.h"

struct xsp_attempt {
	const struct xsp_held *held;
	struct xsp_reader *reader;
	pid_t tid;
	struct xsp_stub_data stub; /* filled in but for what depends on the thread */
	uint64_t code; /* where the blob goes: struct xsp_stub_data, then code */
	unsigned die_at; /* struct xsp_inject_options */
	/* results */
	const char *danger; /* -EAGAIN: why the thread was not used; constant text */
	const char *failed; /* other errors: what went wrong; constant text */
	bool code_written; /* the blob is in the target */
	bool code_free; /* and no thread can be in it (but for the new one) */
	uint64_t stopped_ns;
};

/*
 * Runs in a thread of its own and waits for it. 0: the new thread exists. -EAGAIN: try another
 * thread, or later; nothing was changed. Other errors: give up; the thread goes on in any case.
 * -ESRCH: the thread has ended.
 */
int xsp_divert(struct xsp_attempt *a);

/* Size of the blob. */
size_t xsp_divert_size(void);
/* Puts zeros where the blob was. */
int xsp_divert_erase(const struct xsp_held *held, uint64_t code);

#endif
