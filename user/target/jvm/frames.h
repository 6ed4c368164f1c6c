/* SPDX-License-Identifier: BSD-2-Clause */
/* frames.h - frames of Java on a thread's stack: x86-64. */
#ifndef XSP_TARGET_JVM_FRAMES_H
#define XSP_TARGET_JVM_FRAMES_H

#include "target/jvm/jvm.h"
#include "target/unwind.h"

/* What the interpreter has below a frame's rbp (frame_x86.hpp), in bytes from there on. */
enum {
	XSP_JVM_FRAME_SENDER = -8, /* the stack pointer of the caller */
	XSP_JVM_FRAME_METHOD = -24,
	XSP_JVM_FRAME_BCP = -64, /* saved at calls; meanwhile it is in r13 */
};
#define XSP_JVM_BCP_REGISTER 13

/* One frame up from `code`, in which the thread is at `pc`. `standing`: it is no return address. As xsp_walk_up(). */
int xsp_jvm_up(const struct xsp_jvm *j, const struct xsp_jvm_code *code, uint64_t pc, bool standing,
	       xsp_walk_load_fn load, const void *ctx, struct xsp_walk *w);

#endif
