/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/chrome/python.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "export/out.h"
#include "timeline/python.h"

static int put_escaped(struct xsp_export *x, const char *text)
{
	size_t length;
	char *safe = xsp_json_escaped(text, &length);

	if (safe == NULL)
		return -ENOMEM;
	xsp_out_write(x->out, safe, length);
	free(safe);
	return 0;
}

/* "FILE(LINE): FUNCTION" */
static int put_line(struct xsp_export *x, const struct xsp_python_line *l)
{
	char text[XSP_NAME_MAX + 24], line[16] = "", *at = text;

	if (l->line > 0)
		snprintf(line, sizeof(line), "(%" PRIu32 ")", l->line);
	snprintf(text, sizeof(text), "%.*s%s%s%s", (int)l->path_length, l->path, line,
		 l->path_length > 0 || l->line > 0 ? ": " : "", l->function);
	while ((at = strchr(at, ';')) != NULL) /* stands between frames */
		*at = ',';
	return put_escaped(x, text);
}

int xsp_chrome_python_line(struct xsp_export *x, const struct xsp_capture_python_frame *frame)
{
	struct xsp_python_line l;

	if (!xsp_timeline_python_line(x->view.timeline, frame, &l))
		l = (struct xsp_python_line){.path = "", .function = "[not known]"};
	return put_line(x, &l);
}

static int put_module(struct xsp_export *x, const struct xsp_capture_python *stack)
{
	struct xsp_python_module m;
	int rc = 0;

	xsp_timeline_python_module(x->view.timeline, stack, 0, &m);
	for (uint32_t i = 0; i < m.count && rc == 0; i++) {
		xsp_out_text(x->out, i > 0 ? "." : ",\"Module Hierarchy\":\"");
		rc = put_escaped(x, m.names[i]);
	}
	if (m.count > 0)
		xsp_out_text(x->out, "\"");
	return rc;
}

int xsp_chrome_python(struct xsp_export *x, const struct xsp_span *span,
		      const struct xsp_section *section)
{
	const struct xsp_capture_python *stack = xsp_timeline_python(x->view.timeline, section);
	int rc = 0;

	(void)span;
	for (uint32_t i = 0; stack != NULL && i < stack->count && rc == 0; i++) {
		xsp_out_text(x->out, i == 0 ? ",\"Call stack\":\"" : ";");
		rc = xsp_chrome_python_line(x, &stack->frames[i]);
	}
	if (stack != NULL && stack->count > 0)
		xsp_out_text(x->out, "\"");
	return rc == 0 && stack != NULL ? put_module(x, stack) : rc;
}
