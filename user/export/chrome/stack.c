/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/chrome/stack.h"

#include <errno.h>
#include <stdlib.h>

#include "base/format/json.h"
#include "export/out.h"

/* The text of one frame, escaped. */
static int put_frame(struct xsp_export *x, const char *name)
{
	size_t length = 0;
	char *safe = xsp_json_escaped(name, &length);

	if (safe == NULL)
		return -ENOMEM;
	xsp_out_write(x->out, safe, length);
	free(safe);
	return 0;
}

int xsp_chrome_stack(struct xsp_export *x, const struct xsp_span *span,
		     const struct xsp_section *section)
{
	const uint64_t *frame = xsp_section_data(section);
	size_t count = xsp_section_length(section) / sizeof(*frame), i;
	/* the key of Kineto's is that of Python's, if there is such */
	const bool second = xsp_details_find(span->details, XSP_SECTION_PYTHON, NULL) != NULL;
	int rc = 0;

	for (i = 0; i < count && rc == 0; i++) {
		const char *name = xsp_timeline_frame(x->view.timeline, span->pid,
						      XSP_FRAME_ADDRESS(frame[i]));
		if (name == NULL || name[0] == '\0')
			break;
		xsp_out_text(x->out, i > 0    ? ";"
				     : second ? ",\"Native call stack\":\""
					      : ",\"Call stack\":\"");
		rc = put_frame(x, name);
	}
	if (i > 0)
		xsp_out_text(x->out, "\"");
	return rc;
}
