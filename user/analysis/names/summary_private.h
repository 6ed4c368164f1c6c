/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_private.h - what collecting and printing share. */
#ifndef XSP_ANALYSIS_SUMMARY_PRIVATE_H
#define XSP_ANALYSIS_SUMMARY_PRIVATE_H

#include "analysis/names/name_rows.h"
#include "analysis/window_shares.h"
#include "base/arena.h"
#include "base/histogram.h"
#include "analysis/names/steps.h"
#include "analysis/names/summary.h"
#include "analysis/memory/summary_allocations.h"
#include "analysis/gpu/summary_gpu.h"
#include "analysis/memory/summary_memory.h"
#include "analysis/names/summary_python.h"
#include "analysis/names/summary_samples.h"
#include "analysis/names/summary_values.h"
#include "analysis/waits/summary_waits.h"
#include "report/list.h"

struct summary_name {
	struct xsp_summary_row row; /* xsp_summary_rows() fills it from the other fields */
	uint64_t sum_ns; /* this and the rest: of calls whose end was seen */
	uint64_t cpu_unknown; /* calls in row.total_ns without known CPU time */
	uint64_t first_ns;
	double squares; /* sum of the squared distances from the first duration */
	uint64_t mostly_probes; /* calls whose time is mostly that of probes */
	struct xsp_histogram durations;
	struct xsp_share_sums *shares; /* NULL: none are known */
};

struct xsp_summary {
	struct xsp_timeline *timeline;
	struct xsp_name_rows row_of;
	struct xsp_window_shares *shares; /* NULL: all was on all the time, or of too little */
	struct summary_name *names; /* by row */
	size_t name_count, name_capacity;
	struct xsp_arena texts; /* common names of rows */
	struct xsp_steps *steps;
	struct xsp_summary_row *rows;
	size_t row_count, row_capacity;
	bool rows_current;
	struct xsp_summary_gpu *gpu;
	struct xsp_summary_memory *memory;
	struct xsp_summary_allocations *allocations; /* NULL: none were recorded */
	struct xsp_summary_waits *waits; /* NULL: none were recorded */
	struct xsp_summary_samples *samples; /* NULL: none were recorded */
	struct xsp_summary_python *python;
	struct xsp_value_rows values;
};

struct xsp_summary_names {
	struct xsp_summary *summary;
	const struct xsp_capture_reader *reader; /* for texts: caveats of a name */
	uint64_t steps; /* 0: none are marked */
};
/* The table of names; its rows are struct xsp_summary_row. */
extern const struct xsp_list xsp_summary_names_list, xsp_summary_names_with_cpu,
	xsp_summary_names_in_windows;

/* The row's name: raw bytes of the target's. */
const char *xsp_summary_text(const struct xsp_summary *s, const struct xsp_summary_row *row);

#endif
