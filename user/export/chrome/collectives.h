/* SPDX-License-Identifier: BSD-2-Clause */
/* collectives.h - what a collective was called with, as arguments of its slice, under Kineto's keys where it has them. */
#ifndef XSP_EXPORT_CHROME_COLLECTIVES_H
#define XSP_EXPORT_CHROME_COLLECTIVES_H

#include "export/export_private.h"

/* Nothing for the words of other probes. */
int xsp_chrome_collective_arguments(struct xsp_export *x, const struct xsp_span *span,
				    const struct xsp_section *section);

#endif
