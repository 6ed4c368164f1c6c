/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/report_private.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json_tree.h"
#include "base/units.h"

static const struct xsp_report_column *find_in(const struct xsp_report_column *columns,
					       size_t count, const char *key, size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(columns[i].key, key, length) == 0 && columns[i].key[length] == '\0')
			return &columns[i];
	return NULL;
}

/* The list's own columns go before those of reports. NULL: no such column, which is a bug. */
static const struct xsp_report_column *find(const struct xsp_list *list, const char *key,
					    size_t length)
{
	const struct xsp_report_column *own = find_in(list->more, list->more_count, key, length);

	return own != NULL ? own : find_in(list->columns, list->count, key, length);
}

int xsp_report_new_summary(enum xsp_report_form form, const struct xsp_report_how *how,
			   struct xsp_report **out)
{
	int rc = xsp_report_new(out);

	if (rc < 0)
		return rc;
	struct xsp_report *r = *out;
	r->form = form;
	r->how = *how;
	if (form == XSP_FORM_JSON)
		r->json = cJSON_CreateObject();
	r->tables.f =
		form == XSP_FORM_TEXT ? open_memstream(&r->tables.text, &r->tables.length) : NULL;
	r->lines.f =
		form == XSP_FORM_TEXT ? open_memstream(&r->lines.text, &r->lines.length) : NULL;
	if (form == XSP_FORM_JSON ? r->json != NULL : r->tables.f != NULL && r->lines.f != NULL)
		return 0;
	xsp_report_free(r);
	*out = NULL;
	return -ENOMEM;
}

enum xsp_report_form xsp_report_form(const struct xsp_report *r)
{
	return r->form;
}

const struct xsp_report_how *xsp_report_how(const struct xsp_report *r)
{
	return &r->how;
}

static bool put(struct xsp_report_text *t, FILE *f)
{
	const bool whole = !ferror(t->f) && fflush(t->f) == 0;

	fwrite(t->text, 1, t->length, f);
	return whole;
}

int xsp_report_write_summary(struct xsp_report *r, FILE *f)
{
	if (r->form == XSP_FORM_TEXT) {
		xsp_list_below(r);
		r->failed = !put(&r->tables, f) || r->failed;
		r->failed = !put(&r->lines, f) || r->failed;
	} else {
		r->failed = xsp_json_print(r->json, f) < 0 || r->failed;
		fputc('\n', f);
	}
	return r->failed ? -ENOMEM : ferror(f) ? -EIO : 0;
}

/* ---- JSON ---- */

cJSON *xsp_report_json_cell(const struct xsp_cell *cell)
{
	switch (cell->kind) {
	case XSP_CELL_TEXT:
		return xsp_json_of_text(cell->text);
	case XSP_CELL_INTEGER:
		return xsp_json_of_signed(cell->integer);
	case XSP_CELL_REAL:
		return xsp_json_of_real(cell->real);
	case XSP_CELL_BOOL:
		return cJSON_CreateBool(cell->integer != 0);
	case XSP_CELL_ABSENT:
		break;
	}
	return cJSON_CreateNull();
}

static void put_member(struct xsp_report *r, cJSON *to, const char *path,
		       const struct xsp_cell *cell)
{
	const size_t length = strlen(path);
	char object[64];

	if (length > 0 && path[length - 1] == '.') {
		snprintf(object, sizeof(object), "%.*s", (int)length - 1, path);
		r->failed |= xsp_json_add_at(to, object, cJSON_CreateObject()) == NULL;
	} else {
		r->failed |= xsp_json_add_at(to, path, xsp_report_json_cell(cell)) == NULL;
	}
}

/* Puts the members that the list's keys name. */
static void put_members(struct xsp_report *r, cJSON *to, const struct xsp_list *list,
			const void *of, const void *row)
{
	struct xsp_report_at at;

	r->failed = r->failed || to == NULL;
	xsp_report_look_at(&at, of, row);
	for (const char *keys = list->keys; *keys != '\0';) {
		const size_t length = strcspn(keys, " ?");
		const bool optional = keys[length] == '?';
		const struct xsp_report_column *column = find(list, keys, length);
		const struct xsp_cell cell =
			column != NULL ? xsp_report_cell(column, &at) : xsp_cell_absent();
		if (column != NULL && (!optional || cell.kind != XSP_CELL_ABSENT))
			put_member(r, to, column->key, &cell);
		keys += length + optional;
		keys += strspn(keys, " ");
	}
}

