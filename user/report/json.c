/* SPDX-License-Identifier: BSD-2-Clause */
/* json.c - a report as JSON: docs/analyze.md describes it. */
#include <errno.h>

#include "base/format/json_tree.h"
#include "report/report_private.h"

static void put_values(struct xsp_json_work *w, cJSON *to, const struct xsp_report_section *s)
{
	cJSON *values = xsp_json_put_object(w, to, "values");
	cJSON *about = xsp_json_put_object(w, to, "about");

	for (size_t i = 0; i < s->value_count; i++) {
		const struct xsp_report_figure *figure = &s->values[i];
		xsp_json_put(w, values, figure->key, xsp_report_json_cell(&figure->value));
		cJSON *one = xsp_json_put_object(w, about, figure->key);
		xsp_json_put_text(w, one, "title", figure->title);
		xsp_json_put_text(w, one, "unit", xsp_unit_name(figure->unit));
	}
}

static void put_table(struct xsp_json_work *w, cJSON *tables, const struct xsp_report_table *t,
		      size_t top)
{
	const struct xsp_report_column *columns = t->shape->columns;
	const size_t count = t->shape->count;
	cJSON *table = xsp_json_put_object(w, tables, t->shape->key);

	xsp_json_put_text(w, table, "title", t->shape->title);
	xsp_json_put(w, table, "row_count", xsp_json_of_number(t->row_count));
	cJSON *list = xsp_json_put_array(w, table, "columns");
	for (size_t i = 0; i < count; i++) {
		cJSON *column = xsp_json_put_object(w, list, NULL);
		xsp_json_put_text(w, column, "key", columns[i].key);
		xsp_json_put_text(w, column, "title", columns[i].title);
		xsp_json_put_text(w, column, "unit", xsp_unit_name(columns[i].unit));
		xsp_json_put(w, column, "identity", cJSON_CreateBool(columns[i].identity));
	}
	list = xsp_json_put_array(w, table, "rows");
	for (size_t i = 0; i < t->row_count && (top == 0 || i < top); i++) {
		cJSON *row = xsp_json_put_object(w, list, NULL);
		for (size_t k = 0; k < count; k++)
			xsp_json_put(w, row, columns[k].key,
				     xsp_report_json_cell(&xsp_report_row_at(t, i)[k]));
	}
}

static void put_section(struct xsp_json_work *w, cJSON *sections,
			const struct xsp_report_section *s, size_t top)
{
	cJSON *section = xsp_json_put_object(w, sections, s->key);

	xsp_json_put_text(w, section, "title", s->title);
	put_values(w, section, s);
	cJSON *list = xsp_json_put_array(w, section, "notes");
	for (size_t i = 0; i < s->note_count; i++)
		xsp_json_put_text(w, list, NULL, s->notes[i]);
	cJSON *tables = xsp_json_put_object(w, section, "tables");
	for (size_t i = 0; i < s->table_count; i++)
		put_table(w, tables, s->tables[i], top);
}

static void put_finding(struct xsp_json_work *w, cJSON *findings,
			const struct xsp_report_found *found)
{
	const struct xsp_report_finding *f = &found->finding;
	cJSON *finding = xsp_json_put_object(w, findings, NULL);

	xsp_json_put_text(w, finding, "rule", f->rule);
	xsp_json_put_text(w, finding, "severity", xsp_severity_name(f->severity));
	xsp_json_put_text(w, finding, "subject", f->subject);
	xsp_json_put_text(w, finding, "title", f->title);
	xsp_json_put_text(w, finding, "advice", f->advice);
	xsp_json_put_text(w, finding, "uncertain", f->uncertain);
	xsp_json_put(w, finding, "share", xsp_json_of_real(f->share));
	if (f->to_ns > 0) {
		xsp_json_put(w, finding, "from_ns", xsp_json_of_number(f->from_ns));
		xsp_json_put(w, finding, "to_ns", xsp_json_of_number(f->to_ns));
	}
	put_values(w, finding, found->figures);
}

int xsp_report_write_json(const struct xsp_report *r, FILE *f, const struct xsp_report_how *how)
{
	struct xsp_json_work w = {.failed = false};
	cJSON *root = cJSON_CreateObject();

	xsp_json_put_text(&w, root, "format", XSP_REPORT_JSON);
	xsp_json_put(&w, root, "version", xsp_json_of_number(XSP_REPORT_VERSION));
	static const enum xsp_severity lists[] = {XSP_SEVERITY_HIGH, XSP_SEVERITY_HOT,
						  XSP_SEVERITY_NOTE};
	for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
		const char *list = xsp_severity_list(lists[k]);
		cJSON *array = xsp_json_put_array(&w, root, list);
		for (size_t i = 0; i < r->finding_count; i++)
			if (xsp_severity_list(r->findings[i].finding.severity) == list)
				put_finding(&w, array, &r->findings[i]);
	}
	cJSON *sections = xsp_json_put_object(&w, root, "sections");
	for (size_t i = 0; i < r->section_count; i++)
		put_section(&w, sections, r->sections[i], how->top);
	w.failed = w.failed || xsp_json_print(root, f) < 0;
	cJSON_Delete(root);
	fputc('\n', f);
	return w.failed || r->failed ? -ENOMEM : ferror(f) ? -EIO : 0;
}
