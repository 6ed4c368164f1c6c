/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/span_category.h"

#include "export/scope.h"

const char *xsp_category_name(enum xsp_category category)
{
	static const char *const names[XSP_CATEGORIES] = {"cpu_op", "user_annotation",
							  "cuda_runtime", "cuda_driver"};

	return names[category];
}

enum xsp_category xsp_category_of(const struct xsp_export *x, const struct xsp_span *span)
{
	const struct xsp_cuda_entry *cuda = xsp_timeline_cuda(x->timeline, span->probe);
	const struct xsp_capture_probe *probes = NULL;
	const size_t count = xsp_capture_probes(x->reader, &probes);

	if (cuda != NULL)
		return cuda->api == XSP_CUDA_DRIVER ? XSP_CUDA_DRIVER_CALL : XSP_CUDA_RUNTIME_CALL;
	return span->probe < count && xsp_is_user_annotation(&probes[span->probe], span)
		       ? XSP_USER_ANNOTATION
		       : XSP_CPU_OP;
}

const char *xsp_ending_name(enum xsp_ending ending)
{
	static const char *const names[XSP_ENDINGS] = {"returned",   "unwound",	  "tail call",
						       "unfinished", "exit lost", "point"};

	return names[ending];
}

enum xsp_ending xsp_ending_of(const struct xsp_span *span)
{
	return span->flags & XSP_SPAN_UNFINISHED  ? XSP_UNFINISHED
	       : span->flags & XSP_SPAN_EXIT_LOST ? XSP_EXIT_LOST
	       : span->flags & XSP_SPAN_POINT	  ? XSP_POINT
	       : span->flags & XSP_SPAN_UNWOUND	  ? XSP_UNWOUND
	       : span->flags & XSP_SPAN_TAIL	  ? XSP_TAIL_CALL
						  : XSP_RETURNED;
}
