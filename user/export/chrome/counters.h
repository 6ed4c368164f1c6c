/* SPDX-License-Identifier: BSD-2-Clause */
/* counters.h - what a thread did in a slice: its counters at the end less those at the beginning,
 * by their names. */
#ifndef XSP_EXPORT_CHROME_COUNTERS_H
#define XSP_EXPORT_CHROME_COUNTERS_H

#include "export/export_private.h"

int xsp_chrome_counters(struct xsp_export *x, const struct xsp_span *span,
			const struct xsp_section *section);

#endif
