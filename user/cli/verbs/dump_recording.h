/* SPDX-License-Identifier: BSD-2-Clause */
/* dump_recording.h - which spans are open in processes, according to the recordings that run
 * now. */
#ifndef XSP_DUMP_RECORDING_H
#define XSP_DUMP_RECORDING_H

#include "dump/dump.h"

struct xsp_recordings;

/* Finds the captures that are being written on this machine. It takes only those that this very
 * program writes as root, so that nobody can forge one. Call it before giving up rights. The caller
 * keeps `pids`, the processes that are wanted. NULL: no memory. */
struct xsp_recordings *xsp_recordings_find(const pid_t *pids, size_t count);
/* Reads the captures and closes them. Call it without rights, before anything of a target is read.
 * If one cannot be read, xsp_dump.open_note says so. */
void xsp_recordings_read(struct xsp_recordings *r);
/* Notes for each thread of `d` which spans are open. 0 or -ENOMEM. */
int xsp_recordings_note(const struct xsp_recordings *r, struct xsp_dump *d);
void xsp_recordings_free(struct xsp_recordings *r); /* NULL is allowed */

#endif
