/* SPDX-License-Identifier: BSD-2-Clause */
/* scopes.h - XSigma's scopes, of which an agent can record those that one function begins, with their name, and one ends. */
#ifndef XSP_RECORD_RINGS_SCOPES_H
#define XSP_RECORD_RINGS_SCOPES_H

#include "attach/plan.h"

/* Is this probe of the module one half of such a scope? Then the module has the other one. */
bool xsp_scope_has(const struct xsp_planned_module *m, const struct xsp_probe *p);
/* XSP_EVENT_BEGIN or _END; *guard: an object begins and ends it. XSP_EVENT_INVALID: it is none. */
uint8_t xsp_scope_kind(const struct xsp_planned_module *m, const struct xsp_probe *p, bool *guard);

#endif