void xsp_list_member(struct xsp_report *r, const char *path, struct xsp_cell value)
{
	if (r->form == XSP_FORM_JSON)
		put_member(r, r->json, path, &value);
}

void xsp_list_row_member(struct xsp_report_table *t, const char *path, struct xsp_cell value)
{
	if (t != NULL && t->rows != NULL)
		put_member(t->report, t->last, path, &value);
}

/* ---- tables ---- */

static struct xsp_report_table *new_table(struct xsp_report *r, const struct xsp_list *list,
					  cJSON *in)
{
	struct xsp_report_table *t = xsp_arena_alloc(&r->arena, sizeof(*t));

	r->failed = r->failed || t == NULL;
	if (t == NULL)
		return NULL;
	*t = (struct xsp_report_table){.report = r, .list = list};
	if (in != NULL) {
		t->rows = xsp_json_add_at(in, list->json, cJSON_CreateArray());
		r->failed = r->failed || t->rows == NULL;
	}
	return t;
}

struct xsp_report_table *xsp_list_table(struct xsp_report_section *s, const struct xsp_list *list)
{
	if (s == NULL)
		return NULL;
	if (s->report->form == XSP_FORM_FULL)
		return list->full != NULL ? xsp_report_table(s, list->full) : NULL;
	if ((s->report->form == XSP_FORM_JSON ? list->json : (const void *)list->text) == NULL)
		return NULL;
	return new_table(s->report, list, s->report->json);
}

struct xsp_report_table *xsp_list_in_row(struct xsp_report_table *t, const struct xsp_list *list)
{
	return t != NULL && t->rows != NULL ? new_table(t->report, list, t->last) : NULL;
}

static void put_values(struct xsp_report_section *s, const struct xsp_list *list, const void *of,
		       const void *row)
{
	struct xsp_report_at at;

	xsp_report_look_at(&at, of, row);
	for (size_t i = 0; i < list->count; i++) {
		const struct xsp_report_column *c = &list->columns[i];
		const struct xsp_cell cell = xsp_report_cell(c, &at);
		if (!list->known || cell.kind != XSP_CELL_ABSENT)
			xsp_report_value(s, c->key, c->title, c->unit, cell);
	}
}

void xsp_list_values(struct xsp_report_section *s, const struct xsp_list *list, const void *of,
		     const void *row)
{
	if (s == NULL || s->report->form == XSP_FORM_TEXT)
		return;
	if (s->report->form == XSP_FORM_FULL) {
		put_values(s, list, of, row);
		return;
	}
	cJSON *to = s->report->json;
	if (list->json != NULL) {
		to = xsp_json_find_at(s->report->json, list->json);
		if (to == NULL)
			to = xsp_json_add_at(s->report->json, list->json, cJSON_CreateObject());
	}
	put_members(s->report, to, list, of, row);
}

/* ---- text ---- */

/* Pads the text to `width`; 0: no padding. */
static void put_text(FILE *f, const char *text, int width)
{
	const int columns = (int)xsp_printable(NULL, 0, text, 0);
	const int least = width < 0 ? -width : width,
		  blanks = columns < least ? least - columns : 0;

	fprintf(f, "%*s%s%*s", width > 0 ? blanks : 0, "", text, width < 0 ? blanks : 0, "");
}

static const char *title_of(const struct xsp_list *list, size_t i)
{
	const struct xsp_list_column *c = &list->text[i];
	const struct xsp_report_column *column = find(list, c->key, strlen(c->key));

	return c->title != NULL ? c->title : column != NULL ? column->title : c->key;
}

/* The text in column `i`: of a row, or with `at` NULL the title. `most`: columns to elide it to,
 * 0: whole. malloc'd. */
static char *shown(struct xsp_report *r, const struct xsp_list *list, size_t i,
		   struct xsp_report_at *at, size_t most)
{
	const struct xsp_list_column *c = &list->text[i];
	const struct xsp_report_column *column = find(list, c->key, strlen(c->key));
	const struct xsp_cell cell = at == NULL	      ? xsp_cell_text(title_of(list, i))
				     : column != NULL ? xsp_report_cell(column, at)
						      : xsp_cell_absent();
	char *text = NULL;

	if (c->format == NULL || cell.kind == XSP_CELL_TEXT || cell.kind == XSP_CELL_ABSENT)
		text = xsp_report_cell_text(&cell, column != NULL ? column->unit : XSP_UNIT_TEXT,
					    most);
	else if (asprintf(&text, c->format,
			  (cell.kind == XSP_CELL_REAL ? cell.real : (double)cell.integer) *
				  (c->times > 0 ? c->times : 1)) < 0)
		text = NULL;
	r->failed = r->failed || text == NULL;
	return text;
}

