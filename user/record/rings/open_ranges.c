/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rings/open_ranges.h"

#include <stdlib.h>

#include "base/rows/grow.h"

#define OBJECTS_MAX 65536U

void xsp_open_ranges_free(struct xsp_open_ranges *o)
{
	xsp_u64map_free(&o->by_object);
	free(o->items);
	*o = (struct xsp_open_ranges){0};
}

bool xsp_open_range_begin(struct xsp_open_ranges *o, uint64_t object, const struct xsp_event *e)
{
	const uint32_t *at = xsp_u64map_get(&o->by_object, object);
	const size_t index = at != NULL ? *at : o->count;

	if (at == NULL &&
	    (o->count >= OBJECTS_MAX || xsp_grow(&o->items, &o->room, o->count + 1) < 0 ||
	     xsp_u64map_set(&o->by_object, object, (uint32_t)o->count) < 0))
		return false;
	o->count += at == NULL;
	o->items[index] = (struct xsp_open_range){.begin_ns = e->time_ns, .tid = e->tid};
	return true;
}

bool xsp_open_range_end(struct xsp_open_ranges *o, uint64_t object, const struct xsp_event *e,
			struct xsp_range_end_event *end)
{
	const uint32_t *at = xsp_u64map_get(&o->by_object, object);
	struct xsp_open_range *range = at != NULL ? &o->items[*at] : NULL;

	if (range == NULL || range->tid == 0)
		return false;
	*end = (struct xsp_range_end_event){
		.head = *e,
		.section = {.type = XSP_SECTION_RANGE,
			    .size = sizeof(*end) - sizeof(end->head),
			    .value = range->tid},
		.begin_ns = range->begin_ns,
	};
	end->head.size = sizeof(*end);
	end->head.flags |= XSP_EVENT_SECTIONS;
	range->tid = 0;
	return true;
}
