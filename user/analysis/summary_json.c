/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_json.c - --summary json: what the table and the lines after it say, for programs (docs/formats.md). */
#include "analysis/names/summary_private.h"

#include <errno.h>

#include "base/json_writer.h"

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
	xsp_list_json_rows(&j, "names", &xsp_summary_names_list,
			   "name calls measured total_ns? cpu_ns? cpu_least_ns? self_ns? mean_ns? "
			   "min_ns? p50_ns? p99_ns? max_ns? unfinished unwound without_duration "
			   "mostly_probes",
			   &(struct xsp_summary_names){.summary = s}, rows, sizeof(*rows), n);
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
