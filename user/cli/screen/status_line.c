/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/screen/status_line.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"

struct xsp_status_line xsp_status_line_begin(bool wanted)
{
	return (struct xsp_status_line){
		.on = wanted && isatty(STDERR_FILENO), .wanted = wanted, .drawn_at = -1};
}

bool xsp_status_line_due(const struct xsp_status_line *line, double seconds)
{
	return line->on && (line->drawn_at < 0 || seconds - line->drawn_at >= 0.2);
}

/* Shows as much as the terminal has room for, with "1.2k lost" in red if something is lost. */
static void show(const char *text, const char *lost, bool alarm)
{
	const int width = xsp_terminal_width(STDERR_FILENO);
	const int room = width > 1 ? width - 1 : 79;
	const char *at = alarm ? strstr(text, lost) : NULL;
	const int before = at != NULL ? (int)(at - text) : 0, marked = (int)strlen(lost);

	if (at == NULL || before + marked > room)
		fprintf(stderr, "\r%.*s\033[K", room, text);
	else
		fprintf(stderr, "\r%.*s\033[31m%s\033[0m%.*s\033[K", before, text, lost,
			room - before - marked, at + marked);
}

/* What the user asked for comes first: 80 columns may not have room for everything. */
void xsp_status_line_show(struct xsp_status_line *line, const struct xsp_recorder_status *s,
			  uint64_t duration_ns)
{
	char rate[XSP_UNITS_SIZE], events[XSP_UNITS_SIZE], count[XSP_UNITS_SIZE],
		bytes[XSP_UNITS_SIZE];
	char until[32] = "", thread[32] = "", lost[XSP_UNITS_SIZE + 8], brake[64] = "", text[352];
	char slowed[32] = "-";

	line->drawn_at = s->seconds;
	if (duration_ns != 0)
		snprintf(until, sizeof(until), "/%.0f", (double)duration_ns * 1e-9);
	if (s->slowdown > 0)
		snprintf(thread, sizeof(thread), " (a thread %.0f%%)", 100 * s->slowdown);
	if (s->paused)
		snprintf(brake, sizeof(brake), "  off until the next window");
	if (s->let_go > 0)
		xsp_join(brake, sizeof(brake), "", "  %zu released", s->let_go);
	snprintf(lost, sizeof(lost), "%s lost", xsp_format_count(count, s->lost));
	/* nobody estimates the cost of samples and waits: without probes it is not known */
	if (s->sites > 0)
		snprintf(slowed, sizeof(slowed), "%.1f%%", 100 * s->overhead);
	snprintf(text, sizeof(text), "%.1f%s s  slowed %s%s  %s  %s events/s  %s  %s%s%s",
		 s->seconds, until, slowed, thread, lost,
		 xsp_format_count(rate, (uint64_t)s->events_per_second),
		 xsp_format_count(events, s->events), xsp_format_bytes(bytes, s->bytes), brake,
		 duration_ns == 0 ? "  Ctrl-C stops" : "");
	show(text, lost, s->lost > 0 && getenv("NO_COLOR") == NULL);
}

#define SAY_AFTER 0.5 /* seconds */
#define SAY_AFTER_PLAIN 5.0 /* in a file or pipe */
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
	if (!line->wanted || time - line->begun < (line->on ? SAY_AFTER : SAY_AFTER_PLAIN) ||
	    time - line->said < (line->on ? SAY_AGAIN : SAY_AGAIN_PLAIN))
		return;
	line->said = time;
	if (line->on) {
		char printable[260];
		line->drawn_at = 0;
		xsp_printable(printable, sizeof(printable), text, 0);
		fprintf(stderr, "\r%.*s\033[K", 79, printable);
	} else {
		xsp_say("%s", text);
	}
}

void xsp_status_line_end(struct xsp_status_line *line)
{
	if (line->on && line->drawn_at >= 0)
		fputs("\r\033[K", stderr);
	line->on = false;
}
