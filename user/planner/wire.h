/* SPDX-License-Identifier: BSD-2-Clause */
/* wire.h - a planned module as bytes. */
#ifndef XSP_PLANNER_WIRE_H
#define XSP_PLANNER_WIRE_H

#include "planner/plan.h"

/* Gathers bytes and hands them on a part at a time. */
struct xsp_wire {
	int (*send)(void *ctx, const void *data, size_t size); /* 0 or a negative errno */
	void *ctx;
	uint8_t *part; /* of `room` bytes */
	size_t room, used;
	int error;
};
/* With these of its probes. The last `used` bytes stay in `part`. */
int xsp_wire_put(struct xsp_wire *out, const struct xsp_planned_module *m, size_t from, size_t to);
/* The module has the probes that were put. Checks all that is used as an index or a length. -EPROTO: they are not a
 * module's, -ENOMEM. */
int xsp_wire_get(const uint8_t *data, size_t size, struct xsp_planned_module *m);

#endif
