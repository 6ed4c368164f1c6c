/* SPDX-License-Identifier: BSD-2-Clause */
/* capture_files.h - the words of a verb that name captures: files, folders, sides of a
 * comparison. */
#ifndef XSP_CLI_CAPTURE_FILES_H
#define XSP_CLI_CAPTURE_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define XSP_CAPTURE_SIDES 26U /* A to Z */

struct xsp_capture_files {
	char **paths;
	size_t count;
	size_t ends
		/* for each side: how many captures there are up to its last one */
		[XSP_CAPTURE_SIDES];
	size_t side_count;
};

/* Do these arguments name more than one capture? */
bool xsp_capture_files_several(char **arguments, size_t count);

/* A folder stands for its *.xspt files in the order of their names. A side of "vs" may also be
 * "A1,A2". Without "vs" there is one side. 0 or a negative errno; call xsp_capture_files_clear() in
 * either case. */
int xsp_capture_files(struct xsp_capture_files *files, char **arguments, size_t count,
		      struct xsp_error *err);
/* The same for a comparison: without "vs" each argument is a side. */
int xsp_capture_sides(struct xsp_capture_files *files, char **arguments, size_t count,
		      struct xsp_error *err);
/* The number of the side that a capture is on. */
unsigned xsp_capture_side(const struct xsp_capture_files *files, size_t index);
/* Do the words (there is no vs) name parts of one recording alone? Then they become one word, *folded, malloc'd. 0 or a
 * negative errno. */
int xsp_capture_files_fold(char ***words, size_t *count, char **folded, struct xsp_error *err);
void xsp_capture_files_clear(struct xsp_capture_files *files);

#endif
