/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_json.c - --summary json: what the table and the lines after it say, for programs (docs/formats.md). */
#include "analysis/names/summary_private.h"

#include <errno.h>

#include "base/json_writer.h"

static void put_row(struct xsp_json_writer *j, const struct xsp_summary *s,
		    const struct xsp_summary_row *row)
{
	const struct {
		const char *key;
		bool known;
		uint64_t value;
	} pairs[] = {
		{"calls", true, row->calls},
		{"measured", true, row->measured},
		{"total_ns", row->outermost > 0, row->total_ns},
		{"cpu_ns", row->cpu_known, row->cpu_ns},
		{"cpu_least_ns", row->cpu_known || row->cpu_ns > 0, row->cpu_ns},
		{"self_ns", row->timed > 0, row->self_ns},
		{"mean_ns", row->measured > 0, row->mean_ns},
		{"min_ns", row->measured > 0, row->min_ns},
		{"p50_ns", row->measured > 0, row->p50_ns},
		{"p99_ns", row->measured > 0, row->p99_ns},
		{"max_ns", row->measured > 0, row->max_ns},
		{"unfinished", true, row->unfinished},
		{"unwound", true, row->unwound},
		{"without_duration", true, row->points},
	};

	xsp_json_begin(j, NULL, '{');
	xsp_json_text(j, "name", xsp_summary_text(s, row));
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (pairs[i].known)
			xsp_json_number(j, pairs[i].key, pairs[i].value);
	xsp_json_bool(j, "mostly_probes", row->mostly_probes);
	xsp_json_end(j, '{');
}

static void put_head(struct xsp_json_writer *j, struct xsp_summary *s, struct xsp_capture_reader *r)
{
	const struct xsp_timeline_thread *threads;
	uint64_t start, end;

	xsp_timeline_window(s->timeline, &start, &end);
	xsp_json_text(j, "version", xsp_capture_info(r, "version"));
	xsp_json_number(j, "start_ns", start);
	xsp_json_number(j, "duration_ns", end > start ? end - start : 0);
	xsp_json_number(j, "recorded_ns", xsp_timeline_recorded_ns(s->timeline));
	if (xsp_timeline_cut_text(s->timeline) != NULL)
		xsp_json_text(j, "cut", xsp_timeline_cut_text(s->timeline));
	xsp_json_bool(j, "complete", xsp_capture_how_ended(r) == XSP_CAPTURE_COMPLETE);
	xsp_json_number(j, "spans", xsp_timeline_counts(s->timeline)->spans);
	xsp_json_number(j, "threads_with_spans", xsp_timeline_threads(s->timeline, &threads));
}

static void put_counts(struct xsp_json_writer *j, const struct xsp_summary_count *counts,
		       size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || counts[i].group != counts[i - 1].group)
			xsp_json_begin(j, counts[i].group, '{');
		xsp_json_number(j, counts[i].key, counts[i].value);
		if (i + 1 == count || counts[i].group != counts[i + 1].group)
			xsp_json_end(j, '{');
	}
}

int xsp_summary_write_json(struct xsp_summary *s, struct xsp_capture_reader *r, FILE *f,
			   const struct xsp_summary_count *counts, size_t count)
{
	struct xsp_json_writer j = {.f = f};
	const struct xsp_summary_row *rows;
	const size_t n = xsp_summary_rows(s, &rows);

	xsp_json_begin(&j, NULL, '{');
	put_head(&j, s, r);
	xsp_json_begin(&j, "names", '[');
	for (size_t i = 0; i < n; i++)
		put_row(&j, s, &rows[i]);
	xsp_json_end(&j, '[');
	xsp_summary_gpu_json(s->gpu, &j);
	xsp_summary_memory_json(s->memory, r, &j);
	xsp_summary_samples_json(s->samples, &j);
	xsp_summary_values_json(&s->values, s->timeline, &j);
	int rc = xsp_summary_allocations_json(s->allocations, &j);
	if (rc == 0)
		rc = xsp_summary_waits_json(s->waits, r, &j);
	if (rc == 0)
		rc = xsp_summary_python_json(s->python, &j);
	if (rc == 0)
		xsp_steps_json(s->steps, r, &j);
	put_counts(&j, counts, count);
	xsp_json_end(&j, '{');
	fputc('\n', f);
	return rc < 0 ? rc : j.failed ? -ENOMEM : ferror(f) ? -EIO : 0;
}
