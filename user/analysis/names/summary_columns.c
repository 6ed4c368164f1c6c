/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_columns.c - the columns of names, and which report shows them. */
#include "analysis/names/summary_private.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"

#define NAME(name, value)                                                                          \
	XSP_REPORT_CELL(name, struct xsp_summary_names, struct xsp_summary_row, value)
#define OF(member) XSP_FIELD(struct xsp_summary_row, member)
#define IF(known, member) XSP_FIELD_IF(struct xsp_summary_row, member, known)

NAME(name_text, xsp_cell_text(xsp_summary_text(of->summary, row)));
NAME(name_std, row->measured > 1 ? xsp_cell_real(row->std_ns) : xsp_cell_absent());

static struct xsp_cell name_calls_per_step(struct xsp_report_at *at)
{
	const struct xsp_summary_names *names = at->of;
	const struct xsp_summary_row *row = at->row;
	const uint64_t calls =
		names->steps > 0 ? xsp_steps_calls(names->summary->steps, row->name, NULL) : 0;

	return calls > 0 ? xsp_cell_real((double)calls / (double)names->steps) : xsp_cell_absent();
}

static const struct xsp_report_column name_columns[] = {
	{"name", "name", XSP_UNIT_TEXT, true, XSP_BY(name_text)},
	{"calls", "calls", XSP_UNIT_COUNT, false, OF(calls)},
	{"calls_per_step", "a step", XSP_UNIT_COUNT, false, XSP_BY(name_calls_per_step)},
	{"total_ns", "total", XSP_UNIT_NS, false, IF(outermost, total_ns)},
	{"self_ns", "self", XSP_UNIT_NS, false, IF(timed, self_ns)},
	{"cpu_ns", "on CPU", XSP_UNIT_NS, false, IF(cpu_known, cpu_ns)},
	{"mean_ns", "mean", XSP_UNIT_NS, false, IF(measured, mean_ns)},
	{"std_ns", "std", XSP_UNIT_NS, false, XSP_BY(name_std)},
	{"min_ns", "min", XSP_UNIT_NS, false, IF(measured, min_ns)},
	{"p50_ns", "p50", XSP_UNIT_NS, false, IF(measured, p50_ns)},
	{"p99_ns", "p99", XSP_UNIT_NS, false, IF(measured, p99_ns)},
	{"max_ns", "max", XSP_UNIT_NS, false, IF(measured, max_ns)},
	{"share", "share", XSP_UNIT_SHARE, false, IF(share_known, share)},
	{"share_error", "share +-", XSP_UNIT_SHARE, false, IF(share_known, share_error)},
	{"unfinished", "unfinished", XSP_UNIT_COUNT, false, IF(unfinished, unfinished)},
	{"unwound", "unwound", XSP_UNIT_COUNT, false, IF(unwound, unwound)},
};
XSP_REPORT_SHAPE(analyze, names_shape, "operations", "operations",
		 "by self time; totals count recursion once, calls without an end are in no time",
		 name_columns);

/* ---- in summaries ---- */

NAME(name_cpu_least, xsp_cell_if(row->cpu_known || row->cpu_ns > 0, row->cpu_ns));

/* A name with its caveat: that its time is not its own, or when its probes were released. */
static struct xsp_cell name_shown(struct xsp_report_at *at)
{
	const struct xsp_summary_names *names = at->of;
	const struct xsp_summary_row *row = at->row;
	const char *name = xsp_summary_text(names->summary, row),
		   *mark = row->mostly_probes ? " *" : "";
	const struct xsp_capture_let_go *let_gos;
	const struct xsp_capture_probe *probes;
	const size_t count = xsp_capture_let_gos(names->reader, &let_gos);
	uint64_t start, end;

	xsp_capture_probes(names->reader, &probes);
	xsp_capture_window(names->reader, &start, &end);
	const struct xsp_capture_let_go *gone = NULL;
	for (size_t i = 0; i < count; i++)
		if (strcmp(probes[let_gos[i].probe].name, name) == 0)
			gone = &let_gos[i];
	if (gone == NULL && !row->mostly_probes)
		return xsp_cell_text(name);
	snprintf(at->text, sizeof(at->text), "%.4000s%s", name, mark);
	if (gone != NULL)
		xsp_join(at->text, sizeof(at->text), " ", "(until %.2f s)",
			 gone->time_ns > start ? (double)(gone->time_ns - start) * 1e-9 : 0.0);
	return xsp_cell_text(at->text);
}

