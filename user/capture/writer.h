/* SPDX-License-Identifier: BSD-2-Clause */
/* writer.h - what parts.c needs of the writer. Private to user/capture/. */
#ifndef XSP_CAPTURE_WRITER_H
#define XSP_CAPTURE_WRITER_H

#include "capture/format.h"

/* What was defined so far; NULL: this recording is not split. */
struct xsp_capture_reader *xsp_writer_kept(const struct xsp_capture_writer *w);
/* Ends the file in order and begins another one. 0 or a negative errno. */
int xsp_writer_next_file(struct xsp_capture_writer *w, int fd, const char *display_path,
			 uint64_t start_ns, uint64_t end_ns);
void xsp_writer_set_flags(struct xsp_capture_writer *w, unsigned flags); /* of the next chunks */
int xsp_writer_put_text(struct xsp_capture_writer *w, uint64_t hash, uint16_t flags,
			const char *text, size_t length);
int xsp_writer_put_before(struct xsp_capture_writer *w, const struct xsp_capture_stats *s);

#endif
