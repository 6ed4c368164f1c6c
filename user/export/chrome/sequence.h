/* SPDX-License-Identifier: BSD-2-Clause */
/* sequence.h - model/spans/sequence.h in the Chrome trace. */
#ifndef XSP_EXPORT_CHROME_SEQUENCE_H
#define XSP_EXPORT_CHROME_SEQUENCE_H

#include "export/export_private.h"
#include "model/spans/sequence.h"

/* Writes "Sequence number" and "Fwd thread id". */
int xsp_chrome_sequence(struct xsp_export *x, const struct xsp_span *span,
			const struct xsp_section *section);

/* After the slice: remembers an operator, or writes the arrow to a node. */
int xsp_chrome_fwdbwd(struct xsp_export *x, const struct xsp_thread_row *row,
		      const struct xsp_span *span);

#endif
