/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/pass.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rows/grow.h"

int xsp_sinks_add(struct xsp_sinks *sinks, struct xsp_timeline_sink sink)
{
	return XSP_APPEND(sinks->list, sinks->capacity, sinks->count, sink);
}

int xsp_pass_run(const struct xsp_pass *pass, struct xsp_error *err)
{
	const struct xsp_pass_listener *l = pass->listeners;
	struct xsp_sinks sinks = {.count = 0};
	struct xsp_timeline *t = NULL;
	size_t begun = 0;
	int rc = xsp_timeline_new(pass->reader, &t, err);

	if (rc == 0 && pass->cut != NULL && xsp_timeline_cut(t, pass->cut) < 0)
		rc = xsp_out_of_memory(err);
	if (rc == 0)
		xsp_timeline_mark_steps(t, pass->step);
	for (; begun < pass->count && rc == 0; begun++)
		if (l[begun].begin != NULL)
			rc = l[begun].begin(l[begun].ctx, pass->reader, t, &sinks, err);
	if (rc == 0 && sinks.count > 0)
		rc = xsp_timeline_run(t, sinks.list, sinks.count, err);
	for (size_t i = begun; i-- > 0 && rc == 0;)
		if (l[i].end != NULL)
			rc = l[i].end(l[i].ctx, t, err);
	for (size_t i = begun; i-- > 0;)
		if (l[i].clear != NULL)
			l[i].clear(l[i].ctx);
	xsp_timeline_free(t);
	free(sinks.list);
	return rc == -ENOMEM ? xsp_out_of_memory(err) : rc;
}
