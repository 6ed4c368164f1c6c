/* SPDX-License-Identifier: BSD-2-Clause */
/* wrap.h - breaks lines between words that are longer than the terminal is wide. */
#ifndef XSP_BASE_WRAP_H
#define XSP_BASE_WRAP_H

#include <stddef.h>
#include <stdio.h>

/*
 * Returns a stream that writes to `to` and keeps lines within `width` columns. The rest of a long
 * line goes below its last column ("key      text"), or is indented a little if that leaves no
 * room. Words that are wider than a line are broken. A character counts as one column, an escape
 * sequence as none. An unfinished line is passed on as it is. If it begins with a carriage return,
 * it is a status line, and the next line replaces it. `to` stays the caller's and must outlive the
 * stream. Close it with fclose(), or leave it to exit(). NULL: out of memory.
 */
FILE *xsp_wrap_open(FILE *to, size_t width);

#endif
