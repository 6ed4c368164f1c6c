/* SPDX-License-Identifier: BSD-2-Clause */
/* series_calls.h - a row's calls in each piece of time; what is asked of them is in series.h. */
#ifndef XSP_ANALYSIS_SERIES_CALLS_H
#define XSP_ANALYSIS_SERIES_CALLS_H

#include "analysis/compare/series.h"

/* Counts a call of that own time; cpu_ns: on a CPU, XSP_CPU_UNKNOWN is allowed. 0 or -ENOMEM. */
int xsp_series_calls_add(struct xsp_series_row *row, unsigned piece, uint64_t ns, uint64_t cpu_ns);
void xsp_series_calls_free(struct xsp_series_row *row);

#endif
