/* SPDX-License-Identifier: BSD-2-Clause */
/* names.c - names that are addresses, and texts that were not in memory when their range began. */
#include "record/recorder_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A text that was not in memory when the range began. The process may be gone by now. */
static void resolve_text(struct xsp_recorder *r, const struct xsp_event_name *name, char *text,
			 size_t size)
{
	const struct recorded_process *p = xsp_recorder_find(r, (pid_t)name->head.tgid);
	uint64_t place[2]; /* address, length */

	memcpy(place, name + 1, sizeof(place));
	if (p != NULL && name->head.time_ns >= p->program_ns &&
	    xsp_resolve_text(r->resolver, p->process, name->head.time_ns, place[0], place[1], text,
			     size) == 0)
		return;
	r->unread_names++;
	snprintf(text, size, "[name not readable]");
}

void xsp_recorder_resolve(void *ctx, const struct xsp_event_name *name, char *text, size_t size)
{
	struct xsp_recorder *r = ctx;
	struct recorded_process *p = xsp_recorder_find(r, (pid_t)name->head.tgid);
	const struct xsp_probe *probe = xsp_recorder_probe(r, name->head.probe);
	uint64_t address;

	if (name->head.flags & XSP_EVENT_NAME_LOST) {
		resolve_text(r, name, text, size);
		return;
	}
	memcpy(&address, name + 1, sizeof(address));
	snprintf(text, size, "0x%" PRIx64, address);
	if (p != NULL && (name->head.flags & XSP_EVENT_NAME_VTABLE))
		xsp_resolve_vtable(r->resolver, p->process, address, text, size);
	else if (p != NULL && !xsp_call_site_name(r, p, probe, address, text, size))
		xsp_resolve_code(r->resolver, p->process, address, text, size);
	if (probe != NULL && probe->rename != NULL)
		probe->rename(text, size);
}
