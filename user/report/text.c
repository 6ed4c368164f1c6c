/* SPDX-License-Identifier: BSD-2-Clause */
/* text.c - a report as text: the head, the findings, and the sections. */
#include "report/report_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define WIDTH 80 /* without a terminal */
#define FIRST_COLUMN_MAX 48 /* of a table whose columns do not fit beside a longer one */
#define TEXT_COLUMN_LEAST 20 /* the least that a text beside it gets */
#define FINDING_INDENT 8

struct text {
	FILE *f;
	const struct xsp_report_how *how;
	size_t width;
	bool dropped; /* a column that had no room */
	bool failed; /* out of memory */
};

/* ---- texts ---- */

/* The text for a terminal; malloc'd. columns 0: not elided. */
static char *printable(const char *text, size_t columns)
{
	const size_t size = strlen(text) + 4;
	char *out = malloc(size);

	if (out != NULL)
		xsp_printable(out, size, text, columns);
	return out;
}

static size_t columns_of(const char *text)
{
	return xsp_printable(NULL, 0, text, 0);
}

static void put_colored(struct text *t, const char *color, const char *text)
{
	fprintf(t->f, "%s%s%s", t->how->color ? color : "", text, t->how->color ? "\033[0m" : "");
}

/* Puts words from column `at` on; later lines begin at `indent`. */
static void put_paragraph(struct text *t, const char *text, size_t indent, size_t at)
{
	char *clean = printable(text, 0);
	bool first = true;

	t->failed = t->failed || clean == NULL;
	for (char *word = clean; word != NULL && *word != '\0';) {
		char *end = word + strcspn(word, " ");
		const bool more = *end != '\0';
		*end = '\0';
		const size_t columns = columns_of(word);
		if (!first && at + 1 + columns > t->width) {
			fprintf(t->f, "\n%*s", (int)indent, "");
			at = indent;
			first = true;
		}
		at += columns + !first;
		fprintf(t->f, "%s%s", first ? "" : " ", word);
		first = false;
		word = end + more;
	}
	fputc('\n', t->f);
	free(clean);
}

/* ---- figures ---- */

static char *real_text(double value, enum xsp_unit unit, char out[XSP_REPORT_FIGURE])
{
	char text[XSP_UNITS_SIZE];
	const double size = fabs(value);
	const char *sign = value < 0 ? "-" : "";
	const bool large = !(size < 1.8e19); /* no integer of ours */

	if (!isfinite(value))
		snprintf(out, XSP_REPORT_FIGURE, "-");
	else if (unit == XSP_UNIT_NS && !large)
		snprintf(out, XSP_REPORT_FIGURE, "%s%s", sign,
			 xsp_format_ns(text, (uint64_t)llround(size)));
	else if (unit == XSP_UNIT_TIME)
		snprintf(out, XSP_REPORT_FIGURE, "%.3f s", value * 1e-9);
	else if ((unit == XSP_UNIT_BYTES || unit == XSP_UNIT_BYTES_PER_SECOND) && !large)
		snprintf(out, XSP_REPORT_FIGURE, "%s%s%s", sign,
			 xsp_format_bytes(text, (uint64_t)llround(size)),
			 unit == XSP_UNIT_BYTES ? "" : "/s");
	else if (unit == XSP_UNIT_CHANGE && value >= 1)
		snprintf(out, XSP_REPORT_FIGURE, "x %.3g", 1 + value);
	else if (unit == XSP_UNIT_SHARE || unit == XSP_UNIT_CHANGE)
		snprintf(out, XSP_REPORT_FIGURE, "%.1f %%", 100 * value);
	else if (unit == XSP_UNIT_PER_SECOND)
		snprintf(out, XSP_REPORT_FIGURE, "%.4g/s", value);
	else
		snprintf(out, XSP_REPORT_FIGURE, "%.4g", value);
	return out;
}

char *xsp_report_figure_text(const struct xsp_cell *cell, enum xsp_unit unit,
			     char out[XSP_REPORT_FIGURE])
{
	const bool whole = cell->kind == XSP_CELL_INTEGER || cell->kind == XSP_CELL_BOOL;

	if (cell->kind == XSP_CELL_ABSENT)
		snprintf(out, XSP_REPORT_FIGURE, "-");
	else if (whole && unit == XSP_UNIT_NUMBER)
		snprintf(out, XSP_REPORT_FIGURE, "%" PRId64, cell->integer);
	else if (whole && unit == XSP_UNIT_COUNT && cell->integer >= 0)
		xsp_format_count(out, (uint64_t)cell->integer);
	else
		real_text(whole ? (double)cell->integer : cell->real, unit, out);
	return out;
}

