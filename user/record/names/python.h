/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python.h - names for the Python frames in stacks. A code object means nothing once its process or it is gone, so
 * file, line and function of each frame go into the capture, once.
 */
#ifndef XSP_RECORD_PYTHON_H
#define XSP_RECORD_PYTHON_H

#include <stdint.h>
#include <sys/types.h>

#include "target/process.h"
#include "target/python/python.h"

struct xsp_pythons;
struct xsp_recorder;

int xsp_pythons_new(struct xsp_recorder *r, struct xsp_pythons **out);
void xsp_pythons_free(struct xsp_pythons *s); /* NULL is allowed */

/* The process maps a file with an interpreter: its frames are read from now on. Repeated calls do nothing. 0 or
 * -ENOMEM; reports what it cannot do. */
int xsp_pythons_found(struct xsp_pythons *s, pid_t pid, const struct xsp_python_runtime *runtime,
		      const struct xsp_mapped_file *file);
/* It has ended, or become another program. */
void xsp_pythons_forget(struct xsp_pythons *s, pid_t pid);

/* The process has an agent that reads its stacks as well. */
void xsp_pythons_tell(struct xsp_pythons *s, pid_t pid);

/* A stack that is new (xsp_drain_options.python); ctx: the recorder. */
int xsp_pythons_see(void *ctx, const struct xsp_event_python *e);
/* Publishes interpreters that have begun meanwhile, and checks whether code objects still exist: some each time. */
int xsp_pythons_turn(struct xsp_pythons *s);
/* A flight recorder drops what no event needs any more. A name will come again with a stack that has it; false: none had
 * it. Of stacks none is known to the kernel side from the next turn on, so that each comes again. */
bool xsp_pythons_forget_name(struct xsp_pythons *s, uint64_t hash);
void xsp_pythons_renew(struct xsp_pythons *s);
/* How many stacks the kernel side could not read, in all. */
void xsp_pythons_count_torn(struct xsp_pythons *s, uint64_t torn);
int xsp_pythons_put_info(struct xsp_pythons *s);

#endif
