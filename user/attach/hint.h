/* SPDX-License-Identifier: BSD-2-Clause */
/* hint.h - why a pattern finds nothing, or less than its author expects: what the files say, read by the
 * planner. */
#ifndef XSP_ATTACH_HINT_H
#define XSP_ATTACH_HINT_H

#include "attach/plan.h"
#include "planner/hint.h"

/* What the first of the plan's modules that has something to say says; "": none has. `p` is one of the
 * plan's own patterns. Bounded in time; also of processes that have ended. */
void xsp_hint(const struct xsp_plan *plan, struct xsp_broker *b, enum xsp_hint kind,
	      const struct xsp_pattern *p, char text[static XSP_HINT_SIZE]);

#endif
