/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/names/summary_values.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

#define NAME_COLUMNS 40

static const char *const titles[] = {"values", "last", "min", "mean", "max"};
#define COLUMNS (sizeof(titles) / sizeof(titles[0]))

/* What is not known is "-". */
static void put_real(char out[XSP_UNITS_SIZE], bool known, double value)
{
	if (known)
		snprintf(out, XSP_UNITS_SIZE, "%.6g", value);
	else
		snprintf(out, XSP_UNITS_SIZE, "-");
}

static void print_row(const struct xsp_value_row *row, const char *name, FILE *f)
{
	char cells[COLUMNS][XSP_UNITS_SIZE], printable[4 * NAME_COLUMNS + 4];
	const bool known = row->finite > 0;
	const size_t columns = xsp_printable(printable, sizeof(printable), name, NAME_COLUMNS);

	xsp_format_count(cells[0], row->count);
	put_real(cells[1], true, row->last);
	put_real(cells[2], known, row->min);
	put_real(cells[3], known, row->mean);
	put_real(cells[4], known, row->max);
	fprintf(f, "%s%*s", printable, (int)(NAME_COLUMNS - columns), "");
	for (size_t i = 0; i < COLUMNS; i++)
		fprintf(f, "  %12s", cells[i]);
	if (row->finite < row->count)
		fprintf(f, "  %s not finite, in no figure but the last",
			xsp_format_count(cells[0], row->count - row->finite));
	fputc('\n', f);
}

void xsp_summary_values_write(const struct xsp_value_rows *r, const struct xsp_timeline *t, FILE *f,
			      const struct xsp_summary_print *how)
{
	const size_t shown_count = how->limit > 0 && how->limit < r->count ? how->limit : r->count;

	if (r->count == 0)
		return;
	fputs(how->color ? "\033[1m" : "", f);
	fprintf(f, "%-*s", NAME_COLUMNS, "value");
	for (size_t i = 0; i < COLUMNS; i++)
		fprintf(f, "  %12s", titles[i]);
	fputs(how->color ? "\033[0m\n" : "\n", f);
	for (size_t i = 0; i < shown_count; i++)
		print_row(&r->rows[i], xsp_timeline_name(t, r->rows[i].name), f);
	if (shown_count < r->count)
		fprintf(f, "... and %zu more\n", r->count - shown_count);
	fputc('\n', f);
}

void xsp_summary_values_json(const struct xsp_value_rows *r, const struct xsp_timeline *t,
			     struct xsp_json_writer *j)
{
	if (r->count == 0)
		return;
	xsp_json_begin(j, "values", '[');
	for (size_t i = 0; i < r->count; i++) {
		const struct xsp_value_row *row = &r->rows[i];
		const bool known = row->finite > 0;
		xsp_json_begin(j, NULL, '{');
		xsp_json_text(j, "name", xsp_timeline_name(t, row->name));
		xsp_json_number(j, "count", row->count);
		xsp_json_number(j, "not_finite", row->count - row->finite);
		xsp_json_real(j, "last", row->last);
		xsp_json_real(j, "min", known ? row->min : (double)NAN);
		xsp_json_real(j, "mean", known ? row->mean : (double)NAN);
		xsp_json_real(j, "max", known ? row->max : (double)NAN);
		xsp_json_end(j, '{');
	}
	xsp_json_end(j, '[');
}

/* ---- a report ---- */

static struct xsp_cell real_if(bool known, double value)
{
	return known && isfinite(value) ? xsp_cell_real(value) : xsp_cell_text(NULL);
}

static void report_rows(const struct xsp_value_rows *r, const struct xsp_timeline *t,
			struct xsp_report *report)
{
	static const struct xsp_report_column columns[] = {
		{"name", "value", XSP_UNIT_TEXT, true},
		{"count", "told", XSP_UNIT_COUNT, false},
		{"last", "last", XSP_UNIT_NUMBER, false},
		{"min", "min", XSP_UNIT_NUMBER, false},
		{"mean", "mean", XSP_UNIT_NUMBER, false},
		{"max", "max", XSP_UNIT_NUMBER, false},
		{"not_finite", "not finite", XSP_UNIT_COUNT, false},
	};
	XSP_REPORT_SHAPE(analyze, shape, "values", "values", "values", columns);
	struct xsp_report_table *table = xsp_report_table(
		xsp_report_section(report, "values", "Values that the program tells"), &shape);

	for (size_t i = 0; i < r->count; i++) {
		const struct xsp_value_row *row = &r->rows[i];
		const bool known = row->finite > 0;
		const struct xsp_cell cells[] = {
			xsp_cell_text(xsp_timeline_name(t, row->name)),
			xsp_cell_integer(row->count),
			real_if(true, row->last),
			real_if(known, row->min),
			real_if(known, row->mean),
			real_if(known, row->max),
			xsp_cell_integer(row->count - row->finite),
		};
		xsp_report_row(table, cells);
	}
}

void xsp_summary_values_report(const struct xsp_value_rows *r, const struct xsp_timeline *t,
			       const char *batch, double step_ns, struct xsp_report *report)
{
	if (r->count == 0)
		return;
	report_rows(r, t, report);
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
