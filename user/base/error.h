/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * error.h - how a stage reports a failure to the user.
 *
 * A function that can fail returns 0 (or a count), or a negative errno. Where the user should learn
 * why, it also takes a `struct xsp_error *` (may be NULL) and fills it: one line that says what
 * failed, why and what to do, and the exit status of the command.
 */
#ifndef XSP_BASE_ERROR_H
#define XSP_BASE_ERROR_H

#include <stdarg.h>

/* Exit statuses of xsptrace; listed in `xsptrace help all`. */
enum xsp_status {
	XSP_STATUS_OK = 0,
	XSP_STATUS_FAILED = 1, /* anything without a status of its own */
	XSP_STATUS_USAGE = 2, /* bad option or argument */
	XSP_STATUS_NO_TARGET = 3, /* no such process, zombie, kernel thread */
	XSP_STATUS_PERMISSION = 4, /* not root, or missing capabilities */
	XSP_STATUS_TARGET = 5, /* a target that cannot be traced: 32-bit, stripped static */
	XSP_STATUS_NO_MATCH = 6, /* no function matches */
	XSP_STATUS_KERNEL = 7, /* no BTF, BPF disabled, kernel too old */
	XSP_STATUS_OUTPUT = 8, /* an output could not be written */
	XSP_STATUS_CAPTURE = 9, /* a capture is corrupt, truncated, or newer than this build */
	XSP_STATUS_FOUND = 10, /* --fail-on found what it looked for */
	XSP_STATUS_SERVER = 11, /* a server cannot be reached, or has gone away for good */
	XSP_STATUS_ACCESS = 12, /* a server refuses us: user, password, rights */
	XSP_STATUS_TRIGGER = 13, /* --trigger: not a condition */
	XSP_STATUS_CANNOT_RUN = 126, /* -- COMMAND found but could not be started (as the shell) */
	XSP_STATUS_NOT_FOUND = 127, /* -- COMMAND not found (as the shell) */
};

struct xsp_error {
	enum xsp_status status;
	char text[640]; /* no newline, no "xsptrace:" prefix, no colour */
};

/* Fills `err` (if not NULL) unless it already holds an error: the first one counts. Returns `code`,
 * which should be a negative errno. */
int xsp_error_set(struct xsp_error *err, int code, enum xsp_status status, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int xsp_out_of_memory(struct xsp_error *err); /* -ENOMEM */

#endif
