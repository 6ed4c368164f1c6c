/* SPDX-License-Identifier: BSD-2-Clause */
/* costs.h - what each thread, and each process, spends in each probe, added up over an interval. Zero-initialise. */
#ifndef XSP_RECORD_COSTS_H
#define XSP_RECORD_COSTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/rows/tally.h"

struct xsp_cost {
	uint32_t tid, probe;
	uint64_t ns, calls;
	uint32_t pid; /* 0: not known */
};

struct xsp_costs {
	XSP_TALLY(struct xsp_cost) of; /* in order of arrival */
	size_t last; /* the row of the last addition */
};

/* Drops it without memory: it is an estimate. */
void xsp_costs_add_new(struct xsp_costs *c, uint32_t tid, uint32_t pid, uint32_t probe, uint64_t ns,
		       uint64_t calls);

static inline void xsp_costs_add(struct xsp_costs *c, uint32_t tid, uint32_t pid, uint32_t probe,
				 uint64_t ns, uint64_t calls)
{
	struct xsp_cost *r = c->of.count > 0 ? &c->of.rows[c->last] : NULL;

	if (r == NULL || r->tid != tid || r->probe != probe) {
		xsp_costs_add_new(c, tid, pid, probe, ns, calls);
		return;
	}
	r->ns += ns;
	r->calls += calls;
}

void xsp_costs_clear(struct xsp_costs *c);
void xsp_costs_free(struct xsp_costs *c);

#endif
