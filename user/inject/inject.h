/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject.h - `--inject`: loads a library into a running process and calls one function of it.
 *
 * How (docs/injection.md has more):
 *   1. Stop a thread of the target where it holds no lock of the allocator or the loader, and where we know exactly how
 *   it goes on (thread/safe.c).
 *   2. Divert it, by one write of its registers, into a stub in unused bytes behind the code of libc or the like. The
 *   stub makes one thread with pthread_create, restores everything and resumes the interrupted instruction. It needs no
 *   tracer for that: if we are killed at any moment, the process runs on (thread/stub_x86_64.c).
 *   3. The new thread blocks all signals and does the slow work on our orders: memfd_create, dlopen, the entry
 *   function. Then it unmaps what the stub had mapped, and ends. Without an order for five seconds it ends as well.
 *   4. Restore the bytes of the stub.
 * No thread of the application waits for a lock of the loader, or longer than it takes to make a thread.
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
	const char *entry; /* an exported `int f(void)` that is called once; NULL: none */
	/* reads the process's files, without rights: planner/image_serve.h */
	xsp_image_serve_fn *serve_image;
	/* the process, so that we never touch another with its number; 0: whichever has the number */
	int pidfd;
	unsigned timeout_ms; /* for all of it; 0: 20 s */
	unsigned
		moment_ms; /* for a safe moment, once the files are read; 0: as long as for all of it */
	/* Polled during waits: true (Ctrl-C) ends the injection as the timeout does. May be NULL. */
	bool (*stop)(void *ctx);
	/* Gets one line about what takes long, such as a wait for a thread that can be stopped. May be NULL. A thread
	 * of xsp_inject() calls both while the caller waits. */
	void (*note)(void *ctx, const char *text);
	void *ctx;
	bool force_memfd; /* tests: copy the file, as if the target could not see it */
	pid_t only_tid; /* tests: use only this thread; 0: any */
	/* Tests: where the tracer kills itself. 1: as the thread is diverted; 2: when the new thread exists; 3: between
	 * signal mask and registers; 4: before the thread is released; 5: it does not, but waits 100 ms before it
	 * restores the thread; 0: nowhere. */
	unsigned die_at;
};

struct xsp_inject_result {
	pid_t tid; /* the thread that was diverted */
	unsigned tries; /* threads that were stopped, up to the one that was safe */
	uint64_t stopped_ns; /* how long that thread was kept from its work */
	uint64_t total_ns;
	bool memfd; /* a copy in memory was loaded, as the target cannot see the file */
	bool cleaned; /* false: a page or some unused bytes are left behind */
	int entry_value; /* what the entry function returned */
};

/*
 * Injects. 0: done; 1: a library with the same build id is there already, and nothing was done; a negative errno and
 * `err`: refused or failed. If it is refused, the target is untouched: -ENOTSUP: it cannot be done safely; -EPERM: no
 * permission; -ETIMEDOUT: no safe moment came; -EINTR: `stop` said so. The target goes on in every case, and the
 * library stays until it ends. `result` may be NULL. Takes at most timeout_ms. x86-64 only.
 */
int xsp_inject(pid_t pid, const struct xsp_inject_options *options,
	       struct xsp_inject_result *result, struct xsp_error *err);

#endif
