/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/names/summary_values.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/list.h"

static struct xsp_cell real_if(bool known, double value)
{
	return known && isfinite(value) ? xsp_cell_real(value) : xsp_cell_absent();
}

#define CELL(name, value) XSP_REPORT_CELL(name, struct xsp_timeline, struct xsp_value_row, value)

CELL(value_name, xsp_cell_text(xsp_timeline_name(of, row->name)));
CELL(value_last, xsp_cell_real(row->last)); /* even if it is no number */
CELL(value_min, real_if(row->finite > 0, row->min));
CELL(value_mean, real_if(row->finite > 0, row->mean));
CELL(value_max, real_if(row->finite > 0, row->max));
CELL(value_not_finite, xsp_cell_integer(row->count - row->finite));

static const struct xsp_report_column columns[] = {
	{"name", "value", XSP_UNIT_TEXT, true, XSP_BY(value_name)},
	{"count", "values", XSP_UNIT_COUNT, false, XSP_FIELD(struct xsp_value_row, count)},
	{"last", "last", XSP_UNIT_NUMBER, false, XSP_BY(value_last)},
	{"min", "min", XSP_UNIT_NUMBER, false, XSP_BY(value_min)},
	{"mean", "mean", XSP_UNIT_NUMBER, false, XSP_BY(value_mean)},
	{"max", "max", XSP_UNIT_NUMBER, false, XSP_BY(value_max)},
	{"not_finite", "not finite", XSP_UNIT_COUNT, false, XSP_BY(value_not_finite)},
};
XSP_REPORT_SHAPE(analyze, shape, "values", "values", "values", columns);

static const struct xsp_list_column shown[] = {
	{.key = "name", .width = -40},
	{.key = "count", .width = 12},
	{.key = "last", .width = 12, .format = "%.6g"},
	{.key = "min", .width = 12, .format = "%.6g"},
	{.key = "mean", .width = 12, .format = "%.6g"},
	{.key = "max", .width = 12, .format = "%.6g"},
};
static const struct xsp_list list = {
	XSP_LIST_COLUMNS(columns), .full = &shape,
	.json = "values",	   .keys = "name count not_finite last min mean max",
	XSP_LIST_TEXT(shown),
};

static void put_rows(const struct xsp_value_rows *r, const struct xsp_timeline *t,
		     struct xsp_report *report)
{
	const size_t shown_count = xsp_list_most(report, xsp_report_how(report)->top, r->count);
	struct xsp_report_table *table = xsp_list_table(
		xsp_report_section(report, "values", "Values that the program tells"), &list);
	FILE *line = xsp_list_in_line(report);
	char count[XSP_UNITS_SIZE];

	for (size_t i = 0; i < shown_count; i++) {
		const struct xsp_value_row *row = &r->rows[i];
		xsp_report_add(table, t, row);
		if (line != NULL && row->finite < row->count)
			fprintf(line, "  %s not finite, in no figure but the last",
				xsp_format_count(count, row->count - row->finite));
	}
	xsp_list_more(report, &list, r->count - shown_count);
	xsp_list_gap(report);
}

void xsp_summary_values_report(const struct xsp_value_rows *r, const struct xsp_timeline *t,
			       const char *batch, double step_ns, struct xsp_report *report)
{
	if (r->count == 0)
		return;
	put_rows(r, t, report);
	for (size_t i = 0; i < r->count; i++) {
		const struct xsp_value_row *row = &r->rows[i];
		if (step_ns <= 0 || row->finite == 0 || !(row->mean > 0) ||
		    strcmp(xsp_timeline_name(t, row->name), batch) != 0)
			continue;
		struct xsp_report_section *steps = xsp_report_section(report, "steps", "Steps");
		xsp_report_value(steps, "samples_per_step", "samples a step", XSP_UNIT_COUNT,
				 xsp_cell_real(row->mean));
		xsp_report_value(steps, "samples_per_second", "samples a second, a thread",
				 XSP_UNIT_PER_SECOND, xsp_cell_real(row->mean * 1e9 / step_ns));
	}
}
