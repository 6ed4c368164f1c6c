/* SPDX-License-Identifier: BSD-2-Clause */
/* convert.h - a record of the agent as an event. */
#ifndef XSP_RECORD_CONVERT_H
#define XSP_RECORD_CONVERT_H

#include <stdint.h>

#include "xsptrace/event.h"
#include "xsptrace/ring.h"

enum xsp_ring_record_is {
	XSP_RECORD_GOOD,
	XSP_RECORD_UNWANTED, /* its function has no probe here */
	XSP_RECORD_BAD, /* no such kind, flag or function */
	XSP_RECORD_PART, /* of a name: it stands before its entry */
	XSP_RECORD_RANGE, /* a range begins or ends; of the event its head is filled */
};

/* Fills all of the event but its time and thread. `record` is a copy. probes: by function, XSP_RING_NO_PROBE: none. */
enum xsp_ring_record_is xsp_ring_convert(const struct xsp_ring_record *record,
					 const uint32_t *probes, uint32_t functions,
					 struct xsp_event *e);

#endif
