/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frames.h - names for the return addresses in stacks. An address means nothing once its process is gone, so its
 * function's name goes into the capture, once, like a range's.
 */
#ifndef XSP_RECORD_FRAMES_H
#define XSP_RECORD_FRAMES_H

#include "capture/capture.h"
#include "record/names/sources.h"
#include "target/resolve.h"

struct xsp_frames;

/* Different addresses. A program's code has some hundred thousand call sites at most; garbage, without frame pointers,
 * must not fill the memory. */
#define XSP_FRAMES_MAX (1U << 20)

/* All are borrowed; `sources` is asked about the addresses that get names. */
int xsp_frames_new(struct xsp_capture_writer *writer, struct xsp_resolver *resolver,
		   struct xsp_sources *sources, struct xsp_frames **out);
void xsp_frames_free(struct xsp_frames *f); /* NULL is allowed */

/* Remembers the new addresses of an event's stack. 0 or -ENOMEM. The hot path. */
int xsp_frames_see(struct xsp_frames *f, const struct xsp_event *e);

/*
 * Names the remembered ones, for at most `budget_ns`. Now and then, and the `last` time, also names addresses in
 * compiler-made code again: the last name counts. 0 or a negative errno.
 */
int xsp_frames_resolve(struct xsp_frames *f, uint64_t budget_ns, bool last);

/* An address of that hash will be named again when it is met. False: none has it. */
bool xsp_frames_forget(struct xsp_frames *f, uint64_t hash);
size_t xsp_frames_pending(const struct xsp_frames *f); /* addresses without names so far */
/* There were more than XSP_FRAMES_MAX: the others have no names. */
bool xsp_frames_left(const struct xsp_frames *f);
/* So many found no time in the `last` budget. */
size_t xsp_frames_unnamed(const struct xsp_frames *f);

#endif
