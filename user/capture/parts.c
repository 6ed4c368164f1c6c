/* SPDX-License-Identifier: BSD-2-Clause */
/* parts.c - parts.h: the edge between two parts of a recording, and what the next one has to say again. */
#include "capture/parts.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file_io.h"
#include "capture/reader.h"
#include "capture/writer.h"

int xsp_capture_mark(struct xsp_capture_writer *w, enum xsp_capture_mark mark)
{
	const int rc = xsp_capture_flush(w);

	xsp_writer_set_flags(w, mark == XSP_MARK_AGAIN	  ? XSP_CHUNK_AGAIN
				: mark == XSP_MARK_CLOSES ? XSP_CHUNK_CLOSES
							  : 0);
	return rc;
}

/* Of a key's infos the last one counts. */
static int put_infos(const struct xsp_capture_reader *k, struct xsp_capture_writer *w)
{
	int rc = 0;

	for (size_t i = 0; i < k->info_count && rc == 0; i++)
		if (xsp_capture_info(k, k->infos[i].key) == k->infos[i].value)
			rc = xsp_capture_put_info(w, k->infos[i].key, k->infos[i].value);
	return rc;
}

static int put_name(struct xsp_capture_writer *w, const struct xsp_capture_name *n)
{
	return xsp_writer_put_text(w, n->hash, n->cut ? XSP_EVENT_NAME_CUT : 0, n->text,
				   strlen(n->text));
}

/* The reader has taken what the innermost frame calls from the front. */
static int put_python(struct xsp_capture_writer *w, const struct xsp_capture_python *p)
{
	struct xsp_capture_python whole = *p;

	if (p->call != 0) {
		whole.frames--;
		whole.count++;
	}
	return xsp_capture_put_python(w, &whole);
}

/* Clocks, counters and windows are of the part that they are in. Modules before what names them. */
static int put_kept(const struct xsp_capture_reader *k, struct xsp_capture_writer *w)
{
	int rc = put_infos(k, w);

#define PUT_ALL(many, put)                                                                         \
	for (size_t i = 0; i < k->many.count && rc == 0; i++)                                      \
		rc = put(w, &k->many.rows[i]);
	PUT_ALL(processes, xsp_capture_put_process)
	PUT_ALL(threads, xsp_capture_put_thread)
	PUT_ALL(modules, xsp_capture_put_module)
	PUT_ALL(mappings, xsp_capture_put_mapping)
	PUT_ALL(probes, xsp_capture_put_probe)
	PUT_ALL(operators, xsp_capture_put_operator)
	PUT_ALL(let_gos, xsp_capture_put_let_go)
	PUT_ALL(names, put_name)
	PUT_ALL(pythons, put_python)
	return rc == 0 && k->stats_known ? xsp_writer_put_before(w, &k->stats) : rc;
}

int xsp_capture_next_part(struct xsp_capture_writer *w, int fd, const char *display_path,
			  uint64_t start_ns, uint64_t end_ns)
{
	struct xsp_capture_reader *kept = xsp_writer_kept(w);
	int rc = xsp_writer_next_file(w, fd, display_path, start_ns, end_ns);

	if (rc < 0)
		return rc;
	xsp_writer_set_flags(w, XSP_CHUNK_AGAIN);
	return put_kept(kept, w);
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
