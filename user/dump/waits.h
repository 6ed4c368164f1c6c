/* SPDX-License-Identifier: BSD-2-Clause */
/* waits.h - what a thread waits for, who holds that, and which threads wait for each other in a circle. */
#ifndef XSP_DUMP_WAITS_H
#define XSP_DUMP_WAITS_H

#include "dump/dump.h"
#include "dump/look.h"
#include "dump/python.h"

/* Further sources about the process. */
struct xsp_dump_source {
	const struct xsp_opener *opener;
	int mem; /* -1: not readable */
	const struct xsp_dump_interpreter *python; /* NULL: none */
};

/* Fills in the wait of the thread at `index` of d, from a look at it. 0 or -ENOMEM. */
int xsp_dump_wait(struct xsp_dump *d, size_t index, const struct xsp_look *look,
		  const struct xsp_dump_source *from);
/* Finds the holder of Python's lock. */
void xsp_dump_gil(struct xsp_dump *d, const struct xsp_dump_source *from);
/* Numbers the cycles and marks their threads. */
void xsp_dump_cycles(struct xsp_dump *d);
/* Does each thread wait for another one? Locks that name no holder (Python's) are among what they wait for. */
bool xsp_dump_is_stuck(const struct xsp_dump *d);

#endif
