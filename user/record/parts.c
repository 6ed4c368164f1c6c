/* SPDX-License-Identifier: BSD-2-Clause */
/* parts.c - --split: a file ends, and the recording goes on in the next one. */
#include "record/recorder_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file_io.h"
#include "capture/parts.h"

#define EVENTS 100000U /* of each ring: so few are older than the edge, and come after it */
#define NAMES_NS 50000000ULL /* naming addresses at an edge takes at most so long */

/* With what the reader of a part alone would lack at its end. */
static int close_part(struct xsp_recorder *r, const struct xsp_thread_now *rows, size_t count,
		      uint64_t edge_ns)
{
	int rc = xsp_overhead_edge(r, edge_ns);

	if (rc == 0 && r->frames != NULL)
		rc = xsp_frames_resolve(r->frames, NAMES_NS, false);
	if (rc == 0)
		rc = xsp_recorder_put_so_far(r);
	if (rc == 0)
		rc = xsp_capture_mark(r->writer, XSP_MARK_CLOSES);
	for (size_t i = 0; i < count && rc == 0; i++) {
		const struct xsp_event_wait *w = &rows[i].open;
		if (w->head.kind != 0 &&
		    w->head.time_ns - w->left_ns >= r->options.attach.wait_least_ns)
			rc = xsp_recorder_put_event(r, &w->head);
		if (rc == 0)
			rc = xsp_recorder_put_event(r, &rows[i].times.head);
	}
	return rc;
}

/* With what the reader of the part alone has to know of before. */
static int begin_part(struct xsp_recorder *r, struct xsp_thread_now *rows, size_t count)
{
	struct xsp_process_memory_event memory;
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++) {
		rows[i].times.ended = XSP_TIMES_BEFORE;
		rc = xsp_recorder_put_event(r, &rows[i].times.head);
	}
	for (size_t i = 0; i < r->process_count && rc == 0; i++)
		if (xsp_recorder_memory_event(&r->processes[i], &memory)) {
			memory.head.time_ns = r->part_ns;
			rc = xsp_recorder_put_event(r, &memory.head);
		}
	if (rc == 0)
		rc = xsp_capture_mark(r->writer, XSP_MARK_NONE);
	return rc == 0 ? xsp_capture_put_clock(r->writer) : rc;
}

int xsp_recorder_next_part(struct xsp_recorder *r, const char *path, struct xsp_error *err)
{
	struct xsp_thread_now *rows = NULL;
	struct xsp_new_file *file = NULL;
	size_t count = 0;
	int rc = xsp_new_file_open(path, NULL, &file), fd = -1;

	if (rc == 0 && (fd = fcntl(xsp_new_file_descriptor(file), F_DUPFD_CLOEXEC, 3)) < 0)
		rc = -errno;
	if (rc == 0 && r->options.attach.waits)
		rc = xsp_broker_times(r->broker, &rows, &count);
	if (rc == 0 && xsp_drain_run(r->drain, EVENTS) < 0)
		rc = -EIO;
	const uint64_t edge_ns = xsp_now_ns();
	if (rc == 0)
		rc = close_part(r, rows, count, edge_ns);
	if (rc == 0) {
		rc = xsp_capture_next_part(r->writer, fd, path, r->part_ns, edge_ns);
		fd = -1;
		r->part_ns = edge_ns;
		xsp_new_file_free(r->file);
		r->file = file;
		file = NULL;
	}
	if (rc == 0)
		rc = begin_part(r, rows, count);
	xsp_close(fd);
	xsp_new_file_free(file);
	free(rows);
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "%s cannot be written: %s", path,
				      strerror(-rc))
		      : 0;
}

uint64_t xsp_recorder_part_bytes(const struct xsp_recorder *r)
{
	return r->writer != NULL ? xsp_capture_part_bytes(r->writer) : 0;
}
