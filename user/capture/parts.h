/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parts.h - a recording in several files. Each part is a capture complete in itself. xsp_capture_open() reads "A,B,C",
 * parts that follow one another, as one: what is open at the end of a part goes on in the next.
 */
#ifndef XSP_CAPTURE_PARTS_H
#define XSP_CAPTURE_PARTS_H

#include "capture/capture.h"

/* xsp_capture_create(), but chunks are packed and written by a thread: errors, bytes and what a reader finds come a little
 * later. `split`: the file is the first part of several. */
int xsp_capture_create_packed(int fd, const char *display_path, bool split,
			      struct xsp_capture_writer **out, struct xsp_error *err);

enum xsp_capture_mark {
	XSP_MARK_NONE,
	XSP_MARK_AGAIN, /* what follows is for who reads this part without the one before it */
	XSP_MARK_CLOSES, /* ... without the next one */
};
/* Writes the open chunks, and marks the next ones. */
int xsp_capture_mark(struct xsp_capture_writer *w, enum xsp_capture_mark mark);

/*
 * Ends the part, which was recorded from start_ns to end_ns, and begins the next one in the empty file `fd`, which it owns
 * if it returns 0. All that was defined so far is defined again there, after XSP_MARK_AGAIN, which still holds. 0 or a
 * negative errno: then nothing more can be written.
 */
int xsp_capture_next_part(struct xsp_capture_writer *w, int fd, const char *display_path,
			  uint64_t start_ns, uint64_t end_ns);
uint64_t xsp_capture_part_bytes(const struct xsp_capture_writer *w);

/* xsp_event_times.ended: these sums are of the time before the part. */
#define XSP_TIMES_BEFORE 2U

/* Is the file a part of a recording? *id: the recording's number. */
bool xsp_capture_is_part(const char *path, uint64_t *id);
/* Of a reader: how many parts it reads, and the first and the last one's number. 0: it is no part. */
size_t xsp_capture_parts(const struct xsp_capture_reader *r, uint32_t *first, uint32_t *last);

#endif
