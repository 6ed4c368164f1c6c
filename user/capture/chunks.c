/* SPDX-License-Identifier: BSD-2-Clause */
/* chunks.c - walks from chunk to chunk and finds its way after damage. */
#include "capture/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file_io.h"
#include "base/rows/grow.h"

#define SEARCH_SIZE ((size_t)1 << 18)

/* Reads up to `size` bytes that lie before the limit. */
static long read_before_limit(struct xsp_capture_reader *r, void *buffer, size_t size, uint64_t at)
{
	if (at >= r->limit)
		return 0;
	if (size > r->limit - at)
		size = (size_t)(r->limit - at);
	return xsp_read_at(r->fd, buffer, size, at);
}

static bool header_good(const struct xsp_capture_reader *r, const struct xsp_chunk_header *h)
{
	if (h->magic != XSP_CHUNK_MAGIC || h->length % 8 != 0 || h->length > XSP_CHUNK_MAX)
		return false;
	if (r->id_known && h->file_id != r->file_id)
		return false;
	return h->header_crc == xsp_capture_crc(h, offsetof(struct xsp_chunk_header, header_crc));
}

/* The header at `at`, if it is good and its payload lies in the file. 1, 0, -errno. */
static int header_at(struct xsp_capture_reader *r, uint64_t at, struct xsp_chunk_header *h)
{
	long n = read_before_limit(r, h, sizeof(*h), at);
	if (n < 0)
		return (int)n;
	if (n < (long)sizeof(*h) || !header_good(r, h))
		return 0;
	return h->length <= r->limit - at - sizeof(*h);
}

/* Searches [from, limit) for a good header. 1 and *found, 0: none, -errno. */
static int search(struct xsp_capture_reader *r, uint64_t from, uint64_t *found)
{
	static const uint32_t magic = XSP_CHUNK_MAGIC;
	unsigned char *window = malloc(SEARCH_SIZE);
	if (window == NULL)
		return -ENOMEM;
	int result = 0;
	while (result == 0) {
		long n = read_before_limit(r, window, SEARCH_SIZE, from);
		if (n < (long)sizeof(struct xsp_chunk_header)) {
			result = n < 0 ? (int)n : 0;
			break;
		}
		size_t last = (size_t)n - sizeof(magic);
		const unsigned char *p = window;
		while (result == 0 &&
		       (p = memmem(p, (size_t)n - (size_t)(p - window), &magic, sizeof(magic)))) {
			struct xsp_chunk_header h;
			*found = from + (uint64_t)(p - window);
			result = header_at(r, *found, &h);
			p++;
		}
		from += last + 1; /* a magic may lie across the seam */
	}
	free(window);
	return result;
}

static void count_gap(struct walk *w, uint64_t sequence, uint64_t skipped)
{
	uint64_t gap = sequence > w->sequence ? sequence - w->sequence : 0;
	if (skipped > 0 && (gap == 0 || gap > skipped / sizeof(struct xsp_chunk_header) + 1))
		gap = 1; /* sequence numbers do not explain the hole */
	w->bad = gap > UINT64_MAX - w->bad ? UINT64_MAX : w->bad + gap;
}

/* The first good header from w->at on. 1 and *at; 0: there is none; -errno. */
static int find_header(struct xsp_capture_reader *r, struct walk *w, struct xsp_chunk_header *h,
		       uint64_t *at)
{
	*at = w->at;
	if (w->at >= r->limit)
		return 0;
	int found = header_at(r, *at, h);
	if (found != 0)
		return found;
	found = search(r, *at + 1, at);
	if (found > 0)
		found = header_at(r, *at, h);
	if (found == 0) {
		w->torn += r->limit - w->at;
		w->at = r->limit;
	}
	return found;
}

void xsp_part_enter(struct xsp_capture_reader *r, struct walk *w, size_t part)
{
	const struct part *p = &r->parts.rows[part];

	w->part = r->part = part;
	w->at = p->first_chunk;
	w->sequence = 0;
	r->fd = p->fd;
	r->limit = p->limit;
	r->first_chunk = p->first_chunk;
}

static int next_of_file(struct xsp_capture_reader *r, struct walk *w, struct xsp_chunk_header *h,
			uint64_t *payload)
{
	uint64_t at;
	int found;

	/* a chunk that was read or passed before: its events happened once */
	while ((found = find_header(r, w, h, &at)) > 0 && h->sequence < w->sequence) {
		w->bad++;
		w->at = at + sizeof(*h) + h->length;
	}
	if (found <= 0)
		return found;
	if (!r->id_known) {
		/* the file header is damaged; the first chunk has the number, too */
		r->file_id = r->key = h->file_id;
		r->id_known = true;
	}
	count_gap(w, h->sequence, at - w->at);
	w->sequence = h->sequence + 1;
	*payload = at + sizeof(*h);
	w->at = *payload + h->length;
	return 1;
}

int xsp_chunk_next(struct xsp_capture_reader *r, struct walk *w, struct xsp_chunk_header *h,
		   uint64_t *payload)
{
	for (;;) {
		const int found = next_of_file(r, w, h, payload);
		if (found < 0 || (found == 0 && w->part + 1 >= r->parts.count))
			return found;
		if (found == 0)
			xsp_part_enter(r, w, w->part + 1);
		else if (!(h->flags & XSP_CHUNK_AGAIN && w->part > 0) &&
			 !(h->flags & XSP_CHUNK_CLOSES && w->part + 1 < r->parts.count))
			return 1;
	}
}

static int unpack(struct xsp_capture_reader *r, struct xsp_chunk_header *h)
{
	if (h->unpacked % 8 != 0 || h->unpacked > XSP_CHUNK_MAX)
		return 0;
	if ((r->packer == NULL && (r->packer = xsp_packer_new()) == NULL) ||
	    xsp_grow(&r->buffer, &r->buffer_capacity, (size_t)h->unpacked) < 0)
		return -ENOMEM;
	if (!xsp_unpack(r->packer, h, r->packed, r->buffer))
		return 0;
	h->length = h->unpacked;
	return 1;
}

int xsp_chunk_load(struct xsp_capture_reader *r, struct xsp_chunk_header *h, uint64_t payload)
{
	const bool packed = h->flags & XSP_CHUNK_PACKED;
	int err = packed ? xsp_grow(&r->packed, &r->packed_capacity, (size_t)h->length)
			 : xsp_grow(&r->buffer, &r->buffer_capacity, (size_t)h->length);
	if (err < 0)
		return err;
	unsigned char *to = packed ? r->packed : r->buffer;
	long n = xsp_read_at(r->fd, to, h->length, payload);
	if (n < 0)
		return (int)n;
	/* shorter: the file was cut since it was opened */
	if ((size_t)n != h->length || xsp_capture_crc(to, h->length) != h->payload_crc)
		return 0;
	return packed ? unpack(r, h) : 1;
}
