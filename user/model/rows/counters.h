/* SPDX-License-Identifier: BSD-2-Clause */
/* counters.h - what a thread did in a span: its counters at the end less those at the beginning. */
#ifndef XSP_MODEL_COUNTERS_H
#define XSP_MODEL_COUNTERS_H

#include "model/view.h"
#include "xsptrace/event.h"

#define XSP_COUNTER_NAME 64 /* with its terminator */

typedef int (*xsp_counter_fn)(void *ctx, const char *name, uint64_t value);

/* A counter's values at the beginning and at the end of the span. */
typedef int (*xsp_reading_fn)(void *ctx, const char *name, const struct xsp_perf_value *begin,
			      const struct xsp_perf_value *end);

/* Calls `fn` for each known counter, by perf's name. 0, or a value of `fn` other than 0. */
int xsp_counter_readings(const struct xsp_view *v, const struct xsp_span *span, xsp_reading_fn fn,
			 void *ctx);
int xsp_counters_of(const struct xsp_view *v, const struct xsp_span *span, xsp_counter_fn fn,
		    void *ctx);

#endif
