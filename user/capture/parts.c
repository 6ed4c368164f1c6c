/* SPDX-License-Identifier: BSD-2-Clause */
/* parts.c - parts.h: the edge between two parts of a recording, and what the next one has to say again. */
#include "capture/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file_io.h"
#include "capture/reader.h"
#include "capture/writer.h"

int xsp_capture_mark(struct xsp_capture_writer *w, enum xsp_capture_mark mark)
{
	const int rc = xsp_capture_flush(w);

	w->flags = mark == XSP_MARK_AGAIN    ? XSP_CHUNK_AGAIN
		   : mark == XSP_MARK_CLOSES ? XSP_CHUNK_CLOSES
					     : 0;
	return rc;
}

/* A later type may refer to an earlier one. Of the counters the reader of the part takes off what was before it. */
static int put_kept(struct xsp_capture_writer *w)
{
	struct xsp_kept *k = w->kept;
	int rc = 0;

	for (size_t i = k->of[XSP_RECORD_THREAD].count; i > 0; i--)
		if (k->of[XSP_RECORD_THREAD].rows[i - 1].over)
			xsp_kept_drop(k, XSP_RECORD_THREAD, &k->of[XSP_RECORD_THREAD].rows[i - 1]);
	for (unsigned type = XSP_RECORD_INFO; type < XSP_RECORD_TYPES; type++)
		for (size_t i = 0; i < k->of[type].count && rc == 0; i++) {
			struct xsp_record *r = k->of[type].rows[i].record;
			if (type == XSP_RECORD_STATS)
				r->type = XSP_RECORD_STATS_BEFORE;
			rc = xsp_capture_put_record(w, r);
			r->type = (uint16_t)type;
		}
	return rc;
}

int xsp_capture_next_part(struct xsp_capture_writer *w, int fd, const char *display_path,
			  uint64_t start_ns, uint64_t end_ns)
{
	char *path = strdup(display_path);

	if (path == NULL)
		return -ENOMEM;
	xsp_capture_flush(w);
	if (w->queue != NULL)
		xsp_chunk_queue_wait(w->queue); /* now nobody else writes */
	const int rc = xsp_writer_end_file(w, start_ns, end_ns);
	free(w->path);
	w->path = path;
	w->fd = fd;
	w->bytes_before += w->bytes;
	w->bytes = w->sequence = w->events = 0;
	w->part++;
	w->error = rc < 0 ? rc : xsp_writer_put_header(w);
	w->flags = XSP_CHUNK_AGAIN;
	return w->error == 0 ? put_kept(w) : w->error;
}

uint64_t xsp_capture_part_bytes(const struct xsp_capture_writer *w)
{
	return w->bytes;
}

bool xsp_capture_is_part(const char *path, uint64_t *id)
{
	struct xsp_file_header h;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const bool whole = fd >= 0 && xsp_read_at(fd, &h, sizeof(h), 0) == (long)sizeof(h);

	xsp_close(fd);
	if (!whole || memcmp(h.magic, XSP_FILE_MAGIC, sizeof(h.magic)) != 0 ||
	    h.major <= XSP_FILE_PLAIN || h.part == 0 ||
	    h.crc != xsp_capture_crc(&h, offsetof(struct xsp_file_header, crc)))
		return false;
	*id = h.file_id;
	return true;
}

size_t xsp_capture_parts(const struct xsp_capture_reader *r, uint32_t *first, uint32_t *last)
{
	*first = r->parts.rows[0].number;
	*last = r->parts.rows[r->parts.count - 1].number;
	return *first != 0 ? r->parts.count : 0;
}
