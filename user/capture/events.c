/* SPDX-License-Identifier: BSD-2-Clause */
/* events.c - the sections of an event, for all who read them. */
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

const struct xsp_section *xsp_event_next_section(const struct xsp_event *e,
						 const struct xsp_section *after)
{
	const uint8_t *data = (const uint8_t *)e;
	const size_t at = after != NULL ? (size_t)((const uint8_t *)after - data) + after->size
					: xsp_event_fixed_part(e);
	const struct xsp_section *s = (const void *)(data + at);

	if (!(e->flags & XSP_EVENT_SECTIONS) || e->size < at + sizeof(*s) || s->size < sizeof(*s) ||
	    s->size % 8 != 0 || s->size > e->size - at)
		return NULL;
	return s;
}
