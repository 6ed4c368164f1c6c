/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * details.h - the details of a span as arguments of its slice: a table by section type, one
 * file a kind of section.
 */
#ifndef XSP_EXPORT_CHROME_DETAILS_H
#define XSP_EXPORT_CHROME_DETAILS_H

#include "export/export_private.h"

/* Writes `,"key":value` pairs for what one of its sections says. 0 or a negative errno. */
int xsp_chrome_detail(struct xsp_export *x, const struct xsp_span *span,
		      const struct xsp_section *section);
/* The same for all that is known of the span. 0 or a negative errno. */
int xsp_chrome_details(struct xsp_export *x, const struct xsp_span *span);

#endif
