/* SPDX-License-Identifier: BSD-2-Clause */
/* counters.h - what a thread did in a span: its counters at the end less those at the beginning. */
#ifndef XSP_EXPORT_COUNTERS_H
#define XSP_EXPORT_COUNTERS_H

#include "export/export_private.h"

#define XSP_COUNTER_NAME 64 /* with its terminator */

typedef int (*xsp_counter_fn)(void *ctx, const char *name, uint64_t value);

/* Tells `fn` each one that is known, by perf's names; `section`: XSP_SECTION_COUNTERS of the span. 0, or what
 * `fn` returned that was not 0. */
int xsp_counters_of(const struct xsp_export *x, const struct xsp_span *span,
		    const struct xsp_section *section, xsp_counter_fn fn, void *ctx);

#endif
