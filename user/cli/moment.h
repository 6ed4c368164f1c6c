/* SPDX-License-Identifier: BSD-2-Clause */
/* moment.h - what a snapshot is about: the time in which something was wrong, as its trigger saw it, or the crash. */
#ifndef XSP_CLI_MOMENT_H
#define XSP_CLI_MOMENT_H

struct xsp_capture_reader;

/* Where that time went, a line: "train.py:27 cleanup 1.01 s"; or the line of Python of a crash. It reads the whole capture. malloc'd; NULL: the snapshot is about no time, or its account has nothing of it. */
char *xsp_moment_text(struct xsp_capture_reader *reader);

#endif
