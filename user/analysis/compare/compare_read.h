/* SPDX-License-Identifier: BSD-2-Clause */
/* compare_read.h - what a comparison needs of a capture (compare.h), read from it. */
#ifndef XSP_ANALYSIS_COMPARE_READ_H
#define XSP_ANALYSIS_COMPARE_READ_H

#include "analysis/compare/compare.h"
#include "model/pass.h"

struct xsp_compare_how {
	const struct xsp_cut *cut; /* a part of it; NULL: all */
	const char *step; /* what marks a step; NULL: the known names */
	/* Who else listens to its run, without a clear(); zeros: nobody. At its end() the capture's series is complete. */
	struct xsp_pass_listener beside;
};

/* Runs through the capture. `path`, for messages, is copied. 0 or a negative errno and *err;
 * xsp_compare_clear() in either case. */
int xsp_compare_read(struct xsp_capture_reader *r, const char *path,
		     const struct xsp_compare_how *how, struct xsp_compare_capture *out,
		     struct xsp_error *err);
void xsp_compare_clear(struct xsp_compare_capture *c);

#endif
