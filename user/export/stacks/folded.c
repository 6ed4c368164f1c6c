/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * folded.c - folded stacks: "comm;outer;...;leaf SELF", in ns of --weight, one line for each
 * distinct stack, sorted. There are always at least two frames and an integer: Perfetto recognises
 * the file by that.
 */
#include <stdlib.h>

#include "export/export_private.h"
#include "export/out.h"
#include "export/stacks/format.h"
#include "model/stacks/stacks.h"

static int folded_end(struct xsp_export *x)
{
	struct xsp_stacks *s = x->state;
	struct xsp_folded_line line = {.text = NULL};
	int rc = xsp_stacks_seal(s, XSP_STACKS_BY_NAME);

	for (uint32_t i = 0; rc == 0 && (i = xsp_stacks_next(s, i)) != 0;) {
		const struct xsp_stack_node *n = xsp_stacks_node(s, i);
		rc = xsp_folded_frame(&line, n->depth, xsp_stacks_name(s, i));
		/* a frame without calls of its own is only part of a path */
		if (rc < 0 || (n->calls == 0 && n->self_ns == 0))
			continue;
		xsp_out_write(x->out, line.text, line.ends[n->depth]);
		/* a comm alone is no stack; it has own time if the tree was full */
		xsp_out_text(x->out, n->depth < 2 ? ";[merged] " : " ");
		xsp_out_u64(x->out, n->self_ns);
		xsp_out_write(x->out, "\n", 1);
	}
	free(line.text);
	return rc;
}

const struct xsp_export_format xsp_format_folded = {
	.suffix = ".folded",
	.title = "folded stacks",
	.end = folded_end,
	XSP_STACK_FORMAT,
};
