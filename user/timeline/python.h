/* SPDX-License-Identifier: BSD-2-Clause */
/* python.h - a span's Python stack, by its section. */
#ifndef XSP_TIMELINE_PYTHON_H
#define XSP_TIMELINE_PYTHON_H

#include "timeline/timeline.h"

/* One frame; texts are raw bytes, zero-terminated, and live as long as the timeline. */
struct xsp_python_line {
	const char *path; /* of the file; "" where it could not be read */
	size_t path_length;
	uint32_t line; /* 0: not known */
	const char *function;
};

/* The stack that a section PYTHON tells of, or NULL: the capture does not have it. */
const struct xsp_capture_python *xsp_timeline_python(const struct xsp_timeline *t,
						     const struct xsp_section *section);
/* False: the name is not in the capture. */
bool xsp_timeline_python_line(const struct xsp_timeline *t,
			      const struct xsp_capture_python_frame *frame,
			      struct xsp_python_line *out);

/* The torch.nn.Module whose call the frame is, "Linear_0"; NULL: it is none. */
const char *xsp_timeline_python_module(const struct xsp_timeline *t,
				       const struct xsp_capture_python_frame *frame);

#endif
