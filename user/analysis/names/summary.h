/* SPDX-License-Identifier: BSD-2-Clause */
/* summary.h - the table at the end of a run: name, calls, total, self, mean, p50, p99, max. */
#ifndef XSP_ANALYSIS_SUMMARY_H
#define XSP_ANALYSIS_SUMMARY_H

#include <stdio.h>

#include "timeline/timeline.h"

struct xsp_summary;

struct xsp_summary_row {
	xsp_name_id name;
	const char *text; /* common name of several: "ProfilerStep#*"; else NULL */
	uint64_t calls, total_ns, self_ns, min_ns, max_ns;
	/* percentiles: exact for few calls, else from a log-linear histogram, relative error at
	 * most 1 % */
	uint64_t mean_ns, p50_ns, p99_ns;
	uint64_t unfinished, unwound;
	bool mostly_probes; /* in most calls, inner probes take most of the time */
	uint64_t points; /* calls without a duration (XSP_SPAN_POINT) */
	uint64_t measured; /* calls with times; 0: times are not known */
	uint64_t timed; /* calls that lie at least partly in the range: self_ns */
	uint64_t outermost; /* the outermost of these: total_ns */
	uint64_t own_ns; /* estimate of self_ns without probes */
	uint64_t cpu_ns; /* CPU time in total_ns: --waits */
	bool cpu_known; /* of all these calls; else cpu_ns only covers some */
	uint64_t self_cpu_ns; /* CPU time in self_ns */
	uint64_t own_cpu_unknown_ns; /* part of own_ns in calls whose CPU time is not known */
	uint64_t own_cpu_unknown_max_ns; /* the most in one such call */
	/* with windows of --max-overhead: of one thread's time, without probes, and its 95 % error */
	bool share_known;
	double share, share_error;
	double std_ns; /* of the durations in mean_ns; 0 with fewer than two */
	uint64_t max_start_ns; /* when the longest of them began */
};

/* Times cover calls whose end was seen (by return, tail call or unwinding) and whose duration
 * was measured (xsp_span_has_duration). All are 0 if there were none. total counts recursion
 * once: a span inside a span of the same name adds to calls and self only. */
int xsp_summary_new(struct xsp_timeline *t, struct xsp_summary **out);
/* Only names, in bounded memory: no threads, no samples. */
int xsp_summary_new_names(struct xsp_timeline *t, struct xsp_summary **out);
void xsp_summary_free(struct xsp_summary *s);
struct xsp_timeline_sink xsp_summary_sink(struct xsp_summary *s);
/* Rows sorted by own_ns, descending. The summary owns *rows. */
size_t xsp_summary_rows(struct xsp_summary *s, const struct xsp_summary_row **rows);

struct xsp_summary_print {
	size_t limit; /* rows; 0: all */
	int width; /* columns of the terminal; 0: no limit (in a pipe, names are never elided) */
	bool color;
	bool by_line, by_module; /* only these tables of --python, without names */
};
/* The table, then lines on losses, unfinished spans, damage and overhead. 0, -ENOMEM or -EIO. */
int xsp_summary_write(struct xsp_summary *s, struct xsp_capture_reader *r, FILE *f,
		      const struct xsp_summary_print *how);
/* The same as one JSON object (docs/formats.md). */
int xsp_summary_write_json(struct xsp_summary *s, struct xsp_capture_reader *r, FILE *f);

#endif
