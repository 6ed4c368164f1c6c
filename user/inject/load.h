/* SPDX-License-Identifier: BSD-2-Clause */
/* load.h - loads the library by calls in the target. */
#ifndef XSP_INJECT_LOAD_H
#define XSP_INJECT_LOAD_H

#include "base/error.h"
#include "inject/reader.h"
#include "inject/remote.h"

struct xsp_load_order {
	const char *library; /* as we see it */
	const char *entry; /* called once; NULL: none */
	bool force_memfd; /* tests: copy the file, as if the target could not see it */
};
struct xsp_loaded {
	bool memfd; /* a copy in memory was loaded */
	int entry_value; /* what the entry function returned, as the target says */
};
/* `files`: what the process has mapped. */
int xsp_load(struct xsp_remote *r, const struct xsp_image_facts *facts,
	     const struct xsp_mapped_files *files, const struct xsp_load_order *order,
	     struct xsp_loaded *result, struct xsp_error *err);

#endif
