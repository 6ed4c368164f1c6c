/* SPDX-License-Identifier: BSD-2-Clause */
/* hint.h - hints from files about a pattern that finds nothing, or less than its author expects. */
#ifndef XSP_ATTACH_HINT_H
#define XSP_ATTACH_HINT_H

#include "attach/plan.h"
#include "planner/hint.h"

/* Fills `text` with the first hint that a module of the plan gives; "": none does. `p` must be one of the plan's
 * patterns. The time is bounded. Works for processes that have ended, too. */
void xsp_hint(const struct xsp_plan *plan, struct xsp_broker *b, enum xsp_hint kind,
	      const struct xsp_pattern *p, char text[static XSP_HINT_SIZE]);

#endif
