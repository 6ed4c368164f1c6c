/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * details.h - the sections (xsptrace/event.h) of a span's events: first of its entry, then of notes
 * while it was open, then of its exit. References are counted: a consumer that keeps a span beyond
 * its callback takes one.
 */
#ifndef XSP_TIMELINE_DETAILS_H
#define XSP_TIMELINE_DETAILS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/capture.h"

struct xsp_details;

/* Appends the event's sections, up to the first malformed one. *details NULL: makes them. 0 or
 * -ENOMEM. Never call it on details that a consumer has a reference to. */
int xsp_details_add(struct xsp_details **details, const struct xsp_event *e);

/* The first section of the type in the event, or NULL. Checks its size as above. */
const struct xsp_section *xsp_event_section(const struct xsp_event *e, unsigned type);

/* Does an END name the range that it ends, by the time and thread of its BEGIN
 * (XSP_SECTION_RANGE)? */
bool xsp_event_ends(const struct xsp_event *e, uint64_t *begin_ns, uint32_t *tid);

/* The first section of the type after `after` (NULL: from the beginning), or NULL. Checks its size:
 * at least a head, and all of it in the details. `d` may be NULL. */
const struct xsp_section *xsp_details_find(const struct xsp_details *d, unsigned type,
					   const struct xsp_section *after);
/* The same for any type. */
const struct xsp_section *xsp_details_next(const struct xsp_details *d,
					   const struct xsp_section *after);
/* If its probe's scope (enum xsp_scope) is XSP_SCOPE_OWN, a call has a section SCOPE (enum
 * xsp_record_scope). NULL: the probe's scope counts. */
const struct xsp_section *xsp_details_own_scope(const struct xsp_details *d, unsigned probe_scope);

/* NULL is allowed. */
struct xsp_details *xsp_details_ref(struct xsp_details *d);
void xsp_details_unref(struct xsp_details *d);

#endif
