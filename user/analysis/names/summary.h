/* SPDX-License-Identifier: BSD-2-Clause */
/* summary.h - the table at the end of a run: name, calls, total, self, mean, p50, p99, max. */
#ifndef XSP_ANALYSIS_SUMMARY_H
#define XSP_ANALYSIS_SUMMARY_H

#include <stdio.h>

#include "timeline/timeline.h"

struct xsp_summary;

struct xsp_summary_row {
	xsp_name_id name;
	const char *text; /* of several names that only number: "ProfilerStep#*"; else NULL */
	uint64_t calls, total_ns, self_ns, min_ns, max_ns;
	uint64_t mean_ns, p50_ns, p99_ns; /* percentiles: exact for few calls, else from a
					   * log-linear histogram, relative error at most 1 % */
	uint64_t unfinished, unwound;
	bool mostly_probes; /* of most calls most of the time is that of probes inside */
	uint64_t points; /* calls without a duration (XSP_SPAN_POINT) */
	uint64_t measured; /* calls that the times are of; 0: they are not known */
	uint64_t timed; /* ... and those of which a part lies in the cut: self_ns */
	uint64_t outermost; /* of these, those that total_ns is of */
	uint64_t own_ns; /* of self_ns, what is estimated to be left without probes */
	uint64_t cpu_ns; /* of total_ns, on a CPU: --waits */
	bool cpu_known; /* ... of each of them; else it is that of those of which it is known */
	uint64_t self_cpu_ns; /* of self_ns */
	uint64_t own_cpu_unknown_ns; /* of own_ns, that of calls whose time on a CPU is not known */
	uint64_t own_cpu_unknown_max_ns; /* ... the most of one of them */
	double std_ns; /* of the durations that mean_ns is of; 0 with less than two */
	uint64_t max_start_ns; /* when the longest of them began */
};

/* All times are of the calls whose end was seen (by return, tail call or unwinding) and whose
 * duration was measured (xsp_span_has_duration); all 0 if there were none. total counts recursion once: a span whose name is already
 * open among its ancestors adds to calls and self but not to total. */
int xsp_summary_new(struct xsp_timeline *t, struct xsp_summary **out);
/* Of names alone, in bounded memory: no threads, no samples. */
int xsp_summary_new_names(struct xsp_timeline *t, struct xsp_summary **out);
void xsp_summary_free(struct xsp_summary *s);
struct xsp_timeline_sink xsp_summary_sink(struct xsp_summary *s);
/* Rows sorted by own_ns, descending; *rows is owned by the summary. */
size_t xsp_summary_rows(struct xsp_summary *s, const struct xsp_summary_row **rows);

struct xsp_summary_print {
	size_t limit; /* rows; 0: all */
	int width; /* columns of the terminal; 0: no limit (names are never cut in a pipe) */
	bool color;
	bool by_line, by_module; /* these tables of --python, and not that of names */
};
/* The table, then the lines on losses, unfinished spans, damage and overhead. 0, -ENOMEM or -EIO. */
int xsp_summary_write(struct xsp_summary *s, struct xsp_capture_reader *r, FILE *f,
		      const struct xsp_summary_print *how);
/* The same for programs: one object of JSON (docs/formats.md). */
int xsp_summary_write_json(struct xsp_summary *s, struct xsp_capture_reader *r, FILE *f);

#endif
