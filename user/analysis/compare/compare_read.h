/* SPDX-License-Identifier: BSD-2-Clause */
/* compare_read.h - reads from a capture what a comparison needs (compare.h). */
#ifndef XSP_ANALYSIS_COMPARE_READ_H
#define XSP_ANALYSIS_COMPARE_READ_H

#include "analysis/compare/compare.h"
#include "model/pass.h"

struct xsp_compare_how {
	const struct xsp_cut *cut; /* the range to read; NULL: all */
	const char *step; /* the name that marks a step; NULL: the known names */
	/* Another listener of the same pass, without clear(); zeros: none. At its end() the
	 * capture's series is complete. */
	struct xsp_pass_listener beside;
};

/* Reads the capture. `path` is copied, for messages. 0 or a negative errno and *err. The caller
 * always calls xsp_compare_clear(). */
int xsp_compare_read(struct xsp_capture_reader *r, const char *path,
		     const struct xsp_compare_how *how, struct xsp_compare_capture *out,
		     struct xsp_error *err);
void xsp_compare_clear(struct xsp_compare_capture *c);

#endif
