/* SPDX-License-Identifier: BSD-2-Clause */
/* convert.h - a record of the agent as an event. */
#ifndef XSP_RECORD_CONVERT_H
#define XSP_RECORD_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "xsptrace/event.h"
#include "xsptrace/ring.h"

enum xsp_ring_record_is {
	XSP_RECORD_GOOD,
	XSP_RECORD_UNWANTED, /* its function has no probe here */
	XSP_RECORD_BAD, /* no such kind, flag or function */
	XSP_RECORD_PART, /* of a name: it stands before its entry */
	XSP_RECORD_RANGE, /* a range begins or ends; of the event its head is filled */
	XSP_RECORD_SECTIONS, /* an operator's entry, with XSP_RING_ARGS or XSP_RING_STACK or both; of it, too */
	XSP_RECORD_STACK, /* a Python stack, at the place *name: it stands before its event */
	/* by a callback: an entry, with its name's place and a number in *name; an exit with numbers; and numbers of the
	 * innermost node. Of them, too */
	XSP_RECORD_PLACED,
	XSP_RECORD_NUMBERED,
	XSP_RECORD_NODE,
};

/* What is known of a function in the agent's table. */
struct xsp_ring_row {
	uint32_t probe; /* that its events are of; XSP_RING_NO_PROBE: none */
	uint8_t region; /* xsp_ring_region_kind() */
	bool named; /* its calls have names of their own */
	bool operators; /* its calls are those that callbacks tell of, but nodes */
	bool guard; /* a region that an object begins and ends: xsp_ring_guard() */
	bool again; /* its file may be planned later than the agent begins */
};
/* What the records of a function of record_function.h are, enum xsp_event_kind; XSP_EVENT_INVALID: it is none of these. */
uint8_t xsp_ring_region_kind(const char *symbol);

union xsp_ring_event {
	struct xsp_event head;
	struct xsp_event_range range; /* BEGIN */
	struct xsp_event_value value;
};
/* Fills all of the event but its time, its thread, and what else is at places in the file: *name. `record` is a copy.
 * rows: by function. */
enum xsp_ring_record_is xsp_ring_convert(const struct xsp_ring_record *record,
					 const struct xsp_ring_row *rows, uint32_t functions,
					 union xsp_ring_event *e, uint64_t *name);

#endif
