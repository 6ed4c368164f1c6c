/* SPDX-License-Identifier: BSD-2-Clause */
/* input.h - what a verb that reads a capture is given: a capture, or a Chrome trace, of which one is made. */
#ifndef XSP_CLI_INPUT_H
#define XSP_CLI_INPUT_H

#include <stdbool.h>

#include "capture/capture.h"

struct xsp_input_options {
	const char *keep; /* the capture that is made gets this name; NULL: none */
	bool progress; /* a line on a terminal when it takes long */
};

/* What of a trace is not carried over is said. 0 or a negative errno; *out is the caller's to close. */
int xsp_input_open(const char *path, const struct xsp_input_options *options,
		   struct xsp_capture_reader **out, struct xsp_error *err);

#endif
