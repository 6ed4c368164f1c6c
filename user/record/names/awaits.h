/* SPDX-License-Identifier: BSD-2-Clause */
/* awaits.h - where the tasks of asyncio wait while its loop has nothing to do: in which of the program's own lines. */
#ifndef XSP_RECORD_AWAITS_H
#define XSP_RECORD_AWAITS_H

#include "capture/capture.h"
#include "record/names/codes.h"

struct xsp_awaits;

int xsp_awaits_new(struct xsp_awaits **out); /* 0 or -ENOMEM */
void xsp_awaits_free(struct xsp_awaits *a); /* NULL is allowed */

/* Looks at some tasks, seldom; `frames`: those of the loop's thread, the innermost first. 0 or -ENOMEM. */
int xsp_awaits_look(struct xsp_awaits *a, struct xsp_python *p, struct xsp_codes *codes,
		    const struct xsp_python_frame *frames, size_t count);
/* In the capture: XSP_INFO_AWAITS. 0, or the writer's value. */
int xsp_awaits_put(const struct xsp_awaits *a, struct xsp_capture_writer *w, uint32_t pid);

#endif
