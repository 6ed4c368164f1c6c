/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject.h - `--inject`: loads a library into a running process and calls one function of it.
 *
 * How (DESIGN.md sections 1 and 7; docs/injection.md has it in words):
 *   1. A thread of the target is stopped where it holds no lock of the allocator or the loader, and
 *      its way on is known exactly (safe.c).
 *   2. It is diverted, by one write of its registers, into a stub in unused bytes behind the code of
 *      libc or the like. The stub makes one thread with pthread_create, puts everything back and
 *      goes on at the interrupted instruction, needing no tracer for it: a tracer killed at any
 *      moment leaves a process that runs on (stub_x86_64.c).
 *   3. The new thread, with all signals blocked, does the slow work (memfd_create, dlopen, the entry
 *      function) as it is told, unmaps what the stub had mapped, and ends. If nobody tells it
 *      anything for five seconds it ends as well.
 *   4. The bytes of the stub are put back.
 * No thread of the application waits for a lock that the loader holds, or longer than the making
 * of a thread takes.
 */
#ifndef XSP_INJECT_INJECT_H
#define XSP_INJECT_INJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "inject/questions.h"

struct xsp_inject_options {
	const char *library; /* as we see it */
	const char *entry; /* an exported `int f(void)`, called once; NULL: none */
	/* reads the process's files, without rights: planner/image_serve.h */
	xsp_image_serve_fn *serve_image;
	int pidfd; /* the process: whoever else has its number is left alone; 0: whoever has it */
	unsigned timeout_ms; /* for all of it; 0: 20 s */
	/* Polled while waiting: true ends the injection as the timeout does (Ctrl-C). May be NULL. */
	bool (*stop)(void *ctx);
	/* One line on what is going on, e.g. a long wait for a thread that can be stopped. May be
	 * NULL. Both are called from a thread of xsp_inject's own, while the caller waits. */
	void (*note)(void *ctx, const char *text);
	void *ctx;
	bool force_memfd; /* tests: as if the target could not see the file */
	pid_t only_tid; /* tests: no other thread; 0: any */
	/* tests: the tracer kills itself: 1 as the thread is diverted, 2 as the new thread exists, 3
	 * between the signal mask and the registers, 4 before the thread is let go; 5: it does not,
	 * but rests for 100 ms before it restores the thread; 0: none of these */
	unsigned die_at;
};

struct xsp_inject_result {
	pid_t tid; /* the thread that was diverted */
	unsigned tries; /* threads that were stopped until one was safe */
	uint64_t stopped_ns; /* how long that thread was kept from its work */
	uint64_t total_ns;
	bool memfd; /* the target cannot see the file: a copy in memory was loaded */
	bool cleaned; /* false: a page or some dead bytes had to be left behind */
	int entry_value; /* what the entry function returned */
};

/*
 * Injects. Returns 0; 1 when a library with the same build id is there already (nothing was done);
 * a negative errno and `err` when it was refused or failed. Refused, with the target untouched, if
 * it cannot be done safely: -ENOTSUP; no permission: -EPERM; no safe moment came: -ETIMEDOUT or, by
 * `stop`, -EINTR. In every case the target goes on. The library stays until the process ends.
 * `result` may be NULL. Blocks up to timeout_ms. x86-64 only.
 */
int xsp_inject(pid_t pid, const struct xsp_inject_options *options,
	       struct xsp_inject_result *result, struct xsp_error *err);

#endif
