/* SPDX-License-Identifier: BSD-2-Clause */
/* walk.h - is a function on a stopped thread's stack that must not be interrupted? */
#ifndef XSP_PLANNER_WALK_H
#define XSP_PLANNER_WALK_H

#include "planner/image.h"
#include "target/unwind.h"

/* xsp_walk_up() in the file that is mapped at `pc` (for a caller's frame: the return address - 1). */
int xsp_walk_step(const struct xsp_image *image, struct xsp_walk *w, uint64_t pc);

/*
 * Is a frame of the loader, an allocator, a signal handler or another banned function on the stack? Follows the call
 * frame information. Where that ends (code made at run time), counts every word of the rest that may be a return
 * address.
 */
enum xsp_danger xsp_walk_danger(const struct xsp_image *image, const struct xsp_walk *start);

#endif
