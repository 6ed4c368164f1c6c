/* SPDX-License-Identifier: BSD-2-Clause */
/* json.c - a report for programs: docs/analyze.md says what is in it. */
#include <errno.h>

#include "report/list.h"

static void put_values(struct xsp_json_writer *j, const struct xsp_report_section *s)
{
	const struct xsp_report_figure *values;
	const size_t count = xsp_report_values(s, &values);

	xsp_json_begin(j, "values", '{');
	for (size_t i = 0; i < count; i++)
		xsp_cell_json(j, values[i].key, &values[i].value);
	xsp_json_end(j, '{');
	xsp_json_begin(j, "about", '{');
	for (size_t i = 0; i < count; i++) {
		xsp_json_begin(j, values[i].key, '{');
		xsp_json_text(j, "title", values[i].title);
		xsp_json_text(j, "unit", xsp_unit_name(values[i].unit));
		xsp_json_end(j, '{');
	}
	xsp_json_end(j, '{');
}

static void put_table(struct xsp_json_writer *j, const struct xsp_report_table *t, size_t top)
{
	const struct xsp_report_column *columns;
	const size_t count = xsp_report_columns(t, &columns), rows = xsp_report_row_count(t);

	xsp_json_begin(j, xsp_report_table_key(t), '{');
	xsp_json_text(j, "title", xsp_report_table_title(t));
	xsp_json_number(j, "row_count", rows);
	xsp_json_begin(j, "columns", '[');
	for (size_t i = 0; i < count; i++) {
		xsp_json_begin(j, NULL, '{');
		xsp_json_text(j, "key", columns[i].key);
		xsp_json_text(j, "title", columns[i].title);
		xsp_json_text(j, "unit", xsp_unit_name(columns[i].unit));
		xsp_json_bool(j, "identity", columns[i].identity);
		xsp_json_end(j, '{');
	}
	xsp_json_end(j, '[');
	xsp_json_begin(j, "rows", '[');
	for (size_t i = 0; i < rows && (top == 0 || i < top); i++) {
		xsp_json_begin(j, NULL, '{');
		for (size_t k = 0; k < count; k++)
			xsp_cell_json(j, columns[k].key, &xsp_report_row_at(t, i)[k]);
		xsp_json_end(j, '{');
	}
	xsp_json_end(j, '[');
	xsp_json_end(j, '{');
}

static void put_section(struct xsp_json_writer *j, const struct xsp_report_section *s, size_t top)
{
	const char *const *notes;
	const size_t count = xsp_report_notes(s, &notes);

	xsp_json_begin(j, xsp_report_section_key(s), '{');
	xsp_json_text(j, "title", xsp_report_section_title(s));
	put_values(j, s);
	xsp_json_begin(j, "notes", '[');
	for (size_t i = 0; i < count; i++)
		xsp_json_text(j, NULL, notes[i]);
	xsp_json_end(j, '[');
	xsp_json_begin(j, "tables", '{');
	for (size_t i = 0; i < xsp_report_table_count(s); i++)
		put_table(j, xsp_report_table_at(s, i), top);
	xsp_json_end(j, '{');
	xsp_json_end(j, '{');
}

static void put_finding(struct xsp_json_writer *j, const struct xsp_report_found *found)
{
	const struct xsp_report_finding *f = &found->finding;

	xsp_json_begin(j, NULL, '{');
	xsp_json_text(j, "rule", f->rule);
	xsp_json_text(j, "severity", xsp_severity_name(f->severity));
	xsp_json_text(j, "subject", f->subject);
	xsp_json_text(j, "title", f->title);
	xsp_json_text(j, "advice", f->advice);
	xsp_json_text(j, "uncertain", f->uncertain);
	xsp_json_real(j, "share", f->share);
	if (f->to_ns > 0) {
		xsp_json_number(j, "from_ns", f->from_ns);
		xsp_json_number(j, "to_ns", f->to_ns);
	}
	put_values(j, found->figures);
	xsp_json_end(j, '{');
}

int xsp_report_write_json(const struct xsp_report *r, FILE *f, const struct xsp_report_how *how)
{
	struct xsp_json_writer j = {.f = f};
	const struct xsp_report_found *findings;
	const size_t count = xsp_report_findings(r, &findings);

	xsp_json_begin(&j, NULL, '{');
	xsp_json_text(&j, "format", XSP_REPORT_JSON);
	xsp_json_number(&j, "version", XSP_REPORT_VERSION);
	xsp_json_begin(&j, "findings", '[');
	for (size_t i = 0; i < count; i++)
		put_finding(&j, &findings[i]);
	xsp_json_end(&j, '[');
	xsp_json_begin(&j, "sections", '{');
	for (size_t i = 0; i < xsp_report_section_count(r); i++)
		put_section(&j, xsp_report_section_at(r, i), how->top);
	xsp_json_end(&j, '{');
	xsp_json_end(&j, '{');
	fputc('\n', f);
	return j.failed || xsp_report_failed(r) ? -ENOMEM : ferror(f) ? -EIO : 0;
}
