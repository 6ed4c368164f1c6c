/* SPDX-License-Identifier: BSD-2-Clause */
/* load.h - the library: is it one, is it there already, and loading it by remote calls. */
#ifndef XSP_INJECT_LOAD_H
#define XSP_INJECT_LOAD_H

#include "inject/image.h"
#include "inject/remote.h"

/* 0; 1 if a library with the same build id is mapped; a negative errno if it cannot be injected. */
int xsp_load_check(const struct xsp_image *image, const char *library, struct xsp_error *err);

struct xsp_load_order {
	const char *library; /* as we see it */
	const char *entry; /* called once; NULL: none */
	bool force_memfd; /* tests: as if the target could not see the file */
};
struct xsp_loaded {
	bool memfd; /* a copy in memory was loaded */
	int entry_value; /* what the entry function says that it returned */
};
int xsp_load(struct xsp_remote *r, const struct xsp_image *image,
	     const struct xsp_load_order *order, struct xsp_loaded *result, struct xsp_error *err);

#endif
