/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rings/scopes.h"

#include <string.h>

static bool begins(const struct xsp_probe *p)
{
	return p->action == XSP_ACTION_RANGE_BEGIN && p->range.name == XSP_RANGE_NAME_TEXT;
}

bool xsp_scope_has(const struct xsp_planned_module *m, const struct xsp_probe *p)
{
	size_t all = 0, first = 0, last = 0;

	if (strcmp(p->provider, xsp_provider_xsigma.name) != 0)
		return false;
	for (size_t i = 0; i < m->count; i++) {
		const struct xsp_probe *other = &m->probes[i].probe;
		if (other->pair != p->pair || strcmp(other->provider, p->provider) != 0)
			continue;
		all++;
		first += begins(other);
		last += other->action == XSP_ACTION_RANGE_END;
	}
	return all == 2 && first == 1 && last == 1;
}

uint8_t xsp_scope_kind(const struct xsp_planned_module *m, const struct xsp_probe *p, bool *guard)
{
	if (m == NULL || p == NULL || p->pair >= m->count || !xsp_scope_has(m, p))
		return XSP_EVENT_INVALID;
	*guard = (m->probes[p->pair].probe.range.flags & XSP_RANGE_KEYED) != 0;
	return begins(p) ? XSP_EVENT_BEGIN : XSP_EVENT_END;
}