char *xsp_report_cell_text(const struct xsp_cell *cell, enum xsp_unit unit, size_t columns)
{
	char text[XSP_REPORT_FIGURE];

	return cell->kind == XSP_CELL_TEXT ? printable(cell->text, columns)
					   : strdup(xsp_report_figure_text(cell, unit, text));
}

/* Puts "title value" pairs in one paragraph. */
static void put_evidence(struct text *t, const struct xsp_report_section *figures)
{
	char *line = NULL;
	size_t length;
	FILE *f = open_memstream(&line, &length);

	for (size_t i = 0; i < figures->value_count && f != NULL; i++) {
		const struct xsp_report_figure *value = &figures->values[i];
		char *text = xsp_report_cell_text(&value->value, value->unit, 0);
		t->failed = t->failed || text == NULL;
		fprintf(f, "%s%s %s", i > 0 ? "; " : "", value->title, text != NULL ? text : "");
		free(text);
	}
	if (f == NULL || fclose(f) != 0)
		t->failed = true;
	if (figures->value_count > 0 && line != NULL) {
		fprintf(t->f, "%*s", FINDING_INDENT, "");
		put_paragraph(t, line, FINDING_INDENT, FINDING_INDENT);
	}
	free(line);
}

/* ---- findings ---- */

static void put_labelled(struct text *t, const char *label, const char *text)
{
	if (text == NULL)
		return;
	fprintf(t->f, "%*s%s: ", FINDING_INDENT, "", label);
	put_paragraph(t, text, FINDING_INDENT, FINDING_INDENT + strlen(label) + 2);
}

/* Exact, as --from and --to read it: "0.4", "7200.000012". */
#define SECONDS_SIZE 32
static const char *seconds(char out[SECONDS_SIZE], uint64_t ns)
{
	size_t length = (size_t)snprintf(out, SECONDS_SIZE, "%" PRIu64 ".%09" PRIu64,
					 ns / 1000000000, ns % 1000000000);

	while (out[length - 1] == '0')
		out[--length] = '\0';
	if (out[length - 1] == '.')
		out[length - 1] = '\0';
	return out;
}

const struct xsp_severity_look xsp_severity_looks[] = {
	[XSP_SEVERITY_NOTE] = {"NOTE", ""},
	[XSP_SEVERITY_HOT] = {"HOT", ""},
	[XSP_SEVERITY_LOW] = {"LOW", "\033[36m"},
	[XSP_SEVERITY_MEDIUM] = {"MEDIUM", "\033[33m"},
	[XSP_SEVERITY_HIGH] = {"HIGH", "\033[1;31m"}};

static void put_finding(struct text *t, const struct xsp_report_found *found)
{
	const struct xsp_report_finding *f = &found->finding;
	const struct xsp_severity_look *look = &xsp_severity_looks[f->severity];
	char from[SECONDS_SIZE], to[SECONDS_SIZE];

	put_colored(t, look->color, look->name);
	fprintf(t->f, "%*s", FINDING_INDENT - (int)strlen(look->name), "");
	put_paragraph(t, f->title, FINDING_INDENT, FINDING_INDENT);
	put_evidence(t, found->figures);
	put_labelled(t, "do", f->advice);
	if (f->to_ns > 0)
		fprintf(t->f, "%*slook at: --from %ss --to %ss   (rule %s)\n", FINDING_INDENT, "",
			seconds(from, f->from_ns / 1000 * 1000), seconds(to, f->to_ns), f->rule);
	else
		fprintf(t->f, "%*s(rule %s)\n", FINDING_INDENT, "", f->rule);
	put_labelled(t, "uncertain", f->uncertain);
}

static void put_findings(struct text *t, const struct xsp_report *r)
{
	const size_t count = xsp_report_true_findings(r);

	put_colored(t, "\033[1m", "Findings");
	if (count == 0)
		fputs(": none\n", t->f);
	else
		fprintf(t->f, ": %zu\n\n", count);
	for (size_t i = 0; i < count; i++)
		put_finding(t, &r->findings[i]);
	if (count < r->finding_count)
		fputs("\nMuch of the time, which need not be a fault, and notes:\n\n", t->f);
	for (size_t i = count; i < r->finding_count; i++)
		put_finding(t, &r->findings[i]);
	fputc('\n', t->f);
}

