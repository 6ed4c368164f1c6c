/* SPDX-License-Identifier: BSD-2-Clause */
/* export_private.h - what the formats share: the open output and its buffered writer. */
#ifndef XSP_EXPORT_PRIVATE_H
#define XSP_EXPORT_PRIVATE_H

#include "export/export.h"

struct xsp_out; /* buffered, optionally gzipping writer: out.h */

struct xsp_export {
	const struct xsp_export_format *format;
	struct xsp_export_options options;
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	struct xsp_out *out;
	struct xsp_error why; /* of the first error, where the format can say more than an errno */
	void *state; /* the format's own */
};

/* What the span itself took, by the weight that was asked for: 0 where that is not known. */
static inline uint64_t xsp_export_self_ns(const struct xsp_export *x, const struct xsp_span *span)
{
	if (!xsp_span_has_duration(span))
		return 0;
	if (x->options.weight != XSP_WEIGHT_CPU)
		return span->self_ns;
	return span->self_cpu_ns != XSP_CPU_UNKNOWN ? span->self_cpu_ns : 0;
}

#endif
