/* SPDX-License-Identifier: BSD-2-Clause */
/* load.h - the library: is it one, is it there already, and loading it by remote calls. */
#ifndef XSP_INJECT_LOAD_H
#define XSP_INJECT_LOAD_H

#include "inject/image.h"
#include "inject/remote.h"

/* 0; 1 if a library with the same build id is mapped; a negative errno if it cannot be injected. */
int xsp_load_check(const struct xsp_image *image, const char *library, struct xsp_error *err);
/* Loads r->options->library and calls its entry. */
int xsp_load(struct xsp_remote *r, const struct xsp_image *image, struct xsp_inject_result *result,
	     struct xsp_error *err);

#endif
