/* SPDX-License-Identifier: BSD-2-Clause */
/* load.h - loads the library by calls in the target. */
#ifndef XSP_INJECT_LOAD_H
#define XSP_INJECT_LOAD_H

#include "base/error.h"
#include "inject/inject.h"
#include "inject/reader.h"
#include "inject/remote.h"

/* `files`: what the process has mapped. Sets result->memfd and entry_value. */
int xsp_load(struct xsp_remote *r, const struct xsp_image_facts *facts,
	     const struct xsp_mapped_files *files, const struct xsp_inject_options *options,
	     struct xsp_inject_result *result, struct xsp_error *err);

#endif
