/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/chrome/counters.h"

#include "export/out.h"
#include "model/rows/counters.h"

static int put_counter(void *ctx, const char *name, uint64_t value)
{
	struct xsp_export *x = ctx;

	xsp_out_text(x->out, ",");
	xsp_out_json(x->out, name);
	xsp_out_text(x->out, ":");
	xsp_out_u64(x->out, value);
	return 0;
}

int xsp_chrome_counters(struct xsp_export *x, const struct xsp_span *span,
			const struct xsp_section *section)
{
	(void)section;
	return xsp_counters_of(&x->view, span, put_counter, x);
}
