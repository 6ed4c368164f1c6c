/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/calls/copies.h"

#include "base/saturate.h"

#define CUPTI_PAGEABLE 1 /* CUpti_ActivityMemoryKind */
#define CUPTI_TO_DEVICE 1 /* CUpti_ActivityMemcpyKind */
#define CUPTI_FROM_DEVICE 2

void xsp_copies_add(struct xsp_copies *c, const struct xsp_gpu_activity *a)
{
	const struct xsp_gpu_memcpy *copy = a->record;
	const uint64_t ns = a->end_ns - a->start_ns;
	const unsigned size = copy->bytes == 0 ? 0 : 64 - (unsigned)__builtin_clzll(copy->bytes);

	if (copy->copy_kind != CUPTI_TO_DEVICE && copy->copy_kind != CUPTI_FROM_DEVICE)
		return;
	c->count++;
	c->cut += a->cut;
	xsp_add_saturated(&c->bytes, copy->bytes);
	xsp_add_saturated(&c->ns, ns);
	c->count_below[size < 64 ? size : 63]++;
	c->ns_below[size < 64 ? size : 63] += ns;
	if (copy->source_kind != CUPTI_PAGEABLE && copy->destination_kind != CUPTI_PAGEABLE)
		return;
	c->pageable++;
	c->pageable_cut += a->cut;
	xsp_add_saturated(&c->pageable_bytes, copy->bytes);
	xsp_add_saturated(&c->pageable_ns, ns);
	if (ns > c->pageable_longest_ns) {
		c->pageable_longest_ns = ns;
		c->pageable_longest_start_ns = a->start_ns;
	}
}
