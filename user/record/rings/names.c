/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rings/names.h"

#include <stdlib.h>

#include "base/text.h"

void xsp_ring_names_free(struct xsp_ring_names *n)
{
	free(n->hash);
	n->hash = NULL;
}

static void fill(struct xsp_ring_name_event *e, const struct xsp_event *of, uint64_t hash,
		 uint32_t length, bool cut)
{
	e->name = (struct xsp_event_name){.head = *of, .name_hash = hash, .length = length};
	e->name.head.kind = XSP_EVENT_NAME;
	e->name.head.flags = cut ? XSP_EVENT_NAME_CUT : 0;
	e->name.head.size = (uint16_t)(sizeof(e->name) + ((length + 7) & ~7U));
}

uint64_t xsp_ring_names_find(struct xsp_ring_names *n, const struct xsp_ring_memory *m,
			     uint64_t place, const struct xsp_event *of,
			     struct xsp_ring_name_event *e)
{
	uint32_t length;
	bool cut;

	e->name.head.size = 0;
	if (n->hash == NULL)
		n->hash = calloc(XSP_RING_NAMES, sizeof(*n->hash));
	if (n->hash == NULL || place >= XSP_RING_NAMES)
		return 0;
	if (n->hash[place] != 0)
		return n->hash[place];
	*e = (struct xsp_ring_name_event){0};
	if (!xsp_ring_memory_name(m, place, e->text, &length, &cut))
		return 0;
	const uint64_t hash = xsp_text_hash(e->text, length);
	n->hash[place] = hash != 0 ? hash : 1;
	fill(e, of, n->hash[place], length, cut);
	return n->hash[place];
}
