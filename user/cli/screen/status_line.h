/* SPDX-License-Identifier: BSD-2-Clause */
/* status_line.h - the line that moves while recording on a terminal. */
#ifndef XSP_CLI_STATUS_LINE_H
#define XSP_CLI_STATUS_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "record/recorder.h"

struct xsp_status_line {
	bool on, wanted;
	double drawn_at; /* seconds into the recording at which it was last drawn; < 0: never */
	double begun; /* say(): when it was first called, seconds; 0: not yet */
	double said; /* ... and when a line was last written */
};

/* On only when standard error is a terminal. */
struct xsp_status_line xsp_status_line_begin(bool wanted);
/* Is it time to redraw, `seconds` into the recording? At most five times a second. */
bool xsp_status_line_due(const struct xsp_status_line *line, double seconds);
/* Redraws. duration_ns 0: no end is set. */
void xsp_status_line_show(struct xsp_status_line *line, const struct xsp_recorder_status *s,
			  uint64_t duration_ns);
/* Before the recording: what is being done, from half a second on. Where no terminal is, a line of its own
 * every ten seconds. */
void xsp_status_line_say(struct xsp_status_line *line, const char *text);
void xsp_status_line_end(struct xsp_status_line *line);

#endif
