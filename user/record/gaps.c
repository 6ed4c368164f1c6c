/* SPDX-License-Identifier: BSD-2-Clause */
/* gaps.c - what the recording lacks beside lost events: reports it at once, and writes it into the capture. */
#include "record/recorder_private.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/units.h"

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

void xsp_recorder_count_left_out(struct xsp_recorder *r, size_t count, const char *names,
				 const char *why)
{
	xsp_recorder_gap(r, XSP_GAP_FUNCTIONS, count, "whose code %s, by process; first: %s", why,
			 names);
}

void xsp_recorder_note_left_out(struct xsp_recorder *r)
{
	struct xsp_changed_code rows[XSP_CHANGED_CODE_ROWS];
	size_t named = 0;
	long n;

	while ((n = xsp_broker_changed_code(r->broker, rows, XSP_CHANGED_CODE_ROWS)) > 0) {
		for (long i = 0; i < n; i++) {
			const struct xsp_probe *p = xsp_recorder_probe(r, rows[i].probe);
			char name[128];
			xsp_printable(name, sizeof(name), p != NULL ? p->name : "?", 100);
			if (named++ < XSP_PLAN_NAMED)
				xsp_recorder_note(
					r,
					"%s: its code in process %d has been changed since it was attached to: left out there",
					name, rows[i].pid);
			xsp_recorder_count_left_out(r, 1, name, XSP_CHANGED_CODE);
		}
	}
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
