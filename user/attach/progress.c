/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "attach/plan.h"
#include "base/path.h"

void xsp_plan_progress(const struct xsp_plan *plan, const char *path, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (plan->progress == NULL)
		return;
	va_start(ap, fmt);
	int used = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (used > 0 && (size_t)used < sizeof(text))
		snprintf(text + used, sizeof(text) - (size_t)used, " %.200s", xsp_base_name(path));
	plan->progress(plan->progress_ctx, text);
}
