/* SPDX-License-Identifier: BSD-2-Clause */
/* dump_recording.h - what is open in a process by the recordings of it that run meanwhile. */
#ifndef XSP_DUMP_RECORDING_H
#define XSP_DUMP_RECORDING_H

#include "dump/dump.h"

struct xsp_recordings;

/* The captures that are being written on this machine: found by who serves a recording as root, so that nobody else can
 * put one forward. Before the rights are given up. NULL: there are none, or no memory. */
struct xsp_recordings *xsp_recordings_find(void);
/* Notes in each thread of `d` what is open. 0 or -ENOMEM; a capture that cannot be read is left out. */
int xsp_recordings_note(struct xsp_recordings *r, struct xsp_dump *d);
void xsp_recordings_free(struct xsp_recordings *r); /* NULL is allowed */

#endif
