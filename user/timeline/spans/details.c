/* SPDX-License-Identifier: BSD-2-Clause */
#include "timeline/details.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "catalog/scope.h"

struct xsp_details {
	unsigned references;
	size_t bytes;
	uint64_t data[]; /* sections are aligned to 8 */
};

/* A span gets a handful of events with sections. Notes of a long one are bounded. */
#define DETAILS_MAX ((size_t)1 << 20)

struct ended {
	struct xsp_event head;
	struct xsp_section section;
	uint64_t begin_ns;
};

bool xsp_event_ends(const struct xsp_event *e, uint64_t *begin_ns, uint32_t *tid)
{
	const struct ended *x = (const void *)e;

	if (e->kind != XSP_EVENT_END || !(e->flags & XSP_EVENT_SECTIONS) || e->size < sizeof(*x) ||
	    x->section.type != XSP_SECTION_RANGE || x->section.size != sizeof(*x) - sizeof(x->head))
		return false;
	*begin_ns = x->begin_ns;
	*tid = x->section.value;
	return true;
}

const struct xsp_section *xsp_event_section(const struct xsp_event *e, unsigned type)
{
	const struct xsp_section *s = NULL;

	while ((s = xsp_event_next_section(e, s)) != NULL && s->type != type)
		;
	return s;
}

int xsp_details_add(struct xsp_details **details, const struct xsp_event *e)
{
	const struct xsp_section *first = xsp_event_next_section(e, NULL), *last = NULL;
	const size_t old = *details != NULL ? (*details)->bytes : 0;
	uint64_t begin_ns;
	uint32_t tid;

	if (first != NULL &&
	    xsp_event_ends(e, &begin_ns, &tid)) /* who sees the span does not need it */
		first = xsp_event_next_section(e, first);
	for (const struct xsp_section *s = first; s != NULL; s = xsp_event_next_section(e, s))
		last = s;
	if (last == NULL)
		return 0;
	const uint8_t *sections = (const uint8_t *)first;
	const size_t size = (size_t)((const uint8_t *)last - sections) + last->size;
	if (old + size > DETAILS_MAX)
		return 0;
	struct xsp_details *d = realloc(*details, sizeof(*d) + old + size);
	if (d == NULL)
		return -ENOMEM;
	memcpy((uint8_t *)d->data + old, sections, size);
	if (*details == NULL)
		d->references = 1;
	d->bytes = old + size;
	*details = d;
	return 0;
}

const struct xsp_section *xsp_details_next(const struct xsp_details *d,
					   const struct xsp_section *after)
{
	if (d == NULL || d->bytes == 0)
		return NULL;
	const uint8_t *begin = (const uint8_t *)d->data, *end = begin + d->bytes;
	const uint8_t *at = after == NULL ? begin : (const uint8_t *)after + after->size;
	return at < end ? (const void *)at : NULL;
}

const struct xsp_section *xsp_details_find(const struct xsp_details *d, unsigned type,
					   const struct xsp_section *after)
{
	const struct xsp_section *s = after;

	while ((s = xsp_details_next(d, s)) != NULL)
		if (s->type == type)
			return s;
	return NULL;
}

const struct xsp_section *xsp_details_own_scope(const struct xsp_details *d, unsigned probe_scope)
{
	return probe_scope == XSP_SCOPE_OWN ? xsp_details_find(d, XSP_SECTION_SCOPE, NULL) : NULL;
}

struct xsp_details *xsp_details_ref(struct xsp_details *d)
{
	if (d != NULL)
		d->references++;
	return d;
}

void xsp_details_unref(struct xsp_details *d)
{
	if (d != NULL && --d->references == 0)
		free(d);
}
