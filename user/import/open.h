/* SPDX-License-Identifier: BSD-2-Clause */
/* open.h - opens a capture, or a Chrome trace from which it makes one: for all readers of
 * captures. */
#ifndef XSP_IMPORT_OPEN_H
#define XSP_IMPORT_OPEN_H

#include "base/files/new_file.h"
#include "capture/capture.h"
#include "import/import.h"

struct xsp_open_options {
	/* the capture to make from a trace; NULL: a file without a name, which goes with the
	 * reader */
	struct xsp_new_file *into;
	void (*progress)(void *ctx,
			 double share); /* called now and then while a trace is read; may be NULL */
	void *ctx;
};

/* *made: it is a trace, and *report says what the capture lacks. 0 or a negative errno. */
int xsp_open_capture_or_trace(const char *path, const struct xsp_open_options *options,
			      struct xsp_capture_reader **out, bool *made,
			      struct xsp_import_report *report, struct xsp_error *err);

#endif
