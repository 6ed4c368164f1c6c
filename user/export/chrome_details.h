/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chrome_details.h - the details of a span as arguments of its slice: a table by section type, one
 * file a kind of section.
 */
#ifndef XSP_EXPORT_CHROME_DETAILS_H
#define XSP_EXPORT_CHROME_DETAILS_H

#include "export/export_private.h"

/* Writes `,"key":value` pairs for all that is known of the span. 0 or a negative errno. */
int xsp_chrome_details(struct xsp_export *x, const struct xsp_span *span);

/* Half of an arrow between slices: it starts in one and ends in another; both halves have the id.
 * `pid` and `tid` as shown; `ns`: the start of the slice. */
void xsp_chrome_put_flow(struct xsp_export *x, const char *kind, bool ends, uint64_t id,
			 uint32_t pid, uint32_t tid, uint64_t ns);

#endif
