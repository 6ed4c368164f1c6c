/* SPDX-License-Identifier: BSD-2-Clause */
/* python.h - the Python frames of a process's threads. */
#ifndef XSP_DUMP_PYTHON_H
#define XSP_DUMP_PYTHON_H

#include "dump/dump.h"
#include "dump/space.h"
#include "target/python/python.h"

struct xsp_dump_interpreter;

/* Finds the interpreter and its threads. *out NULL: there is none, or *why says why it cannot be read. 0 or -ENOMEM. */
int xsp_dump_interpreter_open(struct xsp_space *space, const char *exe, size_t threads,
			      struct xsp_dump_interpreter **out, struct xsp_error *why);
void xsp_dump_interpreter_close(struct xsp_dump_interpreter *i); /* NULL is allowed */

/* As it was read. */
struct xsp_python_raw {
	size_t count;
	uint32_t flags; /* enum xsp_python_flag */
	bool unsure; /* it is not known which interpreter the thread runs */
	struct xsp_python_frame frames[XSP_DUMP_PYTHON_MAX];
	uint32_t codes[XSP_DUMP_PYTHON_MAX];
};

/* False: the thread runs no Python. `ns_tid`: as the process sees it; `sp`: its stack pointer, 0: not known. Reads the
 * code objects as well, so that they have names even if they go. */
bool xsp_dump_interpreter_stack(struct xsp_dump_interpreter *i, pid_t ns_tid, uint64_t sp,
				struct xsp_python_raw *out);
/* Does the futex at that address belong to the lock for running Python? *holder: its holder, as the process sees it; 0:
 * none. */
bool xsp_dump_interpreter_gil(const struct xsp_dump_interpreter *i, uint64_t address,
			      uint32_t *holder);
/* Fills the Python members of *out. 0 or -ENOMEM. */
int xsp_dump_interpreter_name(struct xsp_dump_interpreter *i, const struct xsp_python_raw *raw,
			      struct xsp_arena *arena, struct xsp_dump_thread *out);

#endif
