/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/error.h"

#include <errno.h>
#include <stdio.h>

int xsp_error_set(struct xsp_error *err, int code, enum xsp_status status, const char *fmt, ...)
{
	if (err == NULL || err->status != XSP_STATUS_OK)
		return code;
	err->status = status;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

int xsp_out_of_memory(struct xsp_error *err)
{
	return xsp_error_set(err, -ENOMEM, XSP_STATUS_FAILED, "out of memory");
}