/* ---- tables ---- */

/* A table's cells as texts, titles first. */
struct grid {
	const struct xsp_report_column *columns;
	size_t column_count, row_count;
	char **texts;
	size_t *widths; /* by column; 0: every cell is absent, so the column is hidden */
};

#define OTHER_ROWS 3 /* shown after those that lead */

static size_t visible_rows(const struct xsp_report_table *table, const struct xsp_report_how *how)
{
	const size_t all = table->row_count, most = how->top > 0 && how->top < all ? how->top : all;

	if (!how->brief || !table->led)
		return most;
	return table->leading + OTHER_ROWS < most ? table->leading + OTHER_ROWS : most;
}

static bool fill_grid(const struct xsp_report_table *table, size_t rows, struct grid *g)
{
	g->columns = table->shape->columns;
	g->column_count = table->shape->count;
	g->row_count = 1 + rows;
	g->texts = calloc(g->row_count * g->column_count + 1, sizeof(*g->texts));
	g->widths = calloc(g->column_count + 1, sizeof(*g->widths));
	if (g->texts == NULL || g->widths == NULL)
		return false;
	for (size_t i = 0; i < g->row_count * g->column_count; i++) {
		const size_t row = i / g->column_count, k = i % g->column_count;
		const struct xsp_cell *cell =
			row > 0 ? &xsp_report_row_at(table, row - 1)[k] : NULL;
		g->texts[i] = row == 0 ? strdup(g->columns[k].title)
				       : xsp_report_cell_text(cell, g->columns[k].unit, 0);
		if (g->texts[i] == NULL)
			return false;
		const size_t columns = columns_of(g->texts[i]);
		if (row > 0 && cell->kind != XSP_CELL_ABSENT && columns > g->widths[k])
			g->widths[k] = columns;
	}
	for (size_t k = 0; k < g->column_count; k++) {
		const size_t title = columns_of(g->texts[k]);
		if (g->widths[k] > 0 && title > g->widths[k])
			g->widths[k] = title;
	}
	return true;
}

static void clear_grid(struct grid *g)
{
	for (size_t i = 0; g->texts != NULL && i < g->row_count * g->column_count; i++)
		free(g->texts[i]);
	free(g->texts);
	free(g->widths);
}

static void put_cell(struct text *t, const struct grid *g, size_t row, size_t k, size_t width,
		     bool last)
{
	const char *text = g->texts[row * g->column_count + k];
	const bool left = k == 0 || g->columns[k].unit == XSP_UNIT_TEXT;
	char *cut = t->how->width > 0 && left ? printable(text, width) : NULL;
	const size_t columns = columns_of(cut != NULL ? cut : text);
	const int blanks = columns < width ? (int)(width - columns) : 0;

	fprintf(t->f, "%s%*s%s", k > 0 ? "  " : "", left ? 0 : blanks, "",
		cut != NULL ? cut : text);
	if (left && !last)
		fprintf(t->f, "%*s", blanks, "");
	free(cut);
}

static void put_rows(struct text *t, const struct grid *g)
{
	size_t last = 0;

	for (size_t k = 1; k < g->column_count; k++)
		last = g->widths[k] > 0 ? k : last;
	for (size_t row = 0; row < g->row_count; row++) {
		fputs(t->how->color && row == 0 ? "\033[1m" : "", t->f);
		for (size_t k = 0; k <= last; k++)
			if (k == 0 || g->widths[k] > 0)
				put_cell(t, g, row, k, g->widths[k], k == last);
		fputs(t->how->color && row == 0 ? "\033[0m\n" : "\n", t->f);
	}
}

static size_t width_of(const struct grid *g)
{
	size_t sum = g->widths[0];

	for (size_t k = 1; k < g->column_count; k++)
		sum += g->widths[k] > 0 ? g->widths[k] + 2 : 0;
	return sum;
}

