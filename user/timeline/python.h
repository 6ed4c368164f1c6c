/* SPDX-License-Identifier: BSD-2-Clause */
/* python.h - a span's Python stack, from its section. */
#ifndef XSP_TIMELINE_PYTHON_H
#define XSP_TIMELINE_PYTHON_H

#include "timeline/timeline.h"

/* One frame; texts are raw bytes, zero-terminated, and live as long as the timeline. */
struct xsp_python_line {
	const char *path; /* of the file; "" if not readable */
	size_t path_length;
	uint32_t line; /* 0: not known */
	const char *function;
};

/* The stack of a section PYTHON, or NULL: not in the capture. */
const struct xsp_capture_python *xsp_timeline_python(const struct xsp_timeline *t,
						     const struct xsp_section *section);
/* Python lines were on by default and were dropped at this time (CLOCK_MONOTONIC): later spans have
 * none. 0: on to the end. */
uint64_t xsp_timeline_python_until_ns(const struct xsp_timeline *t);
/* False: the name is not in the capture. */
bool xsp_timeline_python_line(const struct xsp_timeline *t,
			      const struct xsp_capture_python_frame *frame,
			      struct xsp_python_line *out);
/* The program's own innermost frame from `first` on, neither the interpreter's nor a package's;
 * `first` if there is none. */
uint32_t xsp_timeline_python_own(const struct xsp_timeline *t,
				 const struct xsp_capture_python *stack, uint32_t first);
/* "train.py:21 train_step" */
#define XSP_PYTHON_LINE_MAX (XSP_NAME_MAX + 16)
void xsp_python_line_show(const struct xsp_python_line *l, char text[XSP_PYTHON_LINE_MAX]);
/* Splits "train.py:21 Net.forward". *function: where the function's name begins; *file: length
 * of the file's name. False: not such a line. */
bool xsp_python_line_split(const char *text, size_t *file, const char **function);

/* The innermost torch.nn.Module that is called in a stack, from frame `first` on. Its path is the
 * names of attributes from the outermost module on; a name may have several parts ("layers.0"). The
 * outermost module has class and number ("Linear_0"), and so has a module that is no child of those
 * around it. Raw bytes; count 0: there is none. */
struct xsp_python_module {
	const char *names[XSP_PYTHON_MAX];
	uint32_t count;
};
void xsp_timeline_python_module(const struct xsp_timeline *t,
				const struct xsp_capture_python *stack, uint32_t first,
				struct xsp_python_module *out);

#endif
