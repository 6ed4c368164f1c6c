/* SPDX-License-Identifier: BSD-2-Clause */
/* compare_read.h - what a comparison needs of a capture (compare.h), read from it. */
#ifndef XSP_ANALYSIS_COMPARE_READ_H
#define XSP_ANALYSIS_COMPARE_READ_H

#include "analysis/compare/compare.h"
#include "base/error.h"
#include "timeline/cut.h"

struct xsp_compare_how {
	const struct xsp_cut *cut; /* a part of it; NULL: all */
	const char *step; /* what marks a step; NULL: the known names */
	/* Who else listens to its run. Before it: adds *count sinks to `sinks`, at most XSP_COMPARE_SINKS; and behind it,
	 * while the timeline is there. 0 or a negative errno and *err. NULL: nobody */
	void *ctx;
	int (*begin)(void *ctx, struct xsp_capture_reader *r, struct xsp_timeline *t,
		     struct xsp_timeline_sink *sinks, size_t *count, struct xsp_error *err);
	int (*end)(void *ctx, const struct xsp_series *series, struct xsp_error *err);
};
#define XSP_COMPARE_SINKS 8U

/* Runs through the capture. `path`, for messages, is copied. 0 or a negative errno and *err;
 * xsp_compare_clear() in either case. */
int xsp_compare_read(struct xsp_capture_reader *r, const char *path,
		     const struct xsp_compare_how *how, struct xsp_compare_capture *out,
		     struct xsp_error *err);
void xsp_compare_clear(struct xsp_compare_capture *c);

#endif
