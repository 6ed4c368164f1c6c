/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef XSP_BASE_PATH_H
#define XSP_BASE_PATH_H

#include <string.h>

/* What stands behind the last slash; all of it if there is none. A part of `path`. */
static inline const char *xsp_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

#endif
