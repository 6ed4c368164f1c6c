/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sequence.h - the numbers that pair PyTorch's operators with nodes of the backward pass, and the arrows between them.
 * An operator's number is that of the first node made while it was open: autograd's counter is higher at its exit than
 * at its entry. An arrow leads from the last operator with a number to the first node with it, once (Kineto's
 * fwdbwd).
 */
#ifndef XSP_MODEL_SEQUENCE_H
#define XSP_MODEL_SEQUENCE_H

#include "model/rows/thread_rows.h"

struct xsp_sequence {
	bool known, backward;
	uint64_t number;
	uint32_t thread; /* torch's number of the thread that made the node; from 1 */
};
struct xsp_sequence xsp_sequence_of(const struct xsp_timeline *t, const struct xsp_span *span);

/* Remembers an operator (0), or finds the one that made a node (1, and *from is it). Otherwise 0, or -ENOMEM. *f is
 * NULL at first; it keeps pointers to rows. */
struct xsp_fwdbwd;
struct xsp_fwdbwd_operator {
	const struct xsp_thread_row *row;
	uint64_t start_ns;
	uint64_t arrow; /* the number of this arrow, from 1 */
};
int xsp_fwdbwd_span(struct xsp_fwdbwd **f, const struct xsp_timeline *t,
		    const struct xsp_thread_row *row, const struct xsp_span *span,
		    struct xsp_fwdbwd_operator *from);
void xsp_fwdbwd_free(struct xsp_fwdbwd *f); /* NULL is allowed */

#endif
