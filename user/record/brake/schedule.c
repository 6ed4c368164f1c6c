/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/brake/schedule.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"

uint64_t xsp_schedule_next(const struct xsp_schedule *s, uint64_t ns)
{
	if (ns < s->origin_ns)
		return s->origin_ns;
	return s->origin_ns + ((ns - s->origin_ns) / s->every_ns + 1) * s->every_ns;
}

const char *xsp_schedule_text(const struct xsp_schedule *s, char text[XSP_SCHEDULE_TEXT])
{
	char length[XSP_UNITS_SIZE], every[XSP_UNITS_SIZE], count[32] = "windows";

	if (s->count > 0)
		snprintf(count, sizeof(count), "%" PRIu64, s->count);
	snprintf(text, XSP_SCHEDULE_TEXT, "%s of %s, one every %s%s", count,
		 xsp_format_ns(length, s->length_ns), xsp_format_ns(every, s->every_ns),
		 s->adapts ? "; longer where names are new" : "");
	return text;
}
