/* SPDX-License-Identifier: BSD-2-Clause */
/* gaps.c - what the recording lacks beside lost events: said at once, and written into the capture. */
#include "record/recorder_private.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void xsp_recorder_gap(struct xsp_recorder *r, enum xsp_capture_gap gap, uint64_t more,
		      const char *fmt, ...)
{
	struct xsp_recorder_gap *g = &r->gaps[gap];
	va_list ap;

	if (g->count == 0) {
		va_start(ap, fmt);
		vsnprintf(g->what, sizeof(g->what), fmt, ap);
		va_end(ap);
	}
	g->count += more;
}

int xsp_recorder_put_gaps(struct xsp_recorder *r)
{
	char text[sizeof(r->gaps->what) + 24];
	int rc = 0;

	for (unsigned i = 0; i < XSP_GAPS && rc == 0; i++) {
		struct xsp_recorder_gap *g = &r->gaps[i];
		if (g->count == g->written)
			continue;
		g->written = g->count;
		snprintf(text, sizeof(text), "%" PRIu64 " %s", g->count, g->what);
		rc = xsp_capture_put_info(r->writer, xsp_capture_gap_key(i), text);
	}
	return rc;
}
