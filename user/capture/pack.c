/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pack.c - pack.h. Times and stack pointers of events differ from one to the next, and little else does: as steps from
 * the event before, chunks are a half of what they would be, and packed in less time.
 */
#include "capture/pack.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/rows/grow.h"

#define LEVEL 1

struct xsp_packer {
	ZSTD_CCtx *to;
	ZSTD_DCtx *from;
	unsigned char *steps, *packed;
	size_t steps_capacity, packed_capacity;
};

struct xsp_packer *xsp_packer_new(void)
{
	return calloc(1, sizeof(struct xsp_packer));
}

void xsp_packer_free(struct xsp_packer *p)
{
	if (p == NULL)
		return;
	ZSTD_freeCCtx(p->to);
	ZSTD_freeDCtx(p->from);
	free(p->steps);
	free(p->packed);
	free(p);
}

/* A damaged event ends the walk, both ways at the same place. */
static struct xsp_event *event_at(unsigned char *payload, size_t size, size_t at)
{
	return xsp_chunk_event(payload, size, at) != NULL ? (void *)(payload + at) : NULL;
}

static void to_steps(unsigned char *payload, size_t size)
{
	uint64_t time_ns = 0, sp = 0;
	struct xsp_event *e;

	for (size_t at = 0; (e = event_at(payload, size, at)) != NULL; at += e->size) {
		const uint64_t was_ns = e->time_ns, was_sp = e->sp;
		e->time_ns -= time_ns;
		e->sp -= sp;
		time_ns = was_ns;
		sp = was_sp;
	}
}

static void from_steps(unsigned char *payload, size_t size)
{
	uint64_t time_ns = 0, sp = 0;
	struct xsp_event *e;

	for (size_t at = 0; (e = event_at(payload, size, at)) != NULL; at += e->size) {
		time_ns = e->time_ns += time_ns;
		sp = e->sp += sp;
	}
}

const void *xsp_pack(struct xsp_packer *p, struct xsp_chunk_header *h, const void *payload)
{
	const size_t size = h->length, room = ZSTD_compressBound(size) + 8;

	if (p->to == NULL)
		p->to = ZSTD_createCCtx();
	if (p->to == NULL || xsp_grow(&p->packed, &p->packed_capacity, room) < 0)
		return NULL;
	if (h->type == XSP_CHUNK_EVENTS) {
		if (xsp_grow(&p->steps, &p->steps_capacity, size) < 0)
			return NULL;
		memcpy(p->steps, payload, size);
		to_steps(p->steps, size);
		payload = p->steps;
	}
	size_t packed = ZSTD_compressCCtx(p->to, p->packed, room - 8, payload, size, LEVEL);
	if (ZSTD_isError(packed))
		return NULL;
	memset(p->packed + packed, 0, 8);
	packed = (packed + 7) & ~(size_t)7;
	if (packed >= size)
		return NULL;
	h->flags |= XSP_CHUNK_PACKED;
	h->unpacked = (uint32_t)size;
	h->length = (uint32_t)packed;
	return p->packed;
}

bool xsp_unpack(struct xsp_packer *p, const struct xsp_chunk_header *h, const void *packed,
		void *out)
{
	const size_t used = ZSTD_findFrameCompressedSize(packed, h->length); /* zeros follow */

	if (p->from == NULL)
		p->from = ZSTD_createDCtx();
	if (p->from == NULL || ZSTD_isError(used) ||
	    ZSTD_decompressDCtx(p->from, out, h->unpacked, packed, used) != h->unpacked)
		return false;
	if (h->type == XSP_CHUNK_EVENTS)
		from_steps(out, h->unpacked);
	return true;
}
