/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/files/late_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

int xsp_late_library_load(const struct xsp_late_library *library, void *pointers,
			  struct xsp_error *err)
{
	void *handle = dlopen(library->soname, RTLD_NOW | RTLD_LOCAL);
	int missing = handle == NULL;

	for (size_t i = 0; i < library->count && !missing; i++) {
		void *function = dlsym(handle, library->functions[i]);
		/* C has no conversion between pointers to functions and to objects: copy */
		memcpy((char *)pointers + i * sizeof(function), &function, sizeof(function));
		missing = function == NULL;
	}
	if (!missing)
		return 0;
	const char *why = dlerror();
	return xsp_error_set(err, -ENOENT, XSP_STATUS_FAILED,
			     "%s takes %s, which cannot be loaded here (%.300s): install it",
			     library->needed_for, library->soname,
			     why != NULL ? why : "no reason given");
}
