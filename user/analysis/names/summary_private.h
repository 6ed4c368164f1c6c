/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_private.h - what collecting and printing share. */
#ifndef XSP_ANALYSIS_SUMMARY_PRIVATE_H
#define XSP_ANALYSIS_SUMMARY_PRIVATE_H

#include "analysis/names/name_rows.h"
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
	struct xsp_summary_row row; /* what the rest tells of it: xsp_summary_rows() */
	uint64_t sum_ns; /* of calls whose end was seen, as all that follows */
	uint64_t cpu_unknown; /* of those that row.total_ns is of */
	uint64_t first_ns;
	double squares; /* sum, of how far durations are from the first one */
	uint64_t mostly_probes; /* those whose time is mostly that of probes */
	struct xsp_histogram durations;
};

struct xsp_summary {
	struct xsp_timeline *timeline;
	struct xsp_name_rows row_of;
	struct summary_name *names; /* by row */
	size_t name_count, name_capacity;
	struct xsp_arena texts; /* of rows of several names */
	struct xsp_steps *steps;
	struct xsp_summary_row *rows;
	size_t row_count, row_capacity;
	bool rows_current;
	struct xsp_summary_gpu *gpu;
	struct xsp_summary_memory *memory;
	struct xsp_summary_allocations *allocations; /* NULL: none were recorded */
	struct xsp_summary_waits *waits; /* NULL: none were recorded */
	struct xsp_summary_samples *samples; /* the same */
	struct xsp_summary_python *python;
	struct xsp_value_rows values;
};

struct xsp_summary_names {
	struct xsp_summary *summary;
	const struct xsp_capture_reader *reader; /* of texts: what is said of a name */
	uint64_t steps; /* 0: none are marked */
};
/* The table of names, of rows of struct xsp_summary_row and the above. */
extern const struct xsp_list xsp_summary_names_list, xsp_summary_names_with_cpu;

/* What the row is called: raw bytes of the target's. */
const char *xsp_summary_text(const struct xsp_summary *s, const struct xsp_summary_row *row);

#endif
