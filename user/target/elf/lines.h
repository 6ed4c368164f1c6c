/* SPDX-License-Identifier: BSD-2-Clause */
/* lines.h - where instructions stand in the source, by debug information: only in the planner. */
#ifndef XSP_TARGET_LINES_H
#define XSP_TARGET_LINES_H

#include "target/module.h"

/* The innermost ones are reported. */
#define XSP_INLINED_MOST 16
/* Bytes of a name; more are cut off. More than a capture keeps, so that it knows. */
#define XSP_INLINED_NAME 256

struct xsp_code_line {
	uint64_t addr; /* asked for */
	/* the caller frees both; NULL: unknown, or none */
	char *path;
	/* The functions that the compiler put around the instruction instead of calling them, outermost
	 * first, a newline after each; without those from headers of the system */
	char *inlined;
	unsigned helpers; /* the innermost ones of these that were put into several functions */
	int line;
	bool missed; /* there was no time to look */
};

/*
 * Fills in what is known of these instructions, which are in ascending order, within `limit_ms` of
 * CPU time beside reading the file. Code from a header of the system (such as the allocator of a
 * container) gets the line that called it, in the first other file, or none. 0, or as xsp_module_debug_info().
 */
int xsp_module_lines(struct xsp_module *m, struct xsp_code_line *lines, size_t count,
		     unsigned limit_ms);

#endif
