/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/chrome/values.h"

#include <errno.h>
#include <math.h>

#include "base/units.h"
#include "export/chrome/json.h"

/* What is no number has no place on a track, and none in JSON: a mark on the thread that told it. */
int xsp_chrome_value(struct xsp_export *x, const struct xsp_value *v)
{
	const struct xsp_thread_row *row = xsp_chrome_row(x, v->pid, v->tid, 0);
	const char *quote = isfinite(v->value) ? "" : "\"";
	char number[XSP_UNITS_SIZE];

	if (row == NULL)
		return -ENOMEM;
	xsp_out_text(x->out, isfinite(v->value) ? "{\"ph\":\"C\",\"name\":"
						: "{\"ph\":\"i\",\"s\":\"t\",\"name\":");
	if (xsp_chrome_put_name(x, v->name) < 0)
		return -ENOMEM;
	xsp_out_printf(x->out, ",\"cat\":\"value\",\"pid\":%u,\"tid\":%u,\"ts\":", row->pid,
		       row->tid);
	xsp_chrome_time(x, v->time_ns);
	xsp_out_printf(x->out, ",\"args\":{\"value\":%s%s%s}},\n", quote,
		       xsp_format_real(number, v->value), quote);
	return 0;
}
