/* SPDX-License-Identifier: BSD-2-Clause */
/* block.h - a block of the page (page.h): a stream that compresses what is written and encodes it
 * in base64. */
#ifndef XSP_REPORT_BLOCK_H
#define XSP_REPORT_BLOCK_H

#include <stdio.h>

/* Opens a stream that writes to `to`, which the caller keeps, as the element with the id `key`.
 * `key` NULL: plain gzip, without element and base64. NULL: out of memory. */
FILE *xsp_block_open(FILE *to, const char *key);
/* Ends and closes the block. 0 or a negative errno. */
int xsp_block_close(FILE *block);

#endif
