/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/chrome/sequence.h"

#include "export/chrome/json.h"

int xsp_chrome_sequence(struct xsp_export *x, const struct xsp_span *span,
			const struct xsp_section *section)
{
	const struct xsp_sequence n = xsp_sequence_of(x->view.timeline, span);

	/* once: an operator has two sections */
	if (!n.known || xsp_details_find(span->details, section->type, NULL) != section)
		return 0;
	char *p = xsp_out_reserve(x->out, 96);
	p = XSP_PUT(p, ",\"Sequence number\":");
	p = xsp_put_u64(p, n.number);
	p = XSP_PUT(p, ",\"Fwd thread id\":");
	p = xsp_put_u64(p, n.backward ? n.thread : 0);
	xsp_out_commit(x->out, p);
	return 0;
}

int xsp_chrome_fwdbwd(struct xsp_export *x, const struct xsp_thread_row *row,
		      const struct xsp_span *span)
{
	struct xsp_fwdbwd_operator from;
	const int rc =
		xsp_fwdbwd_span(&xsp_chrome_of(x)->fwdbwd, x->view.timeline, row, span, &from);

	if (rc <= 0)
		return rc;
	xsp_chrome_put_flow(x, "fwdbwd", false, from.arrow, from.row->pid, from.row->tid,
			    from.start_ns);
	xsp_chrome_put_flow(x, "fwdbwd", true, from.arrow, row->pid, row->tid, span->start_ns);
	return 0;
}
