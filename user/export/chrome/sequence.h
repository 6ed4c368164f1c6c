/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sequence.h - the numbers that pair PyTorch's operators with the nodes of the backward pass, and
 * the arrows between them.
 *
 * An operator's number is that of the first node made while it was open: autograd's counter at its exit
 * is beyond what it was at its entry. An arrow leads from the operator of that number that began last
 * to the first node that bears it, once (Kineto's fwdbwd).
 */
#ifndef XSP_EXPORT_CHROME_SEQUENCE_H
#define XSP_EXPORT_CHROME_SEQUENCE_H

#include "export/export_private.h"
#include "export/thread_rows.h"

/* Writes "Sequence number" and "Fwd thread id". */
int xsp_chrome_sequence(struct xsp_export *x, const struct xsp_span *span,
			const struct xsp_section *section);

/* Behind the slice: remembers an operator, or writes the arrow to a node. */
int xsp_chrome_fwdbwd(struct xsp_export *x, const struct xsp_thread_row *row,
		      const struct xsp_span *span);

/* The same without writing: 1 where the span is a node that an operator made, *from; else 0 or -ENOMEM. *f is NULL at first;
 * it holds on to rows. */
struct xsp_fwdbwd;
struct xsp_fwdbwd_operator {
	const struct xsp_thread_row *row;
	uint64_t start_ns;
};
int xsp_fwdbwd_span(struct xsp_fwdbwd **f, const struct xsp_timeline *t,
		    const struct xsp_thread_row *row, const struct xsp_span *span,
		    struct xsp_fwdbwd_operator *from);
void xsp_fwdbwd_free(struct xsp_fwdbwd *f); /* NULL is allowed */

#endif
