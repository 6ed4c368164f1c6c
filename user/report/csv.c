/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * csv.c - a report as one table with one value per line. A line says where the value stands
 * (section, table, row), which figure it is (key, unit), and its value. The tables of a report
 * differ in their columns, and a CSV file has only one set.
 */
#include "report/report_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/format/json.h"

struct csv {
	FILE *f;
	bool failed; /* out of memory */
};

static void put_text(struct csv *c, const char *text)
{
	char *quoted = xsp_csv_quoted(text, NULL);

	c->failed = c->failed || quoted == NULL;
	if (quoted != NULL)
		fputs(quoted, c->f);
	free(quoted);
}

/* `table` "", `row` -1: a value of the section. Keys and units are our own. */
static void put(struct csv *c, const char *section, const char *table, long row, const char *key,
		enum xsp_unit unit, const struct xsp_cell *cell)
{
	fprintf(c->f, "%s,%s,", section, table);
	if (row >= 0)
		fprintf(c->f, "%ld", row);
	fprintf(c->f, ",%s,%s,", key, xsp_unit_name(unit));
	if (cell->kind == XSP_CELL_INTEGER)
		fprintf(c->f, "%" PRId64, cell->integer);
	else if (cell->kind == XSP_CELL_REAL && isfinite(cell->real))
		fprintf(c->f, "%.15g", cell->real);
	else if (cell->kind == XSP_CELL_TEXT)
		put_text(c, cell->text);
	fputs("\r\n", c->f);
}

static void put_values(struct csv *c, const struct xsp_report_section *s, const char *section,
		       const char *table, long row)
{
	for (size_t i = 0; i < s->value_count; i++)
		put(c, section, table, row, s->values[i].key, s->values[i].unit,
		    &s->values[i].value);
}

static void put_finding(struct csv *c, const struct xsp_report_found *found, long row)
{
	const struct xsp_report_finding *f = &found->finding;
	const bool placed = f->to_ns > 0;
	const struct {
		const char *key;
		enum xsp_unit unit;
		struct xsp_cell cell;
	} entries[] = {
		{"rule", XSP_UNIT_TEXT, xsp_cell_text(f->rule)},
		{"severity", XSP_UNIT_TEXT, xsp_cell_text(xsp_severity_name(f->severity))},
		{"subject", XSP_UNIT_TEXT, xsp_cell_text(f->subject)},
		{"title", XSP_UNIT_TEXT, xsp_cell_text(f->title)},
		{"advice", XSP_UNIT_TEXT, xsp_cell_text(f->advice)},
		{"uncertain", XSP_UNIT_TEXT, xsp_cell_text(f->uncertain)},
		{"share", XSP_UNIT_SHARE, xsp_cell_real(f->share)},
		{"from_ns", XSP_UNIT_TIME,
		 placed ? xsp_cell_integer(f->from_ns) : xsp_cell_text(NULL)},
		{"to_ns", XSP_UNIT_TIME, placed ? xsp_cell_integer(f->to_ns) : xsp_cell_text(NULL)},
	};

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		put(c, xsp_severity_list(f->severity), "", row, entries[i].key, entries[i].unit,
		    &entries[i].cell);
	put_values(c, found->figures, xsp_severity_list(f->severity), "values", row);
}

static void put_table(struct csv *c, const char *section, const struct xsp_report_table *t,
		      size_t top)
{
	const struct xsp_report_column *columns = t->shape->columns;

	for (size_t i = 0; i < t->row_count && (top == 0 || i < top); i++)
		for (size_t k = 0; k < t->shape->count; k++)
			put(c, section, t->shape->key, (long)i, columns[k].key, columns[k].unit,
			    &xsp_report_row_at(t, i)[k]);
}

static void put_section(struct csv *c, const struct xsp_report_section *s, size_t top)
{
	put_values(c, s, s->key, "", -1);
	for (size_t i = 0; i < s->note_count; i++) {
		const struct xsp_cell note = xsp_cell_text(s->notes[i]);
		put(c, s->key, "", (long)i, "note", XSP_UNIT_TEXT, &note);
	}
	for (size_t i = 0; i < s->table_count; i++)
		put_table(c, s->key, s->tables[i], top);
}

int xsp_report_write_csv(const struct xsp_report *r, FILE *f, const struct xsp_report_how *how)
{
	struct csv c = {.f = f};

	fputs("section,table,row,key,unit,value\r\n", f);
	for (size_t i = 0; i < r->finding_count; i++)
		put_finding(&c, &r->findings[i], (long)i);
	for (size_t i = 0; i < r->section_count; i++)
		put_section(&c, r->sections[i], how->top);
	return c.failed || r->failed ? -ENOMEM : ferror(f) ? -EIO : 0;
}