#define MOST_COLUMNS 16
#define HIDDEN INT_MIN

struct layout {
	int widths[MOST_COLUMNS]; /* as in struct xsp_list_column; HIDDEN: not shown */
	/* elides longer texts in columns that begin at the left; else they push the rest of the
	 * line aside */
	bool cut;
	bool narrow; /* spare columns are not shown */
};

static struct layout fixed_layout(const struct xsp_list *list)
{
	struct layout out = {.cut = true};

	for (size_t i = 0; i < list->text_count; i++)
		out.widths[i] = list->text[i].width;
	return out;
}

/* Puts a row, or with `at` NULL the titles; no newline. */
static void put_line(struct xsp_report *r, const struct xsp_list *list, const struct layout *layout,
		     struct xsp_report_at *at)
{
	const bool bold = at == NULL && r->how.color;
	FILE *f = r->tables.f;

	fputs(bold ? "\033[1m" : "", f);
	for (size_t i = 0; i < list->text_count; i++) {
		const int width = layout->widths[i];
		if (width == HIDDEN)
			continue;
		char *text = shown(r, list, i, at,
				   at != NULL && layout->cut && width < 0 ? (size_t)-width : 0);
		fputs(i > 0 ? "  " : "", f);
		put_text(f, text != NULL ? text : "", width);
		free(text);
	}
	fputs(bold ? "\033[0m" : "", f);
}

void xsp_report_add(struct xsp_report_table *t, const void *of, const void *row)
{
	if (t == NULL || t->list == NULL) {
		xsp_report_keep(t, of, row);
		return;
	}
	struct xsp_report *r = t->report;
	if (r->form == XSP_FORM_JSON) {
		t->last = xsp_json_add(t->rows, NULL, cJSON_CreateObject());
		put_members(r, t->last, t->list, of, row);
		return;
	}
	const struct layout layout = fixed_layout(t->list);
	struct xsp_report_at at;
	xsp_report_look_at(&at, of, row);
	at.room = (size_t)r->how.width;
	FILE *f = xsp_list_below(r);
	if (t->row_count++ == 0) {
		put_line(r, t->list, &layout, NULL);
		fputc('\n', f);
	}
	put_line(r, t->list, &layout, &at);
	r->row_open = true;
}

void xsp_report_rows(struct xsp_report_table *t, const void *of, const void *rows, size_t size,
		     size_t count)
{
	for (size_t i = 0; t != NULL && i < count; i++)
		xsp_report_add(t, of, (const char *)rows + i * size);
}

FILE *xsp_list_below(struct xsp_report *r)
{
	if (r->row_open)
		fputc('\n', r->tables.f);
	r->row_open = false;
	return r->tables.f;
}

void xsp_list_gap(struct xsp_report *r)
{
	if (r->form == XSP_FORM_TEXT)
		fputc('\n', xsp_list_below(r));
}

FILE *xsp_list_in_line(struct xsp_report *r)
{
	return r->tables.f;
}

FILE *xsp_list_lines(struct xsp_report *r)
{
	return r->lines.f;
}

void xsp_list_warn(struct xsp_report *r, const char *fmt, ...)
{
	va_list ap;

	if (r->form != XSP_FORM_TEXT)
		return;
	fputs(r->how.color ? "\033[33m" : "", r->lines.f);
	va_start(ap, fmt);
	vfprintf(r->lines.f, fmt, ap);
	va_end(ap);
	fputs(r->how.color ? "\033[0m\n" : "\n", r->lines.f);
}

void xsp_list_count(struct xsp_report *r, bool warn, const char *what, uint64_t count)
{
	char text[XSP_UNITS_SIZE];

	if (count == 0 || r->form != XSP_FORM_TEXT)
		return;
	if (warn)
		xsp_list_warn(r, "%s: %s", what, xsp_format_count(text, count));
	else
		fprintf(r->lines.f, "%s: %s\n", what, xsp_format_count(text, count));
}

/* ---- columns as wide as needed ---- */

#define NAME_MIN 24 /* a name is not elided further */
#define NAME_MAX_ALIGNED 64 /* a pipe gets whole names; longer ones push their numbers aside */

