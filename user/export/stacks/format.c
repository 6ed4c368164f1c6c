/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/stacks/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "export/text.h"

int xsp_stack_format_begin(struct xsp_export *x)
{
	struct xsp_stacks *s;
	int rc = xsp_stacks_new(&x->view, &s);

	x->state = s;
	return rc;
}

int xsp_stack_format_span(struct xsp_export *x, const struct xsp_span *span)
{
	return xsp_stacks_add(x->state, span);
}

int xsp_stack_format_wait(struct xsp_export *x, const struct xsp_wait *wait)
{
	return xsp_stacks_add_wait(x->state, wait);
}

int xsp_stack_format_sample(struct xsp_export *x, const struct xsp_sample *sample)
{
	return xsp_stacks_add_sample(x->state, sample);
}

void xsp_stack_format_discard(struct xsp_export *x)
{
	xsp_stacks_free(x->state);
}

int xsp_folded_frame(struct xsp_folded_line *l, uint32_t depth, const char *name)
{
	size_t n, start = l->ends[depth - 1];
	char *frame = xsp_text_folded(name, &n);

	if (frame == NULL)
		return -ENOMEM;
	if (xsp_grow(&l->text, &l->capacity, start + n + 2) < 0) {
		free(frame);
		return -ENOMEM;
	}
	if (depth > 1)
		l->text[start++] = ';';
	memcpy(l->text + start, frame, n);
	l->ends[depth] = start + n;
	free(frame);
	return 0;
}
