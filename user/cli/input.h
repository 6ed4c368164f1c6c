/* SPDX-License-Identifier: BSD-2-Clause */
/* input.h - opens what a verb reads: a capture, or a Chrome trace that is made into one. */
#ifndef XSP_CLI_INPUT_H
#define XSP_CLI_INPUT_H

#include <stdbool.h>

#include "capture/capture.h"

struct xsp_input_options {
	const char *keep; /* the name for a capture made from a trace; NULL: it is not kept */
	bool progress; /* show progress on a terminal when reading takes long */
};

/* Says what it could not take over from a trace. The caller closes *out. 0 or a negative errno. */
int xsp_input_open(const char *path, const struct xsp_input_options *options,
		   struct xsp_capture_reader **out, struct xsp_error *err);

#endif
