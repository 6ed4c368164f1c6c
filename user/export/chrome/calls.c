/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "export/chrome/json.h"
#include "export/chrome/parts.h"

bool xsp_chrome_is_call(const struct xsp_export *x, const struct xsp_span *span)
{
	return xsp_timeline_cuda(x->view.timeline, span->probe) != NULL;
}

static char *put_ids(struct xsp_export *x, char *p, const struct xsp_gpu_call *c)
{
	p = XSP_PUT(p, "\"Ev Idx\":");
	p = xsp_put_u64(p, xsp_chrome_next_slice(x));
	if (c->external != 0)
		p = xsp_chrome_put_number(p, "External id", c->external);
	if (c->correlation != 0)
		p = xsp_chrome_put_number(p, "cbid", c->cbid);
	/* CUPTI gives a driver call the id of the runtime call around it. Readers join by this key
	 * and would find two calls for one kernel; HTA's queue length asserts that there is one. A
	 * driver call with an id of its own arrives here without a call around it
	 * (timeline/gpu/calls.c). */
	if (c->correlation != 0 && (c->span == NULL || c->span->outer_ns == 0))
		p = xsp_chrome_put_number(p, "correlation", c->correlation);
	return xsp_chrome_put_flags(p, c->span != NULL ? c->span->flags
				       : c->cut	       ? XSP_SPAN_CUT
						       : 0);
}

int xsp_chrome_call(struct xsp_export *x, const struct xsp_gpu_call *c)
{
	struct xsp_thread_row *row = xsp_chrome_row(x, c->pid, c->tid, c->row);
	int rc = 0;

	if (row == NULL)
		return -ENOMEM;
	xsp_out_text(x->out, c->api == XSP_CUDA_DRIVER
				     ? "{\"ph\":\"X\",\"cat\":\"cuda_driver\",\"name\":"
				     : "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":");
	if (c->span != NULL)
		rc = xsp_chrome_put_name(x, c->span->name);
	else
		xsp_out_json(x->out, c->name[0] != '\0' ? c->name : "CUDA API call");
	if (rc < 0)
		return rc;
	char *p = xsp_chrome_put_place(x, xsp_out_reserve(x->out, 512), row->pid, row->tid,
				       c->start_ns, c->end_ns - c->start_ns);
	xsp_out_commit(x->out, put_ids(x, p, c));
	if (c->span != NULL && c->span->details != NULL)
		rc = xsp_chrome_details(x, c->span);
	else if (xsp_cuda_is_error(c->result))
		xsp_chrome_cuda_error(x, c->api, c->result);
	xsp_out_text(x->out, "}},\n");
	return rc;
}

int xsp_chrome_call_span(struct xsp_export *x, const struct xsp_span *span)
{
	const struct xsp_cuda_entry *e = xsp_timeline_cuda(x->view.timeline, span->probe);

	if (e == NULL || span->call_follows)
		return 0;
	return xsp_chrome_call(x, &(struct xsp_gpu_call){
					  .span = span,
					  .pid = span->pid,
					  .tid = span->tid,
					  .row = span->row,
					  .start_ns = span->start_ns,
					  .end_ns = span->end_ns,
					  .api = (enum xsp_cuda_api)e->api,
					  .name = "",
					  .external = span->op != 0 ? span->op : span->user,
				  });
}
