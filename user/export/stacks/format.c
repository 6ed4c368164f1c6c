/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/stacks/format.h"

#include "model/stacks/stacks.h"

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

void xsp_stack_format_discard(struct xsp_export *x)
{
	xsp_stacks_free(x->state);
}
