/* SPDX-License-Identifier: BSD-2-Clause */
/* events.c - finds the sections of an event, for all readers. */
#include "capture/capture.h"
#include "xsptrace/event.h"

/* Other kinds have no sections, or have them right after struct xsp_event. */
static const uint16_t fixed_parts[XSP_EVENT_KINDS] = {
	[XSP_EVENT_ENTRY] = sizeof(struct xsp_event_range),
	[XSP_EVENT_POINT] = sizeof(struct xsp_event_range),
	[XSP_EVENT_BEGIN] = sizeof(struct xsp_event_range),
	[XSP_EVENT_WAIT] = sizeof(struct xsp_event_wait),
	[XSP_EVENT_TIMES] = sizeof(struct xsp_event_times),
	[XSP_EVENT_SAMPLE] = sizeof(struct xsp_event_sample),
};

size_t xsp_event_fixed_part(const struct xsp_event *e)
{
	return e->kind < XSP_EVENT_KINDS && fixed_parts[e->kind] != 0 ? fixed_parts[e->kind]
								      : sizeof(*e);
}
