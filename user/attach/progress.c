/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "attach/plan.h"
#include "base/path.h"
#include "base/text.h"

void xsp_plan_progress(const struct xsp_plan *plan, const char *path, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (plan->progress == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	xsp_join(text, sizeof(text), " ", "%.200s", xsp_base_name(path));
	plan->progress(plan->progress_ctx, text);
}
