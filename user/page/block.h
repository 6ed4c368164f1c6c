/* SPDX-License-Identifier: BSD-2-Clause */
/* block.h - a block of the page (page.h): what is written into it is compressed and put into base64 as it comes. */
#ifndef XSP_REPORT_BLOCK_H
#define XSP_REPORT_BLOCK_H

#include <stdio.h>

/* A stream that ends up in `to`, which stays the caller's, as the element with that id; `key` NULL: as gzip, without the
 * element and the base64. NULL: out of memory. */
FILE *xsp_block_open(FILE *to, const char *key);
/* Ends the block and closes it. 0 or a negative errno. */
int xsp_block_close(FILE *block);

#endif
