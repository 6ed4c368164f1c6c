/* SPDX-License-Identifier: BSD-2-Clause */
/* plan_private.h - shared by plan.c, plan_read.c and plan_attach.c. */
#ifndef XSP_ATTACH_PLAN_PRIVATE_H
#define XSP_ATTACH_PLAN_PRIVATE_H

#include "attach/plan.h"

static inline bool is_span(const struct xsp_probe *p)
{
	return p->action == XSP_ACTION_SPAN || p->action == XSP_ACTION_NAMED_SPAN;
}

/* Are its exits sites, too? */
static inline bool has_exits(const struct xsp_probe *p)
{
	return is_span(p) || (p->action == XSP_ACTION_HEAP && p->detail.exit != 0);
}

/* A return probe finds the return address where the stack pointer points, or in the link register
 * that a function's first instruction still has. */
bool xsp_plan_allows_return_probe(const struct xsp_planned_probe *p);

/* Says what is being done; the file's name is put behind it. */
void xsp_plan_progress(const struct xsp_plan *plan, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
