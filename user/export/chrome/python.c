/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "export/chrome/parts.h"
#include "export/out.h"
#include "timeline/python.h"

static void put_line(struct xsp_export *x, const struct xsp_python_line *l)
{
	char text[XSP_NAME_MAX + 24], line[16] = "", *at = text;

	if (l->line > 0)
		snprintf(line, sizeof(line), "(%" PRIu32 ")", l->line);
	snprintf(text, sizeof(text), "%.*s%s%s%s", (int)l->path_length, l->path, line,
		 l->path_length > 0 || l->line > 0 ? ": " : "", l->function);
	while ((at = strchr(at, ';')) != NULL) /* ';' separates frames */
		*at = ',';
	xsp_out_json_part(x->out, text);
}

void xsp_chrome_python_line(struct xsp_export *x, const struct xsp_capture_python_frame *frame)
{
	struct xsp_python_line l;

	if (!xsp_timeline_python_line(x->view.timeline, frame, &l))
		l = (struct xsp_python_line){.path = "", .function = "[not known]"};
	put_line(x, &l);
}

static void put_module(struct xsp_export *x, const struct xsp_capture_python *stack, uint32_t first)
{
	struct xsp_python_module m;

	xsp_timeline_python_module(x->view.timeline, stack, first, &m);
	for (uint32_t i = 0; i < m.count; i++) {
		xsp_out_text(x->out, i > 0 ? "." : ",\"Module Hierarchy\":\"");
		xsp_out_json_part(x->out, m.names[i]);
	}
	xsp_out_text(x->out, m.count > 0 ? "\"" : "");
}

int xsp_chrome_python(struct xsp_export *x, const struct xsp_span *span,
		      const struct xsp_section *section)
{
	const struct xsp_capture_python *stack = xsp_timeline_python(x->view.timeline, section);

	if (stack == NULL)
		return 0;
	/* a range's stack lacks the frames that only opened it */
	const uint32_t first = stack == span->python ? span->python_first : 0;
	for (uint32_t i = first; i < stack->count; i++) {
		xsp_out_text(x->out, i == first ? ",\"Call stack\":\"" : ";");
		xsp_chrome_python_line(x, &stack->frames[i]);
	}
	xsp_out_text(x->out, stack->count > first ? "\"" : "");
	put_module(x, stack, first);
	return 0;
}
