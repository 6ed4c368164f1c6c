/* SPDX-License-Identifier: BSD-2-Clause */
/* waits.h - what a thread waits for, who holds that, and who waits for whom in a circle. */
#ifndef XSP_DUMP_WAITS_H
#define XSP_DUMP_WAITS_H

#include "dump/dump.h"
#include "dump/look.h"

/* Fills out->wait for the thread at `index` of d, by what was seen of it. `mem`: the process's memory, -1: not
 * readable. 0 or -ENOMEM. */
int xsp_dump_wait(struct xsp_dump *d, size_t index, const struct xsp_look *look,
		  const struct xsp_opener *o, int mem);
/* Numbers the cycles and marks their threads. */
void xsp_dump_cycles(struct xsp_dump *d);

#endif
