/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/status_line.h"

#include <stdio.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/cli.h"

struct xsp_status_line xsp_status_line_begin(bool wanted)
{
	return (struct xsp_status_line){.on = wanted && isatty(STDERR_FILENO), .shown = -1};
}

bool xsp_status_line_due(const struct xsp_status_line *line, double seconds)
{
	return line->on && (line->shown < 0 || seconds - line->shown >= 0.2);
}

void xsp_status_line_show(struct xsp_status_line *line, const struct xsp_recorder_status *s,
			  uint64_t duration_ns)
{
	char rate[XSP_UNITS_SIZE], events[XSP_UNITS_SIZE], lost[XSP_UNITS_SIZE],
		bytes[XSP_UNITS_SIZE];
	char until[32] = "", text[256];

	line->shown = s->seconds;
	if (duration_ns != 0)
		snprintf(until, sizeof(until), "/%.0f", (double)duration_ns * 1e-9);
	int width = xsp_terminal_width(STDERR_FILENO);
	snprintf(text, sizeof(text),
		 "%.1f%s s  %s events/s  %s events  %s lost  %s  target slowed by about %.1f%% of "
		 "a core",
		 s->seconds, until, xsp_format_count(rate, (uint64_t)s->events_per_second),
		 xsp_format_count(events, s->events), xsp_format_count(lost, s->lost),
		 xsp_format_bytes(bytes, s->bytes), 100 * s->overhead);
	fprintf(stderr, "\r%.*s\033[K", width > 1 ? width - 1 : 79, text);
}

void xsp_status_line_end(struct xsp_status_line *line)
{
	if (line->on && line->shown >= 0)
		fputs("\r\033[K", stderr);
	line->on = false;
}
