/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/list.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
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

void xsp_cell_json(struct xsp_json_writer *j, const char *key, const struct xsp_cell *cell)
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
			xsp_cell_json(j, column->key, &cell);
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

static const char *title_of(const struct xsp_list_text *t, size_t i)
{
	const struct xsp_list_column *c = &t->columns[i];
	const struct xsp_report_column *column = find(t->list, c->key, strlen(c->key));

	return c->title != NULL ? c->title : column != NULL ? column->title : c->key;
}

/* Room for a cell: names of the target's may be as long as it likes. */
struct room {
	char text[XSP_REPORT_TEXT];
	char *longer;
	size_t capacity;
};

static const char *printable(struct room *room, const char *text, size_t most)
{
	const size_t size = strlen(text) + 4;

	if (size > sizeof(room->text) && xsp_grow(&room->longer, &room->capacity, size) == 0) {
		xsp_printable(room->longer, size, text, most);
		return room->longer;
	}
	xsp_printable(room->text, sizeof(room->text), text, most);
	return room->text;
}

/* What stands in the column `i` of the row, until the next one is asked for. */
static const char *shown(const struct xsp_list_text *t, size_t i, struct xsp_report_at *at,
			 size_t most, struct room *room)
{
	const struct xsp_list_column *c = &t->columns[i];
	const struct xsp_report_column *column = find(t->list, c->key, strlen(c->key));
	const struct xsp_cell cell =
		column != NULL ? xsp_report_cell(column, at) : xsp_cell_absent();

	if (cell.kind == XSP_CELL_TEXT)
		return printable(room, cell.text, most);
	if (cell.kind == XSP_CELL_ABSENT || c->format == NULL)
		return xsp_report_figure_text(&cell, column != NULL ? column->unit : XSP_UNIT_TEXT,
					      room->text);
	snprintf(room->text, sizeof(room->text), c->format,
		 (cell.kind == XSP_CELL_REAL ? cell.real : (double)cell.integer) *
			 (c->times > 0 ? c->times : 1));
	return room->text;
}

static void look_at(struct xsp_report_at *at, const struct xsp_list_text *t, const void *of,
		    const void *row)
{
	at->of = of;
	at->row = row;
	at->room = t->room;
}

void xsp_list_head(const struct xsp_list_text *t, FILE *f, bool color)
{
	fputs(color ? "\033[1m" : "", f);
	for (size_t i = 0; i < t->count; i++) {
		fputs(i > 0 ? "  " : "", f);
		put_text(f, title_of(t, i), t->columns[i].width);
	}
	fputs(color ? "\033[0m\n" : "\n", f);
}

void xsp_list_row(const struct xsp_list_text *t, FILE *f, const void *of, const void *row)
{
	struct room room = {.longer = NULL};
	struct xsp_report_at at;

	look_at(&at, t, of, row);
	for (size_t i = 0; i < t->count; i++) {
		const int width = t->columns[i].width;
		fputs(i > 0 ? "  " : "", f);
		put_text(f, shown(t, i, &at, width < 0 ? (size_t)-width : 0, &room), width);
	}
	free(room.longer);
}

/* ---- columns as wide as they must be ---- */

#define NAME_MIN 24 /* a name is not cut further than this */
#define NAME_MAX_ALIGNED 64 /* in a pipe names are whole; longer ones push their numbers aside */

static size_t columns_of(const char *text)
{
	return xsp_printable(NULL, 0, text, 0);
}

/* The spare one to go next; 0: there is none. */
static size_t next_spare(const struct xsp_list_text *t, const struct xsp_list_fit *fit)
{
	size_t found = 0;

	for (size_t i = 1; i < t->count; i++)
		if (fit->widths[i] >= 0 && t->columns[i].spare > t->columns[found].spare)
			found = i;
	return found;
}

static void make_fit(const struct xsp_list_text *t, int width, struct xsp_list_fit *fit)
{
	int numbers = 0;
	size_t spare;

	for (size_t i = 1; i < t->count; i++)
		numbers += fit->widths[i] + 2;
	const int name_least = fit->name < NAME_MIN ? (int)fit->name : NAME_MIN;
	while (width > 0 && name_least + numbers > width && (spare = next_spare(t, fit)) > 0) {
		numbers -= fit->widths[spare] + 2;
		fit->widths[spare] = -1;
		fit->narrow = true;
	}
	if (width > 0 && (int)fit->name + numbers > width)
		fit->name = width - numbers > NAME_MIN ? (size_t)(width - numbers) : NAME_MIN;
	if (width <= 0 && fit->name > NAME_MAX_ALIGNED)
		fit->name = NAME_MAX_ALIGNED;
}

void xsp_list_fit(const struct xsp_list_text *t, const void *of, const void *rows, size_t size,
		  size_t count, int width, struct xsp_list_fit *out)
{
	struct room room = {.longer = NULL};
	struct xsp_report_at at;

	*out = (struct xsp_list_fit){.name = columns_of(title_of(t, 0)), .cut = width > 0};
	for (size_t i = 1; i < t->count; i++)
		out->widths[i] = (int)columns_of(title_of(t, i));
	for (size_t r = 0; r < count; r++) {
		look_at(&at, t, of, (const char *)rows + r * size);
		const size_t name = columns_of(shown(t, 0, &at, 0, &room));
		out->name = name > out->name ? name : out->name;
		for (size_t i = 1; i < t->count; i++) {
			const int columns = (int)columns_of(shown(t, i, &at, 0, &room));
			out->widths[i] = columns > out->widths[i] ? columns : out->widths[i];
		}
	}
	free(room.longer);
	make_fit(t, width, out);
}

void xsp_list_fitted(const struct xsp_list_text *t, const struct xsp_list_fit *fit, FILE *f,
		     const void *of, const void *rows, size_t size, size_t count, bool color)
{
	struct room room = {.longer = NULL};
	struct xsp_report_at at;

	for (size_t r = 0; r <= count; r++) { /* the titles, then the rows */
		if (r > 0)
			look_at(&at, t, of, (const char *)rows + (r - 1) * size);
		fputs(color && r == 0 ? "\033[1m" : "", f);
		put_text(f,
			 r == 0 ? title_of(t, 0)
				: shown(t, 0, &at, fit->cut ? fit->name : 0, &room),
			 -(int)fit->name);
		for (size_t i = 1; i < t->count; i++) {
			if (fit->widths[i] < 0)
				continue;
			fputs("  ", f);
			put_text(f, r == 0 ? title_of(t, i) : shown(t, i, &at, 0, &room),
				 fit->widths[i]);
		}
		fputs(color && r == 0 ? "\033[0m\n" : "\n", f);
	}
	free(room.longer);
}

void xsp_list_hidden(const struct xsp_list_text *t, const struct xsp_list_fit *fit, FILE *f)
{
	if (!fit->narrow)
		return;
	fputs("not shown, as the terminal is narrow:", f);
	for (unsigned spare = XSP_LIST_MOST; spare > 0; spare--)
		for (size_t i = 1; i < t->count; i++)
			if (fit->widths[i] < 0 && t->columns[i].spare == spare)
				fprintf(f, " %s", title_of(t, i));
	fputc('\n', f);
}
