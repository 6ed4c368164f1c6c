/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/list.h"

#include <string.h>

#include "base/units.h"

static const struct xsp_report_column *find_in(const struct xsp_report_column *columns,
					       size_t count, const char *key, size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(columns[i].key, key, length) == 0 && columns[i].key[length] == '\0')
			return &columns[i];
	return NULL;
}

/* Those that are the list's own go before those of reports. NULL: there is no such, which is a fault of ours. */
static const struct xsp_report_column *find(const struct xsp_list *list, const char *key,
					    size_t length)
{
	const struct xsp_report_column *own = find_in(list->more, list->more_count, key, length);

	return own != NULL ? own : find_in(list->columns, list->count, key, length);
}

static void put_json(struct xsp_json_writer *j, const char *key, const struct xsp_cell *cell)
{
	if (cell->kind == XSP_CELL_BOOL)
		xsp_json_bool(j, key, cell->integer != 0);
	else if (cell->kind == XSP_CELL_INTEGER)
		xsp_json_signed(j, key, cell->integer);
	else if (cell->kind == XSP_CELL_REAL)
		xsp_json_real(j, key, cell->real);
	else
		xsp_json_text(j, key, cell->kind == XSP_CELL_TEXT ? cell->text : NULL);
}

void xsp_list_json(struct xsp_json_writer *j, const struct xsp_list *list, const char *keys,
		   const void *of, const void *row)
{
	struct xsp_report_at at;

	at.of = of;
	at.row = row;
	at.room = 0;
	while (*keys != '\0') {
		const size_t length = strcspn(keys, " ?");
		const bool optional = keys[length] == '?';
		const struct xsp_report_column *column = find(list, keys, length);
		const struct xsp_cell cell =
			column != NULL ? xsp_report_cell(column, &at) : xsp_cell_absent();
		if (column != NULL && (!optional || cell.kind != XSP_CELL_ABSENT))
			put_json(j, column->key, &cell);
		keys += length + optional;
		keys += strspn(keys, " ");
	}
}

void xsp_list_json_rows(struct xsp_json_writer *j, const char *name, const struct xsp_list *list,
			const char *keys, const void *of, const void *rows, size_t size,
			size_t count)
{
	xsp_json_begin(j, name, '[');
	for (size_t i = 0; i < count; i++) {
		xsp_json_begin(j, NULL, '{');
		xsp_list_json(j, list, keys, of, (const char *)rows + i * size);
		xsp_json_end(j, '{');
	}
	xsp_json_end(j, '[');
}

/* As wide as it is to be; 0: as long as it is. */
static void put_text(FILE *f, const char *text, int width)
{
	const int columns = (int)xsp_printable(NULL, 0, text, 0);
	const int least = width < 0 ? -width : width,
		  blanks = columns < least ? least - columns : 0;

	fprintf(f, "%*s%s%*s", width > 0 ? blanks : 0, "", text, width < 0 ? blanks : 0, "");
}

void xsp_list_head(const struct xsp_list_text *t, FILE *f, bool color)
{
	fputs(color ? "\033[1m" : "", f);
	for (size_t i = 0; i < t->count; i++) {
		const struct xsp_list_column *c = &t->columns[i];
		const struct xsp_report_column *column = find(t->list, c->key, strlen(c->key));
		fputs(i > 0 ? "  " : "", f);
		put_text(f,
			 c->title != NULL ? c->title
			 : column != NULL ? column->title
					  : c->key,
			 c->width);
	}
	fputs(color ? "\033[0m\n" : "\n", f);
}

void xsp_list_row(const struct xsp_list_text *t, FILE *f, const void *of, const void *row)
{
	struct xsp_report_at at;

	at.of = of;
	at.row = row;
	at.room = t->room;
	for (size_t i = 0; i < t->count; i++) {
		const struct xsp_list_column *c = &t->columns[i];
		const struct xsp_report_column *column = find(t->list, c->key, strlen(c->key));
		const struct xsp_cell cell =
			column != NULL ? xsp_report_cell(column, &at) : xsp_cell_absent();
		char text[XSP_REPORT_TEXT];
		if (cell.kind == XSP_CELL_TEXT)
			xsp_printable(text, sizeof(text), cell.text,
				      c->width < 0 ? (size_t)-c->width : 0);
		else if (cell.kind != XSP_CELL_ABSENT && c->format != NULL)
			snprintf(text, sizeof(text), c->format,
				 (cell.kind == XSP_CELL_REAL ? cell.real : (double)cell.integer) *
					 (c->times > 0 ? c->times : 1));
		else
			xsp_report_figure_text(&cell, column != NULL ? column->unit : XSP_UNIT_TEXT,
					       text);
		fputs(i > 0 ? "  " : "", f);
		put_text(f, text, c->width);
	}
}
