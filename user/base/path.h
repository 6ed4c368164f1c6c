/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef XSP_BASE_PATH_H
#define XSP_BASE_PATH_H

#include <string.h>

/* The part of `path` after the last slash; all of it if there is none. */
static inline const char *xsp_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* An address (SCHEME:/...) as messages repeat it: not if a password may be in it. */
static inline const char *xsp_address_shown(const char *text)
{
	return strstr(text, ":/") != NULL && strpbrk(text, "@?&;=#%") != NULL ? "SCHEME://..."
									      : text;
}

#endif
