/* SPDX-License-Identifier: BSD-2-Clause */
/* steps_report.c - steps as a section of a report, and as figures for rules. */
#include "analysis/names/steps_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/units.h"

/* Of a thread's first steps, those that were left out as warm-up. */
static void add_warm_up(const struct track *k, struct xsp_steps_figures *out)
{
	for (size_t i = 0; i < k->first_count; i++) {
		const struct step *step = &k->first[i];
		if (!step->warm_up)
			continue;
		if (out->warm_up == 0 || step->start_ns < out->warm_up_from_ns)
			out->warm_up_from_ns = step->start_ns;
		if (step->end_ns > out->warm_up_to_ns)
			out->warm_up_to_ns = step->end_ns;
		out->warm_up++;
		out->warm_up_ns += step_length(step);
	}
}

int xsp_steps_figures(struct xsp_steps *s, struct xsp_steps_figures *out)
{
	int rc = xsp_steps_end(s);
	const enum mark how = xsp_steps_how(s);
	const struct figures *f = &s->figures[how];

	*out = (struct xsp_steps_figures){.steps = f->steps,
					  .sum_ns = f->sum_ns,
					  .mean_ns = f->steps > 0 ? f->sum_ns / f->steps : 0,
					  .probe_ns = f->probe_ns,
					  .median_ns = xsp_steps_quantile(f, 0.5),
					  .not_whole = f->not_whole,
					  .guessed = s->guess != NULL,
					  .by_ends = how == MARK_ENDS};
	for (size_t i = 0; i < s->track_count; i++)
		if (s->tracks[i]->mark == how)
			add_warm_up(s->tracks[i], out);
	return rc;
}

uint64_t xsp_steps_calls(const struct xsp_steps *s, xsp_name_id name, uint64_t *self_ns)
{
	uint64_t calls = 0, ns = 0;

	for (size_t i = 0; i < s->track_count; i++) {
		const struct track *k = s->tracks[i];
		const uint32_t *at =
			k->mark == xsp_steps_how(s) ? xsp_u64map_get(&k->entry_of, name) : NULL;
		calls += at != NULL ? k->entries[*at].calls : 0;
		ns += at != NULL ? k->entries[*at].self_ns : 0;
	}
	if (self_ns != NULL)
		*self_ns = ns;
	return calls;
}

/* ---- the section ---- */

static void put_values(struct xsp_steps *s, const struct xsp_capture_reader *r,
		       struct xsp_report_section *section)
{
	const struct figures *f = &s->figures[xsp_steps_how(s)];
	const double count = (double)f->steps;
	struct xsp_steps_figures all;

	xsp_steps_figures(s, &all);
	const struct {
		const char *key, *title;
		enum xsp_unit unit;
		bool known;
		struct xsp_cell cell;
	} rows[] = {
		{"marker", "marked by", XSP_UNIT_TEXT, true, xsp_cell_text(f->title)},
		{"steps", "steps", XSP_UNIT_COUNT, true, xsp_cell_integer(f->steps)},
		{"steps_per_second", "steps a second, a thread", XSP_UNIT_PER_SECOND, f->mean > 0,
		 xsp_cell_real(1e9 / f->mean)},
		{"calls_per_step", "calls a step", XSP_UNIT_COUNT, f->steps > 0,
		 xsp_cell_real((double)f->calls / count)},
		{"mean_ns", "mean", XSP_UNIT_NS, f->steps > 0, xsp_cell_real(f->mean)},
		{"std_ns", "std", XSP_UNIT_NS, f->steps > 1, xsp_cell_real(xsp_steps_deviation(f))},
		{"min_ns", "min", XSP_UNIT_NS, f->steps > 0, xsp_cell_integer(f->min_ns)},
		{"p50_ns", "p50", XSP_UNIT_NS, f->steps > 0,
		 xsp_cell_integer(xsp_steps_quantile(f, 0.5))},
		{"p99_ns", "p99", XSP_UNIT_NS, f->steps > 0,
		 xsp_cell_integer(xsp_steps_quantile(f, 0.99))},
		{"max_ns", "max", XSP_UNIT_NS, f->steps > 0, xsp_cell_integer(f->max_ns)},
		{"probe_ns", "of it in probes, estimated, in the mean", XSP_UNIT_NS,
		 xsp_steps_have_probes(f), xsp_cell_real((double)f->probe_ns / count)},
		{"warm_up", "left out as warm-up", XSP_UNIT_COUNT, true,
		 xsp_cell_integer(all.warm_up)},
		{"warm_up_ns", "... which took", XSP_UNIT_NS, all.warm_up > 0,
		 xsp_cell_integer(all.warm_up_ns)},
		{"not_whole", "left out as not recorded from beginning to end", XSP_UNIT_COUNT,
		 true, xsp_cell_integer(f->not_whole)},
		{"left_out", "left out as of more threads than are followed", XSP_UNIT_COUNT,
		 f->left_out > 0, xsp_cell_integer(f->left_out)},
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
			list[i].share.name == NO_SPAN
				? "outside of traced calls"
				: xsp_timeline_name(s->timeline, list[i].share.name),
			xsp_format_ns(time,
				      (uint64_t)((double)list[i].share.self_ns - list[i].mean_ns)));
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
	const struct figures *f = &s->figures[xsp_steps_how(s)];
	struct xsp_report_table *t = xsp_report_table(out, &shape);

	for (size_t i = 0; i < f->slowest_count; i++) {
		const struct step *step = &f->slowest[i];
		char thread[128], *longer = longer_text(s, step);
		if (longer == NULL)
			return -ENOMEM;
		xsp_steps_thread(s, s->tracks[step->track], thread, sizeof(thread));
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
		const struct track *k = s->tracks[i];
		char thread[128];
		if (k->mark != xsp_steps_how(s) || k->steps == 0)
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

int xsp_steps_report(struct xsp_steps *s, const struct xsp_capture_reader *r,
		     struct xsp_report *report)
{
	struct xsp_report_section *section = xsp_report_section(report, "steps", "Steps");
	int rc = xsp_steps_end(s);
	const struct figures *f = &s->figures[xsp_steps_how(s)];
	uint64_t start, end;

	if (rc < 0)
		return rc;
	if (f->whole + f->not_whole == 0) {
		char text[256];
		xsp_steps_none(s, text, sizeof(text));
		xsp_report_note(section, text);
		return 0;
	}
	if (s->guess != NULL)
		xsp_report_note(section, s->guess->is
						 ? "guessed: nothing marks steps, and this is the "
						   "outermost call that repeats; --step NAME says "
						   "what one is"
						 : "guessed: nothing marks steps, and this call "
						   "ends the pattern of outermost calls that "
						   "repeats; --step NAME says what one is");
	xsp_capture_window(r, &start, &end);
	put_values(s, r, section);
	rc = put_slowest(s, start, section);
	put_threads(s, section);
	return rc;
}