/* The next spare column to hide; 0: there is none. */
static size_t next_spare(const struct xsp_list *list, const struct layout *l)
{
	size_t found = 0;

	for (size_t i = 1; i < list->text_count; i++)
		if (l->widths[i] != HIDDEN && list->text[i].spare > list->text[found].spare)
			found = i;
	return found;
}

/* Fits the columns into `width`. `name`: columns of the longest name. */
static void fit(const struct xsp_list *list, int width, int name, struct layout *l)
{
	int numbers = 0;
	size_t spare;

	for (size_t i = 1; i < list->text_count; i++)
		numbers += l->widths[i] + 2;
	const int name_least = name < NAME_MIN ? name : NAME_MIN;
	while (width > 0 && name_least + numbers > width && (spare = next_spare(list, l)) > 0) {
		numbers -= l->widths[spare] + 2;
		l->widths[spare] = HIDDEN;
		l->narrow = true;
	}
	if (width > 0 && name + numbers > width)
		name = width - numbers > NAME_MIN ? width - numbers : NAME_MIN;
	if (width <= 0 && name > NAME_MAX_ALIGNED)
		name = NAME_MAX_ALIGNED;
	l->widths[0] = -name;
}

/* Makes each column as wide as needed. */
static struct layout fitted_layout(struct xsp_report *r, const struct xsp_list *list,
				   const void *of, const void *rows, size_t size, size_t count)
{
	struct layout out = {.cut = r->how.width > 0};
	struct xsp_report_at at;

	for (size_t k = 0; k <= count; k++) { /* the titles, then the rows */
		xsp_report_look_at(&at, of, (const char *)rows + (k > 0 ? k - 1 : 0) * size);
		for (size_t i = 0; i < list->text_count; i++) {
			char *text = shown(r, list, i, k > 0 ? &at : NULL, 0);
			const int columns = text != NULL ? (int)xsp_printable(NULL, 0, text, 0) : 0;
			out.widths[i] = columns > out.widths[i] ? columns : out.widths[i];
			free(text);
		}
	}
	fit(list, r->how.width, out.widths[0], &out);
	return out;
}

/* Names the columns that are not shown, if any. */
static void put_hidden(const struct xsp_list *list, const struct layout *l, FILE *f)
{
	if (!l->narrow)
		return;
	fputs("not shown, as the terminal is narrow:", f);
	for (unsigned spare = MOST_COLUMNS; spare > 0; spare--)
		for (size_t i = 1; i < list->text_count; i++)
			if (l->widths[i] == HIDDEN && list->text[i].spare == spare)
				fprintf(f, " %s", title_of(list, i));
	fputc('\n', f);
}

/* ---- tables of many rows ---- */

size_t xsp_list_most(const struct xsp_report *r, size_t most, size_t count)
{
	return r->form == XSP_FORM_TEXT && most > 0 && most < count ? most : count;
}

void xsp_list_more(struct xsp_report *r, const struct xsp_list *list, size_t more)
{
	if (more == 0 || r->form != XSP_FORM_TEXT)
		return;
	FILE *f = xsp_list_below(r);
	fprintf(f, "... and %zu more", more);
	if (list->rows != NULL)
		fprintf(f, " %s%s", list->rows, more == 1 ? "" : "s");
	fputc('\n', f);
}

static void put_fitted(struct xsp_report *r, const struct xsp_list *list, const void *of,
		       const void *rows, size_t size, size_t count, size_t more)
{
	const struct layout layout = fitted_layout(r, list, of, rows, size, count);
	FILE *f = xsp_list_below(r);
	struct xsp_report_at at;

	for (size_t i = 0; i <= count; i++) {
		xsp_report_look_at(&at, of, (const char *)rows + (i > 0 ? i - 1 : 0) * size);
		put_line(r, list, &layout, i > 0 ? &at : NULL);
		fputc('\n', f);
	}
	xsp_list_more(r, list, more);
	put_hidden(list, &layout, f);
}

void xsp_list_rows(struct xsp_report_section *s, const struct xsp_list *list, const void *of,
		   const void *rows, size_t size, size_t count, size_t most)
{
	struct xsp_report_table *t = xsp_list_table(s, list);

	if (t == NULL || count == 0)
		return;
	const size_t shown_count = xsp_list_most(s->report, most, count);
	if (s->report->form == XSP_FORM_TEXT && list->text[0].width == 0) {
		put_fitted(s->report, list, of, rows, size, shown_count, count - shown_count);
		return;
	}
	xsp_report_rows(t, of, rows, size, shown_count);
	xsp_list_more(s->report, list, count - shown_count);
}