/* ">=1.20 ms": for some calls it is not known. */
static struct xsp_cell name_cpu_shown(struct xsp_report_at *at)
{
	const struct xsp_summary_row *row = at->row;
	char figure[XSP_UNITS_SIZE];

	if (row->cpu_known || row->cpu_ns == 0)
		return row->cpu_known ? xsp_cell_integer(row->cpu_ns) : xsp_cell_absent();
	snprintf(at->text, sizeof(at->text), ">=%s", xsp_format_ns(figure, row->cpu_ns));
	return xsp_cell_text(at->text);
}

/* "50.5 +-2.1 %" */
static struct xsp_cell name_share_shown(struct xsp_report_at *at)
{
	const struct xsp_summary_row *row = at->row;

	if (!row->share_known)
		return xsp_cell_absent();
	snprintf(at->text, sizeof(at->text), "%.1f +-%.1f %%", 100 * row->share,
		 100 * row->share_error);
	return xsp_cell_text(at->text);
}

static const struct xsp_report_column more_columns[] = {
	{"shown", "name", XSP_UNIT_TEXT, false, XSP_BY(name_shown)},
	{"cpu_shown", "on CPU", XSP_UNIT_NS, false, XSP_BY(name_cpu_shown)},
	{"share_shown", "share", XSP_UNIT_SHARE, false, XSP_BY(name_share_shown)},
	{"measured", "measured", XSP_UNIT_COUNT, false, OF(measured)},
	{"cpu_least_ns", "on CPU, at least", XSP_UNIT_NS, false, XSP_BY(name_cpu_least)},
	{"unfinished", "unfinished", XSP_UNIT_COUNT, false, OF(unfinished)},
	{"unwound", "unwound", XSP_UNIT_COUNT, false, OF(unwound)},
	{"without_duration", "without a duration", XSP_UNIT_COUNT, false, OF(points)},
	{"mostly_probes", "mostly probes", XSP_UNIT_NUMBER, false, OF(mostly_probes)},
};

#define FIGURES                                                                                    \
	{.key = "self_ns"}, {.key = "mean_ns", .spare = 2}, {.key = "p50_ns", .spare = 3},         \
		{.key = "p99_ns", .spare = 1},                                                     \
	{                                                                                          \
		.key = "max_ns"                                                                    \
	}
static const struct xsp_list_column shown[] = {
	{.key = "shown"}, {.key = "calls"}, {.key = "total_ns"}, FIGURES};
static const struct xsp_list_column shown_with_cpu[] = {
	{.key = "shown"}, {.key = "calls"}, {.key = "total_ns"}, {.key = "cpu_shown"}, FIGURES};
static const struct xsp_list_column shown_in_windows[] = {{.key = "shown"},
							  {.key = "calls"},
							  {.key = "share_shown", .width = 12},
							  {.key = "total_ns"},
							  FIGURES};
#define NAMES(text)                                                                                \
	{                                                                                          \
		XSP_LIST_COLUMNS(name_columns), XSP_LIST_MORE(more_columns),                       \
			.full = &names_shape, .json = "names", .keys = NAME_KEYS,                  \
			XSP_LIST_TEXT(text), .rows = "name",                                       \
	}
#define NAME_KEYS                                                                                  \
	"name calls measured total_ns? cpu_ns? cpu_least_ns? self_ns? mean_ns? min_ns? p50_ns? "   \
	"p99_ns? max_ns? share? share_error? unfinished unwound without_duration mostly_probes"
const struct xsp_list xsp_summary_names_list = NAMES(shown);
const struct xsp_list xsp_summary_names_with_cpu = NAMES(shown_with_cpu);
const struct xsp_list xsp_summary_names_in_windows = NAMES(shown_in_windows);
