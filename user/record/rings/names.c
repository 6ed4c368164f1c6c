/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rings/names.h"

#include <stdlib.h>

void xsp_ring_names_free(struct xsp_ring_names *n)
{
	free(n->hash);
	n->hash = NULL;
}

struct name_event {
	struct xsp_event_name name;
	char text[XSP_NAME_MAX];
};

static void fill(struct name_event *e, const struct xsp_event *of, uint64_t hash, uint32_t length,
		 bool cut)
{
	e->name = (struct xsp_event_name){.head = *of, .name_hash = hash, .length = length};
	e->name.head.kind = XSP_EVENT_NAME;
	e->name.head.flags = cut ? XSP_EVENT_NAME_CUT : 0;
	e->name.head.size = (uint16_t)(sizeof(e->name) + ((length + 7) & ~7U));
}

/* The hash of the name at that place; 0: it is lost. *e: what must be put before it is used, if its size is not 0; its head
 * is as that of `of`. */
static uint64_t find(struct xsp_ring_names *n, const struct xsp_node_names *keys,
		     const struct xsp_ring_memory *m, uint64_t place, const struct xsp_event *of,
		     struct name_event *e)
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
	*e = (struct name_event){0};
	if (!xsp_ring_memory_name(m, place, e->text, &length, &cut))
		return 0;
	n->hash[place] = xsp_node_names_hash(keys, e->text, length);
	fill(e, of, n->hash[place], length, cut);
	return n->hash[place];
}

int xsp_put_name(struct xsp_ring_names *n, const struct xsp_node_names *keys,
		 const struct xsp_ring_memory *m, uint64_t place, struct xsp_event *of,
		 uint64_t *hash, int (*put)(void *ctx, const struct xsp_event *e), void *ctx)
{
	struct name_event name;

	*hash = find(n, keys, m, place, of, &name);
	if (*hash == 0) {
		n->lost++;
		of->flags |= XSP_EVENT_NAME_LOST;
	}
	return name.name.head.size != 0 ? put(ctx, &name.name.head) : 0;
}

int xsp_put_region(struct xsp_ring_names *n, const struct xsp_node_names *keys,
		   const struct xsp_ring_memory *m, uint64_t place, union xsp_ring_event *e,
		   int (*put)(void *ctx, const struct xsp_event *e), void *ctx)
{
	uint64_t hash;
	const int rc = xsp_put_name(n, keys, m, place, &e->head, &hash, put, ctx);

	/* in both structs at one place */
	e->range.name_hash = hash;
	return rc < 0 ? rc : put(ctx, &e->head);
}

int xsp_put_args(struct xsp_ring_names *n, const struct xsp_ring_memory *m, uint64_t place,
		 const struct xsp_event *e, int (*put)(void *ctx, const struct xsp_event *e),
		 void *ctx)
{
	struct {
		struct xsp_event_range entry;
		struct xsp_section section;
		uint8_t rest[XSP_RING_ARGS_MAX - sizeof(struct xsp_section)];
	} all;

	if (!xsp_ring_memory_section(m, place, XSP_SECTION_ARGS, &all.section, XSP_RING_ARGS_MAX)) {
		n->lost++;
		return put(ctx, e);
	}
	all.entry = (struct xsp_event_range){.head = *e};
	all.entry.head.flags |= XSP_EVENT_SECTIONS;
	all.entry.head.size = (uint16_t)(sizeof(all.entry) + all.section.size);
	return put(ctx, &all.entry.head);
}
