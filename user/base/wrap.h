/* SPDX-License-Identifier: BSD-2-Clause */
/* wrap.h - text on a terminal: lines longer than that is wide are broken between words. */
#ifndef XSP_BASE_WRAP_H
#define XSP_BASE_WRAP_H

#include <stddef.h>
#include <stdio.h>

/*
 * A stream that writes to `to`, which stays the caller's and must outlive it, with no line longer than `width` columns.
 * The rest of a long line goes on below its last column ("key      text"), where that leaves room, else a little further
 * in than it began. A word that has no room in a line of its own is broken too. A character counts as one column, an
 * escape sequence as none. What is written without a line's end is passed on as it is; where that began with a carriage
 * return it is a status line, which the next line takes the place of.
 * NULL: out of memory. To be closed with fclose(), or left to exit().
 */
FILE *xsp_wrap_open(FILE *to, size_t width);

#endif
