/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * java.h - names for frames of Java in processes that run HotSpot. Compiled functions are in memory of no file, and interpreted
 * ones share their code. The resolver gets an address for each line of a function, which stands for it in stacks
 * ("Shop.java:12 Shop.price").
 */
#ifndef XSP_RECORD_JAVA_H
#define XSP_RECORD_JAVA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/broker.h"
#include "target/jvm/frames.h"
#include "target/resolve.h"

struct xsp_java;

/* Both are borrowed. 0 or -ENOMEM. */
int xsp_java_new(struct xsp_broker *b, struct xsp_resolver *r, struct xsp_java **out);
void xsp_java_free(struct xsp_java *j);

/* The process was learned to map these files: looks early whether one is a JVM. */
void xsp_java_meet(struct xsp_java *j, pid_t pid, const struct xsp_mapped_files *mapped);

/* Code of a JVM on a stack. */
struct xsp_java_frame {
	const struct xsp_jvm *jvm;
	struct xsp_jvm_code code;
	size_t count; /* 0: no name is known */
	uint64_t functions[XSP_JVM_INLINED]; /* what stands for these, the innermost one first */
};

/* The frame `w` with code at `pc`; false: it is of no JVM. `out` is valid until the next call but xsp_jvm_up(). */
bool xsp_java_frame(struct xsp_java *j, pid_t pid, uint64_t pc, bool standing,
		    xsp_walk_load_fn load, const void *ctx, const struct xsp_walk *w,
		    struct xsp_java_frame *out);
/* The process has ended, or runs another program. */
void xsp_java_forget(struct xsp_java *j, pid_t pid);

#endif
