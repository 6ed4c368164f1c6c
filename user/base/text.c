/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

void xsp_join(char *text, size_t size, const char *between, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list ap;

	if (used > 0)
		snprintf(text + used, size - used, "%s", between);
	used += strlen(text + used);
	va_start(ap, fmt);
	vsnprintf(text + used, size - used, fmt, ap);
	va_end(ap);
}
