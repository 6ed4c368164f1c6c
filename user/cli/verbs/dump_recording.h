/* SPDX-License-Identifier: BSD-2-Clause */
/* dump_recording.h - what is open in processes by the recordings of them that run meanwhile. */
#ifndef XSP_DUMP_RECORDING_H
#define XSP_DUMP_RECORDING_H

#include "dump/dump.h"

struct xsp_recordings;

/* The captures that are being written on this machine, by this very program as root, so that nobody else can put one
 * forward. Before the rights are given up. `pids`: those that are asked for, kept by the caller. NULL: no memory. */
struct xsp_recordings *xsp_recordings_find(const pid_t *pids, size_t count);
/* Reads and closes them. To be called without rights, before anything of a target is read. What cannot be read is told
 * in xsp_dump.open_note. */
void xsp_recordings_read(struct xsp_recordings *r);
/* Notes in each thread of `d` what is open. 0 or -ENOMEM. */
int xsp_recordings_note(const struct xsp_recordings *r, struct xsp_dump *d);
void xsp_recordings_free(struct xsp_recordings *r); /* NULL is allowed */

#endif
