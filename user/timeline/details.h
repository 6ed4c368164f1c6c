/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * details.h - the sections (xsptrace/event.h) that the events of one span carried: of its entry, of
 * notes while it was open, of its exit, in this order. Counted references: a consumer that keeps a
 * span longer than its callback takes one.
 */
#ifndef XSP_TIMELINE_DETAILS_H
#define XSP_TIMELINE_DETAILS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/capture.h"

struct xsp_details;

/* Appends the event's sections, if it has any and they are well formed up to some point; what is
 * malformed is left out. *details NULL: made. 0 or -ENOMEM. Never call it on details that a consumer
 * has taken a reference of. */
int xsp_details_add(struct xsp_details **details, const struct xsp_event *e);

/* The first section of the type in the event, or NULL. Its size is checked as above. */
const struct xsp_section *xsp_event_section(const struct xsp_event *e, unsigned type);

/* Does an END say which range it ends (XSP_SECTION_RANGE)? By the time of its BEGIN and the thread of that. */
bool xsp_event_ends(const struct xsp_event *e, uint64_t *begin_ns, uint32_t *tid);

/* The first section of the type behind `after` (NULL: from the beginning), or NULL. Its size is
 * checked: at least a head, all of it in the details. `d` may be NULL. */
const struct xsp_section *xsp_details_find(const struct xsp_details *d, unsigned type,
					   const struct xsp_section *after);
/* The same for any type. */
const struct xsp_section *xsp_details_next(const struct xsp_details *d,
					   const struct xsp_section *after);
/* What a call itself says that it is (enum xsp_record_scope), where its probe's scope (enum xsp_scope) is XSP_SCOPE_OWN: the
 * section SCOPE. NULL: it is what the probe says. */
const struct xsp_section *xsp_details_own_scope(const struct xsp_details *d, unsigned probe_scope);

/* NULL is allowed. */
struct xsp_details *xsp_details_ref(struct xsp_details *d);
void xsp_details_unref(struct xsp_details *d);

#endif
