/* SPDX-License-Identifier: BSD-2-Clause */
/* status_line.h - the line that changes while recording on a terminal. */
#ifndef XSP_CLI_STATUS_LINE_H
#define XSP_CLI_STATUS_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "record/recorder.h"

struct xsp_status_line {
	bool on, wanted;
	double drawn_at; /* seconds into the recording at the last drawing; < 0: never */
	double begun; /* say(): seconds at its first call; 0: not called yet */
	double said; /* ... and seconds when it last wrote a line */
};

/* Is on only if standard error is a terminal. */
struct xsp_status_line xsp_status_line_begin(bool wanted);
/* Is it time to redraw, `seconds` into the recording? That is at most five times a second. */
bool xsp_status_line_due(const struct xsp_status_line *line, double seconds);
/* Redraws. duration_ns 0: the recording has no set end. */
void xsp_status_line_show(struct xsp_status_line *line, const struct xsp_recorder_status *s,
			  uint64_t duration_ns);
/* Call it before the recording: after half a second it says what we do. Without a terminal it
 * writes a line every ten seconds. */
void xsp_status_line_say(struct xsp_status_line *line, const char *text);
void xsp_status_line_end(struct xsp_status_line *line);

#endif
