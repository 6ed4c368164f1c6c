/* SPDX-License-Identifier: BSD-2-Clause */
/* span_category.h - what a span is and how it ended, in the same words for every format that is a table. */
#ifndef XSP_MODEL_SPAN_CATEGORY_H
#define XSP_MODEL_SPAN_CATEGORY_H

#include "model/view.h"

/* Databases have these numbers: none ever changes. */
enum xsp_category {
	XSP_CPU_OP,
	XSP_USER_ANNOTATION,
	XSP_CUDA_RUNTIME_CALL,
	XSP_CUDA_DRIVER_CALL,
	XSP_CATEGORIES
};
#define XSP_CATEGORIES_MAX 256U /* a byte */

/* A capture's: ours, and from XSP_CATEGORIES on those of the trace that became the capture. */
struct xsp_categories {
	const struct xsp_capture_probe *probes;
	size_t probe_count;
	uint8_t *of; /* by probe; for ranges each call has its own */
	/* "cpu_op", ...; the last one is for all that found no room */
	const char *names[XSP_CATEGORIES_MAX];
	unsigned count;
};
/* 0 or -ENOMEM. */
int xsp_categories_init(struct xsp_categories *c, const struct xsp_view *v);
void xsp_categories_clear(struct xsp_categories *c); /* zeros are allowed */
unsigned xsp_category_of(const struct xsp_categories *c, const struct xsp_span *span);

enum xsp_ending {
	XSP_RETURNED,
	XSP_UNWOUND,
	XSP_TAIL_CALL,
	XSP_UNFINISHED, /* from here on without a duration */
	XSP_EXIT_LOST,
	XSP_POINT,
	XSP_ENDINGS
};
/* "returned", ... */
const char *xsp_ending_name(enum xsp_ending ending);
enum xsp_ending xsp_ending_of(const struct xsp_span *span);

#endif
