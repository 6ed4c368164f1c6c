/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/chrome/details.h"

#include "export/chrome/args.h"
#include "export/chrome/collectives.h"
#include "export/chrome/counters.h"
#include "export/chrome/cuda.h"
#include "export/chrome/python.h"
#include "export/chrome/sequence.h"
#include "export/chrome/stack.h"

static int put_call_arguments(struct xsp_export *x, const struct xsp_span *span,
			      const struct xsp_section *section)
{
	if (xsp_timeline_cuda(x->view.timeline, span->probe) != NULL)
		return xsp_chrome_cuda_arguments(x, span, section);
	return xsp_chrome_collective_arguments(x, span, section);
}

/* By section type; NULL: not shown, or shown with another section. */
static int (*const writers[XSP_SECTION_TYPES])(struct xsp_export *x, const struct xsp_span *span,
					       const struct xsp_section *section) = {
	[XSP_SECTION_WORDS] = put_call_arguments,
	[XSP_SECTION_RESULT] = xsp_chrome_cuda_result,
	[XSP_SECTION_WRITTEN] = xsp_chrome_cuda_written,
	[XSP_SECTION_ARGS] = xsp_chrome_args,
	[XSP_SECTION_OUTPUTS] = xsp_chrome_args,
	[XSP_SECTION_COUNTERS] = xsp_chrome_counters,
	[XSP_SECTION_STACK] = xsp_chrome_stack,
	[XSP_SECTION_PYTHON] = xsp_chrome_python,
	[XSP_SECTION_SEQUENCE] = xsp_chrome_sequence,
	[XSP_SECTION_NODE] = xsp_chrome_sequence,
};

int xsp_chrome_detail(struct xsp_export *x, const struct xsp_span *span,
		      const struct xsp_section *section)
{
	if (section->type >= XSP_SECTION_TYPES || writers[section->type] == NULL)
		return 0;
	return writers[section->type](x, span, section);
}

int xsp_chrome_details(struct xsp_export *x, const struct xsp_span *span)
{
	const struct xsp_section *s = NULL;
	int rc = 0;

	while (rc == 0 && (s = xsp_details_next(span->details, s)) != NULL)
		rc = xsp_chrome_detail(x, span, s);
	return rc;
}
