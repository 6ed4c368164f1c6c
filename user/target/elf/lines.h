/* SPDX-License-Identifier: BSD-2-Clause */
/* lines.h - the source lines of instructions, by debug information: only in the planner. */
#ifndef XSP_TARGET_LINES_H
#define XSP_TARGET_LINES_H

#include "target/module.h"

struct xsp_code_line {
	uint64_t addr; /* asked for */
	char *path; /* NULL: unknown. The caller frees it */
	int line;
};

/*
 * Fills in the lines of these instructions, which are in ascending order, within `limit_ms` of CPU
 * time. Code from a header of the system (such as the allocator of a container) gets
 * the line that called it, in the first other file.
 */
void xsp_module_lines(struct xsp_module *m, struct xsp_code_line *lines, size_t count,
		      unsigned limit_ms);

#endif
