/* SPDX-License-Identifier: BSD-2-Clause */
/* walk.h - a stopped thread's stack: is anything on it that must not be interrupted? */
#ifndef XSP_PLANNER_WALK_H
#define XSP_PLANNER_WALK_H

#include "planner/image.h"
#include "target/unwind.h"

/*
 * xsp_walk_up(), of the mapping that `pc` lies in (for a caller: the return address - 1).
 */
int xsp_walk_step(const struct xsp_image *image, struct xsp_walk *w, uint64_t pc);

/*
 * Does the stack hold a frame of the loader, an allocator, a signal handler, or another banned
 * function? Follows the call frame information; from where
 * that ends (code made at run time) every word of the rest that could be a return address counts.
 */
enum xsp_danger xsp_walk_danger(const struct xsp_image *image, const struct xsp_walk *start);

#endif
