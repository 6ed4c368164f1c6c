/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pack.h - chunks on their way to the file and back: packed by zstd, in a thread of their own. Private to user/capture/.
 * Of zlib and zstd at level 1, zstd makes chunks half as large in a quarter of the time.
 */
#ifndef XSP_CAPTURE_PACK_H
#define XSP_CAPTURE_PACK_H

#include "capture/format.h"

struct xsp_packer;

struct xsp_packer *xsp_packer_new(void); /* NULL: no memory */
void xsp_packer_free(struct xsp_packer *p); /* NULL is allowed */

/* Packs the payload of the chunk, and sets its length and flags for that. The result is the packer's, until the next
 * call. NULL: it would not be shorter, or there is no memory; the header is as before. */
const void *xsp_pack(struct xsp_packer *p, struct xsp_chunk_header *h, const void *payload);

/* The reverse: `out` has room for h->unpacked bytes. False: it is damaged. */
bool xsp_unpack(struct xsp_packer *p, const struct xsp_chunk_header *h, const void *packed,
		void *out);

/* Chunks that wait for the thread that stores them. */
struct xsp_chunk_queue;

/* `store` is called in that thread, for one chunk after the other. hurry: many wait. 0 or a negative errno. */
typedef void (*xsp_chunk_store_fn)(void *ctx, struct xsp_chunk_header *h, const void *payload,
				   bool hurry);
int xsp_chunk_queue_new(xsp_chunk_store_fn store, void *ctx, struct xsp_chunk_queue **out);
/* Copies the chunk; waits while too many of them wait. 0 or -ENOMEM. */
int xsp_chunk_queue_put(struct xsp_chunk_queue *q, const struct xsp_chunk_header *h,
			const void *payload);
void xsp_chunk_queue_wait(struct xsp_chunk_queue *q); /* until all are stored */
void xsp_chunk_queue_free(struct xsp_chunk_queue *q); /* stores what waits. NULL is allowed */

#endif
