/* SPDX-License-Identifier: BSD-2-Clause */
/* wire.h - turns a planned module into bytes, and back. */
#ifndef XSP_PLANNER_WIRE_H
#define XSP_PLANNER_WIRE_H

#include "planner/plan.h"

/* Gathers bytes and sends them in parts. */
struct xsp_wire {
	int (*send)(void *ctx, const void *data, size_t size); /* 0 or a negative errno */
	void *ctx;
	uint8_t *part; /* `room` bytes */
	size_t room, used;
	int error;
};
/* Puts the module and these of its probes. The last `used` bytes stay in `part`. */
int xsp_wire_put(struct xsp_wire *out, const struct xsp_planned_module *m, size_t from, size_t to);
/* Fills the module with the probes that were put. Checks every index and length. -EPROTO: these bytes are no module;
 * -ENOMEM. */
int xsp_wire_get(const uint8_t *data, size_t size, struct xsp_planned_module *m);

#endif
