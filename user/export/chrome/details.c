/* SPDX-License-Identifier: BSD-2-Clause */
/* details.c - writes a span's details as arguments of its slice: a table by section type. */
#include <errno.h>

#include "export/chrome/json.h"
#include "export/chrome/parts.h"
#include "model/rows/counters.h"
#include "model/spans/sequence.h"

static int put_counter(void *ctx, const char *name, uint64_t value)
{
	const struct xsp_export *x = ctx;
	const char *before = ",";

	xsp_chrome_number_pair(x->out, &before, name, value);
	return 0;
}

/* What the thread did in the span: its counters at the end minus those at the beginning. */
static int put_counters(struct xsp_export *x, const struct xsp_span *span,
			const struct xsp_section *section)
{
	(void)section;
	return xsp_counters_of(&x->view, span, put_counter, x);
}

int xsp_chrome_stack(struct xsp_export *x, const struct xsp_span *span,
		     const struct xsp_section *section)
{
	const uint64_t *frame = xsp_section_data(section);
	const size_t count = xsp_section_length(section) / sizeof(*frame);
	/* Kineto's key belongs to the Python stack, if there is one */
	const bool second = xsp_details_find(span->details, XSP_SECTION_PYTHON, NULL) != NULL;
	const char *before = second ? ",\"Native call stack\":\"" : ",\"Call stack\":\"";
	xsp_name_id ids[XSP_FRAME_FUNCTIONS];
	bool any = false;

	for (size_t i = 0, n = 1; i < count && n > 0; i++) {
		n = xsp_timeline_functions(x->view.timeline, span->pid, XSP_FRAME_ADDRESS(frame[i]),
					   ids);
		for (size_t k = 0; k < n; k++, before = ";", any = true) {
			xsp_out_text(x->out, before);
			xsp_out_json_part(x->out, xsp_timeline_name(x->view.timeline, ids[k]));
		}
	}
	xsp_out_text(x->out, any ? "\"" : "");
	return 0;
}

/* The numbers that pair operators with backward nodes. */
static int put_sequence(struct xsp_export *x, const struct xsp_span *span,
			const struct xsp_section *section)
{
	const struct xsp_sequence n = xsp_sequence_of(x->view.timeline, span);

	/* only once: an operator has two sections */
	if (!n.known || xsp_details_find(span->details, section->type, NULL) != section)
		return 0;
	char *p = xsp_out_reserve(x->out, 96);
	p = xsp_chrome_put_number(p, "Sequence number", n.number);
	p = xsp_chrome_put_number(p, "Fwd thread id", n.backward ? n.thread : 0);
	xsp_out_commit(x->out, p);
	return 0;
}

static int put_call_arguments(struct xsp_export *x, const struct xsp_span *span,
			      const struct xsp_section *section)
{
	if (xsp_timeline_cuda(x->view.timeline, span->probe) != NULL)
		return xsp_chrome_cuda_arguments(x, span, section);
	return xsp_chrome_collective_arguments(x, span, section);
}

/* By section type; NULL: not shown, or written together with another section. */
static int (*const writers[XSP_SECTION_TYPES])(struct xsp_export *x, const struct xsp_span *span,
					       const struct xsp_section *section) = {
	[XSP_SECTION_WORDS] = put_call_arguments,
	[XSP_SECTION_RESULT] = xsp_chrome_cuda_result,
	[XSP_SECTION_WRITTEN] = xsp_chrome_cuda_written,
	[XSP_SECTION_ARGS] = xsp_chrome_args,
	[XSP_SECTION_OUTPUTS] = xsp_chrome_args,
	[XSP_SECTION_COUNTERS] = put_counters,
	[XSP_SECTION_STACK] = xsp_chrome_stack,
	[XSP_SECTION_PYTHON] = xsp_chrome_python,
	[XSP_SECTION_SEQUENCE] = put_sequence,
	[XSP_SECTION_NODE] = put_sequence,
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
