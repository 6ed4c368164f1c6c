/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/status_line.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/cli.h"

struct xsp_status_line xsp_status_line_begin(bool wanted)
{
	return (struct xsp_status_line){
		.on = wanted && isatty(STDERR_FILENO), .wanted = wanted, .shown = -1};
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
	char until[32] = "", brake[96] = "", text[352];

	line->shown = s->seconds;
	if (duration_ns != 0)
		snprintf(until, sizeof(until), "/%.0f", (double)duration_ns * 1e-9);
	if (s->slowdown > 0)
		snprintf(brake, sizeof(brake), ", a thread by %.0f%%", 100 * s->slowdown);
	if (s->paused)
		snprintf(brake, sizeof(brake), "; off until the next window");
	if (s->let_go > 0)
		snprintf(brake + strlen(brake), sizeof(brake) - strlen(brake), "; %zu let go",
			 s->let_go);
	int width = xsp_terminal_width(STDERR_FILENO);
	snprintf(text, sizeof(text),
		 "%.1f%s s  %s events/s  %s events  %s lost  %s  target slowed by about %.1f%% of "
		 "a core%s",
		 s->seconds, until, xsp_format_count(rate, (uint64_t)s->events_per_second),
		 xsp_format_count(events, s->events), xsp_format_count(lost, s->lost),
		 xsp_format_bytes(bytes, s->bytes), 100 * s->overhead, brake);
	fprintf(stderr, "\r%.*s\033[K", width > 1 ? width - 1 : 79, text);
}

#define SAY_AFTER 0.5 /* seconds */
#define SAY_AGAIN 0.1
#define SAY_AGAIN_PLAIN 10.0

static double now(void)
{
	return (double)xsp_now_ns() * 1e-9;
}

void xsp_status_line_say(struct xsp_status_line *line, const char *text)
{
	double time = now();

	if (line->begun <= 0)
		line->begun = time;
	if (!line->wanted || time - line->begun < SAY_AFTER ||
	    time - line->said < (line->on ? SAY_AGAIN : SAY_AGAIN_PLAIN))
		return;
	line->said = time;
	if (line->on) {
		char shown[260];
		line->shown = 0;
		xsp_printable(shown, sizeof(shown), text, 0);
		fprintf(stderr, "\r%.*s\033[K", 79, shown);
	} else {
		xsp_say("%s", text);
	}
}

void xsp_status_line_end(struct xsp_status_line *line)
{
	if (line->on && line->shown >= 0)
		fputs("\r\033[K", stderr);
	line->on = false;
}
