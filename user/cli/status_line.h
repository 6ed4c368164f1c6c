/* SPDX-License-Identifier: BSD-2-Clause */
/* status_line.h - the line that moves while recording on a terminal. */
#ifndef XSP_CLI_STATUS_LINE_H
#define XSP_CLI_STATUS_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/recorder.h"

struct xsp_status_line {
	bool on;
	double shown; /* seconds into the recording at which it was last drawn */
};

/* On only when standard error is a terminal. */
struct xsp_status_line xsp_status_line_begin(bool wanted);
/* Is it time to redraw, `seconds` into the recording? At most five times a second. */
bool xsp_status_line_due(const struct xsp_status_line *line, double seconds);
/* Redraws. duration_ns 0: no end is set. */
void xsp_status_line_show(struct xsp_status_line *line, const struct xsp_recorder_status *s,
			  uint64_t duration_ns);
void xsp_status_line_end(struct xsp_status_line *line);

#endif
