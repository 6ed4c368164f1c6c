/* SPDX-License-Identifier: BSD-2-Clause */
/* lines.h - which line of which source an instruction is of, by debug information: in the planner only. */
#ifndef XSP_TARGET_LINES_H
#define XSP_TARGET_LINES_H

#include "target/module.h"

struct xsp_code_line {
	uint64_t addr; /* asked for */
	char *path; /* NULL: not known. The caller frees it */
	int line;
};

/*
 * Fills the lines of these instructions, which come in ascending order, in at most `limit_ms` of the processor. Of code that
 * the compiler has put there from a header of the system (what a container's allocator is made of) it is the line that called
 * it, in the first file that is none.
 */
void xsp_module_lines(struct xsp_module *m, struct xsp_code_line *lines, size_t count,
		      unsigned limit_ms);

#endif
