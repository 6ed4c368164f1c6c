/* SPDX-License-Identifier: BSD-2-Clause */
/* open.h - a capture, or a Chrome trace, of which one is made: for whoever reads captures. */
#ifndef XSP_IMPORT_OPEN_H
#define XSP_IMPORT_OPEN_H

#include "base/new_file.h"
#include "capture/capture.h"
#include "import/import.h"

struct xsp_open_options {
	struct xsp_new_file *
		into; /* the capture that is made of a trace; NULL: a file without a name, which is gone
				    * with the reader */
	void (*progress)(void *ctx,
			 double share); /* now and then, while a trace is read; may be NULL */
	void *ctx;
};

/* *made: it is a trace, and *report tells what is not in the capture. 0 or a negative errno. */
int xsp_open_capture_or_trace(const char *path, const struct xsp_open_options *options,
			      struct xsp_capture_reader **out, bool *made,
			      struct xsp_import_report *report, struct xsp_error *err);

#endif
