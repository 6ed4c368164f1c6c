/* SPDX-License-Identifier: BSD-2-Clause */
/* steps_report.c - steps as a section of a report. */
#include "analysis/names/steps_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/units.h"

static void put_values(const struct xsp_steps *s, const struct xsp_capture_reader *r,
		       struct xsp_report_section *section)
{
	const double count = (double)s->steps;
	const struct xsp_steps_figures all = xsp_steps_figures(s);
	const struct {
		const char *key, *title;
		enum xsp_unit unit;
		bool known;
		struct xsp_cell cell;
	} rows[] = {
		{"marker", "marked by", XSP_UNIT_TEXT, true, xsp_cell_text(s->title)},
		{"steps", "steps", XSP_UNIT_COUNT, true, xsp_cell_integer(s->steps)},
		{"steps_per_second", "steps a second, a thread", XSP_UNIT_PER_SECOND, s->mean > 0,
		 xsp_cell_real(1e9 / s->mean)},
		{"calls_per_step", "calls a step", XSP_UNIT_COUNT, s->steps > 0,
		 xsp_cell_real((double)s->calls / count)},
		{"mean_ns", "mean", XSP_UNIT_NS, s->steps > 0, xsp_cell_real(s->mean)},
		{"std_ns", "std", XSP_UNIT_NS, s->steps > 1, xsp_cell_real(xsp_steps_deviation(s))},
		{"min_ns", "min", XSP_UNIT_NS, s->steps > 0, xsp_cell_integer(s->min_ns)},
		{"p50_ns", "p50", XSP_UNIT_NS, s->steps > 0,
		 xsp_cell_integer(xsp_steps_quantile(s, 0.5))},
		{"p99_ns", "p99", XSP_UNIT_NS, s->steps > 0,
		 xsp_cell_integer(xsp_steps_quantile(s, 0.99))},
		{"max_ns", "max", XSP_UNIT_NS, s->steps > 0, xsp_cell_integer(s->max_ns)},
		{"probe_ns", "of it in probes, estimated, in the mean", XSP_UNIT_NS,
		 xsp_steps_have_probes(s), xsp_cell_real((double)s->probe_ns / count)},
		{"warm_up", "left out as warm-up", XSP_UNIT_COUNT, true,
		 xsp_cell_integer(all.warm_up)},
		{"warm_up_ns", "... which took", XSP_UNIT_NS, all.warm_up > 0,
		 xsp_cell_integer(all.warm_up_ns)},
		{"not_whole", "left out as not recorded from beginning to end", XSP_UNIT_COUNT,
		 true, xsp_cell_integer(s->not_whole)},
		{"left_out", "left out as of more threads than are followed", XSP_UNIT_COUNT,
		 s->left_out > 0, xsp_cell_integer(s->left_out)},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].known)
			xsp_report_value(section, rows[i].key, rows[i].title, rows[i].unit,
					 rows[i].cell);
	if (xsp_steps_uncertain(r))
		xsp_report_note(section,
				all.by_ends ? "uncertain: events were lost, calls a step are lower "
					      "bounds, and two steps may have been taken for one"
					    : "uncertain: events were lost, calls a step are lower "
					      "bounds");
}

/* "aten::mm +1.20 ms, outside of traced calls +300 us"; malloc'd. */
static char *longer_text(const struct xsp_steps *s, const struct step *step)
{
	struct longer list[LONGER_SHOWN + 1];
	const size_t count = xsp_steps_longer(s, step, list);
	char *text = NULL, time[XSP_UNITS_SIZE];
	size_t length;
	FILE *f = open_memstream(&text, &length);

	if (f == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++)
		fprintf(f, "%s%s +%s", i > 0 ? ", " : "",
			list[i].share.key == NO_SPAN
				? "outside of traced calls"
				: xsp_timeline_name(s->timeline, list[i].share.key),
			xsp_format_ns(time,
				      (uint64_t)((double)list[i].share.ns - list[i].mean_ns)));
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int put_slowest(const struct xsp_steps *s, uint64_t from_ns, struct xsp_report_section *out)
{
	static const struct xsp_report_column columns[] = {
		{"step", "step", XSP_UNIT_NUMBER, true, XSP_BY_POSITION},
		{"time_ns", "time", XSP_UNIT_NS, false, XSP_BY_POSITION},
		{"start_ns", "begins at", XSP_UNIT_TIME, false, XSP_BY_POSITION},
		{"calls", "calls", XSP_UNIT_COUNT, false, XSP_BY_POSITION},
		{"thread", "thread", XSP_UNIT_TEXT, false, XSP_BY_POSITION},
		{"longer", "what took longer than in the mean", XSP_UNIT_TEXT, false,
		 XSP_BY_POSITION},
	};
	XSP_REPORT_SHAPE(analyze, shape, "steps", "slowest", "the slowest steps", columns);
	struct xsp_report_table *t = xsp_report_table(out, &shape);

	for (size_t i = 0; i < s->slowest_count; i++) {
		const struct step *step = &s->slowest[i];
		char thread[128], *longer = longer_text(s, step);
		if (longer == NULL)
			return -ENOMEM;
		xsp_steps_thread(s, &s->tracks[step->track], thread, sizeof(thread));
		const struct xsp_cell cells[] = {
			xsp_cell_integer(step->number),
			xsp_cell_integer(step_length(step)),
			xsp_cell_integer(step->start_ns > from_ns ? step->start_ns - from_ns : 0),
			xsp_cell_integer(step->calls),
			xsp_cell_text(thread),
			xsp_cell_text(longer),
		};
		xsp_report_row(t, cells);
		free(longer);
	}
	return 0;
}

static void put_threads(const struct xsp_steps *s, struct xsp_report_section *out)
{
	static const struct xsp_report_column columns[] = {
		{"thread", "thread", XSP_UNIT_TEXT, true, XSP_BY_POSITION},
		{"steps", "steps", XSP_UNIT_COUNT, false, XSP_BY_POSITION},
		{"mean_ns", "mean", XSP_UNIT_NS, false, XSP_BY_POSITION},
		{"max_ns", "max", XSP_UNIT_NS, false, XSP_BY_POSITION},
		{"calls_per_step", "calls a step", XSP_UNIT_COUNT, false, XSP_BY_POSITION},
	};
	XSP_REPORT_SHAPE(analyze, shape, "steps", "threads", "steps by thread", columns);
	struct xsp_report_table *t = xsp_report_table(out, &shape);

	for (size_t i = 0; i < s->track_count; i++) {
		const struct track *k = &s->tracks[i];
		char thread[128];
		if (k->steps == 0)
			continue;
		xsp_steps_thread(s, k, thread, sizeof(thread));
		const struct xsp_cell cells[] = {
			xsp_cell_text(thread),
			xsp_cell_integer(k->steps),
			xsp_cell_integer(k->sum_ns / k->steps),
			xsp_cell_integer(k->max_ns),
			xsp_cell_real((double)k->calls / (double)k->steps),
		};
		xsp_report_row(t, cells);
	}
}

int xsp_steps_report(const struct xsp_steps *s, const struct xsp_capture_reader *r,
		     struct xsp_report *report)
{
	struct xsp_report_section *section = xsp_report_section(report, "steps", "Steps");
	uint64_t start, end;

	if (s->whole + s->not_whole == 0) {
		char text[256];
		xsp_timeline_no_steps(s->timeline, text, sizeof(text));
		xsp_report_note(section, text);
		return 0;
	}
	xsp_capture_window(r, &start, &end);
	put_values(s, r, section);
	int rc = put_slowest(s, start, section);
	put_threads(s, section);
	return rc;
}
