/* SPDX-License-Identifier: BSD-2-Clause */
/* start_at.c - `--start-at`: when a recording begins, by the real-time clock, so that it is the same moment on all hosts;
 * `--windows`: the parts of the time that it is of. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/options/private.h"

#define SECOND 1000000000ULL
#define DAY (24 * 3600)
#define LENGTH_LEAST_NS 50000000ULL /* sites take as long to go in */
#define COUNT_MOST 1000000
/* --sample-rate: its windows, and which rates leave time to put sites in. */
#define RATE_WINDOW_NS 500000000ULL
#define RATE_LEAST 0.001
#define RATE_MOST 0.7

/* "14:30", "14:30:05": the next time that this machine's clocks show it. */
static bool take_time_of_day(const char *text, uint64_t now, uint64_t *at)
{
	int hours, minutes, seconds = 0, length = 0;
	const time_t today = (time_t)(now / SECOND);
	struct tm tm;

	if (sscanf(text, "%2d:%2d%n:%2d%n", &hours, &minutes, &length, &seconds, &length) < 2 ||
	    text[length] != '\0' || hours < 0 || hours > 23 || minutes < 0 || minutes > 59 ||
	    seconds < 0 || seconds > 59)
		return false;
	localtime_r(&today, &tm);
	for (int day = 0; day < 2; day++) {
		tm.tm_hour = hours;
		tm.tm_min = minutes;
		tm.tm_sec = seconds;
		tm.tm_isdst = -1;
		*at = (uint64_t)mktime(&tm) * SECOND;
		if (*at > now)
			break;
		tm.tm_mday++;
	}
	return true;
}

int xsp_take_start(struct xsp_parse *p)
{
	const uint64_t now = xsp_real_ns();
	uint64_t ns;

	if (p->value[0] == '/' || p->value[0] == '+') {
		if (xsp_parse_duration(p->value + 1, (double)SECOND, &ns) < 0 || ns == 0 ||
		    ns > DAY * SECOND)
			goto wrong;
		p->o->start_each_ns = p->value[0] == '/' ? ns : 0;
		p->o->start_at_ns = p->value[0] == '+' ? now + ns : (now / ns + 1) * ns;
		return 0;
	}
	if (take_time_of_day(p->value, now, &p->o->start_at_ns))
		return 0;
wrong:
	return xsp_wrong_value(p->err, "--start-at", p->value, p->row->wanted);
}

/* "5x2s", or "2s": until the recording ends. */
int xsp_take_windows(struct xsp_parse *p)
{
	struct xsp_schedule *s = &p->o->schedule;
	char *x;

	s->count = strtoull(p->value, &x, 10);
	if (*x != 'x')
		x = (char *)(uintptr_t)p->value;
	else if (p->value[0] < '1' || p->value[0] > '9' || s->count > COUNT_MOST)
		goto wrong;
	else
		x++;
	if (x == p->value)
		s->count = 0;
	if (xsp_parse_duration(x, 0, &s->length_ns) == 0 && s->length_ns >= LENGTH_LEAST_NS &&
	    s->length_ns <= DAY * SECOND)
		return 0;
wrong:
	return xsp_wrong_value(p->err, "--windows", p->value, p->row->wanted);
}

/* "0.1": windows that take such a part of the time. */
int xsp_take_sample_rate(struct xsp_parse *p)
{
	struct xsp_schedule *s = &p->o->schedule;
	char *end;
	const double rate = strtod(p->value, &end);

	if (end == p->value || *end != '\0' || !(rate >= RATE_LEAST && rate <= RATE_MOST))
		return xsp_wrong_value(p->err, "--sample-rate", p->value, p->row->wanted);
	s->adapts = true;
	s->count = 0;
	s->length_ns = RATE_WINDOW_NS;
	s->every_ns = (uint64_t)((double)RATE_WINDOW_NS / rate);
	return 0;
}
