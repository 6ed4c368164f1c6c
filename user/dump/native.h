/* SPDX-License-Identifier: BSD-2-Clause */
/* native.h - a thread's native stack, unwound from its registers through a copy of its stack, and named. */
#ifndef XSP_DUMP_NATIVE_H
#define XSP_DUMP_NATIVE_H

#include "dump/dump.h"
#include "dump/space.h"
#include "target/unwind.h"

/* What was taken of a thread. */
struct xsp_thread_snapshot {
	struct xsp_walk registers; /* nothing known: no stack to unwind */
	uint64_t stack_bytes;
	uint8_t *stack; /* from the stack pointer up */
};

/* Fills the native members of *out. 0 or -ENOMEM. */
int xsp_native_stack(struct xsp_space *s, const struct xsp_thread_snapshot *t,
		     struct xsp_arena *arena, struct xsp_dump_thread *out);

#endif