/* On a terminal: texts give way first, the first column last of them; then columns are dropped, the last ones first. */
static void fit(struct text *t, struct grid *g)
{
	for (size_t k = g->column_count; k-- > 0 && t->how->width > 0;) {
		const size_t all = width_of(g),
			     least = k == 0 ? FIRST_COLUMN_MAX : TEXT_COLUMN_LEAST;
		const size_t over = all > t->width ? all - t->width : 0;
		if ((k == 0 || g->columns[k].unit == XSP_UNIT_TEXT) && g->widths[k] > least)
			g->widths[k] = g->widths[k] - least > over ? g->widths[k] - over : least;
	}
	for (size_t k = g->column_count; --k > 0 && t->how->width > 0 && width_of(g) > t->width;) {
		t->dropped = t->dropped || g->widths[k] > 0;
		g->widths[k] = 0;
	}
	if (t->how->width > 0 && g->widths[0] > t->width)
		g->widths[0] = t->width;
}

static void put_table(struct text *t, const struct xsp_report_table *table)
{
	const size_t rows = table->row_count;
	struct grid g = {0};

	if (rows == 0)
		return;
	put_colored(t, "\033[1m", table->shape->title);
	fputs(":\n", t->f);
	if (fill_grid(table, visible_rows(table, t->how), &g)) {
		fit(t, &g);
		put_rows(t, &g);
	} else {
		t->failed = true;
	}
	if (g.row_count > 0 && rows > g.row_count - 1)
		fprintf(t->f, "... and %zu more%s\n", rows - (g.row_count - 1),
			t->how->few ? "" : " (--rows all)");
	fputc('\n', t->f);
	clear_grid(&g);
}

/* ---- sections ---- */

static void put_values(struct text *t, const struct xsp_report_section *s)
{
	const struct xsp_report_figure *values = s->values;
	const size_t count = s->value_count;
	size_t widest = 0;

	for (size_t i = 0; i < count; i++)
		if (values[i].value.kind != XSP_CELL_ABSENT && columns_of(values[i].title) > widest)
			widest = columns_of(values[i].title);
	for (size_t i = 0; i < count; i++) {
		if (values[i].value.kind == XSP_CELL_ABSENT)
			continue;
		char *text = xsp_report_cell_text(&values[i].value, values[i].unit, 0);
		t->failed = t->failed || text == NULL;
		fprintf(t->f, "  %s%*s  ", values[i].title,
			(int)(widest - columns_of(values[i].title)), "");
		put_paragraph(t, text != NULL ? text : "", widest + 4, widest + 4);
		free(text);
	}
}

static bool is_empty(const struct xsp_report_section *s)
{
	size_t what = s->note_count + s->value_count;

	for (size_t i = 0; i < s->table_count; i++)
		what += s->tables[i]->row_count;
	return what == 0;
}

static void put_section(struct text *t, const struct xsp_report_section *s)
{
	if (is_empty(s))
		return;
	put_colored(t, "\033[1m", s->title);
	fputc('\n', t->f);
	put_values(t, s);
	for (size_t i = 0; i < s->note_count; i++) {
		fputs("  ", t->f);
		put_paragraph(t, s->notes[i], 2, 2);
	}
	if (s->note_count + s->value_count > 0)
		fputc('\n', t->f);
	for (size_t i = 0; i < s->table_count; i++)
		put_table(t, s->tables[i]);
}

int xsp_report_put_few(const struct xsp_report_table *table, size_t rows, FILE *f,
		       const struct xsp_report_how *how)
{
	struct xsp_report_how few = *how;
	struct text t = {.f = f, .how = &few, .width = how->width > 0 ? (size_t)how->width : WIDTH};

	few.width = (int)t.width;
	few.top = rows;
	few.few = true;
	put_table(&t, table);
	return t.failed ? -ENOMEM : 0;
}

int xsp_report_write_text(const struct xsp_report *r, FILE *f, const struct xsp_report_how *how)
{
	struct text t = {.f = f, .how = how, .width = how->width > 0 ? (size_t)how->width : WIDTH};

	if (r->section_count > 0)
		put_section(&t, r->sections[0]);
	put_findings(&t, r);
	for (size_t i = 1; i < r->section_count; i++)
		put_section(&t, r->sections[i]);
	if (t.dropped)
		fputs("columns without room are left out: a wider terminal or --format json has them\n",
		      f);
	return t.failed || r->failed ? -ENOMEM : ferror(f) ? -EIO : 0;
}
