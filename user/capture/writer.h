/* SPDX-License-Identifier: BSD-2-Clause */
/* writer.h - what the writer knows, and what parts.c needs of it. Private to user/capture/. */
#ifndef XSP_CAPTURE_WRITER_H
#define XSP_CAPTURE_WRITER_H

#include "capture/kept.h"
#include "capture/pack.h"

struct open_chunk {
	unsigned char *data; /* XSP_CHUNK_SIZE; NULL until the ring's first event */
	size_t used, written; /* bytes; those before `written` are in the file */
	uint32_t count, written_count; /* events */
	uint64_t first_ns, last_ns;
};

struct xsp_capture_writer {
	int fd; /* -1: there is no file */
	struct xsp_recent *recent; /* gets all of it, too; NULL: nothing does */
	struct xsp_kept *kept; /* what the next part has to define again; NULL: there is none */
	_Atomic int error; /* the first; 0: none */
	char *path;
	uint64_t file_id, key;
	_Atomic uint64_t bytes; /* of whole chunks in the file */
	uint64_t bytes_before; /* in earlier parts */
	uint32_t part; /* 0: it is not split */
	uint16_t flags; /* of the next chunks */
	uint64_t sequence; /* the queue's thread counts it, if there is one */
	struct xsp_packer *packer; /* NULL: chunks are not packed */
	struct xsp_chunk_queue *queue; /* NULL: chunks are written at once */
	uint64_t events;
	unsigned char *definitions;
	size_t definitions_used, definitions_capacity;
	uint32_t records;
	struct open_chunk rings[XSP_RECENT_RINGS];
};

int xsp_writer_put_header(struct xsp_capture_writer *w); /* of the file */
/* Writes the end chunk at once, and closes the file. 0 or a negative errno. */
int xsp_writer_end_file(struct xsp_capture_writer *w, uint64_t start_ns, uint64_t end_ns);

/* Does the next part define it again? Clocks, counters and windows are of the part that they are in. */
static inline bool xsp_part_repeats(const struct xsp_record *r)
{
	return r->type != XSP_RECORD_CLOCK && r->type != XSP_RECORD_LOST &&
	       r->type != XSP_RECORD_WINDOW;
}

#endif
