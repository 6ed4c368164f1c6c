/* SPDX-License-Identifier: BSD-2-Clause */
/* open_ranges.h - ranges that the agent has told of, by the object that begins and ends with each. */
#ifndef XSP_RECORD_OPEN_RANGES_H
#define XSP_RECORD_OPEN_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rows/u64map.h"
#include "xsptrace/event.h"

/* Zero-initialise. */
struct xsp_open_ranges {
	struct xsp_u64map by_object; /* index of its item */
	struct xsp_open_range {
		uint64_t begin_ns;
		uint32_t tid; /* 0: none is open */
	} * items;
	size_t count, room;
};
void xsp_open_ranges_free(struct xsp_open_ranges *o);

/* The range of the BEGIN at hand. False: there are too many objects, or there is no memory. */
bool xsp_open_range_begin(struct xsp_open_ranges *o, uint64_t object, const struct xsp_event *e);

struct xsp_range_end_event {
	struct xsp_event head;
	struct xsp_section section;
	uint64_t begin_ns;
};
/* False: none is open, as it began before the recording, or its begin was lost. */
bool xsp_open_range_end(struct xsp_open_ranges *o, uint64_t object, const struct xsp_event *e,
			struct xsp_range_end_event *end);

#endif
