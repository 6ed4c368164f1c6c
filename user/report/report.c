/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/report_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"

int xsp_report_new(struct xsp_report **out)
{
	*out = calloc(1, sizeof(**out));
	return *out == NULL ? -ENOMEM : 0;
}

static void clear_section(struct xsp_report_section *s)
{
	for (size_t i = 0; i < s->table_count; i++)
		free(s->tables[i]->cells);
	free(s->tables);
	free(s->values);
	free(s->notes);
}

static void clear_text(struct xsp_report_text *t)
{
	if (t->f != NULL)
		fclose(t->f);
	free(t->text);
}

void xsp_report_free(struct xsp_report *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->section_count; i++)
		clear_section(r->sections[i]);
	for (size_t i = 0; i < r->finding_count; i++)
		clear_section(r->findings[i].figures);
	free(r->sections);
	free(r->findings);
	cJSON_Delete(r->json);
	clear_text(&r->tables);
	clear_text(&r->lines);
	xsp_arena_free(&r->arena);
	free(r);
}

bool xsp_report_failed(const struct xsp_report *r)
{
	return r->failed;
}

/* ---- adding ---- */

static const char *copy(struct xsp_report *r, const char *text)
{
	const char *out = text != NULL ? xsp_arena_copy(&r->arena, text, strlen(text)) : NULL;

	r->failed = r->failed || (text != NULL && out == NULL);
	return out;
}

static struct xsp_cell copy_cell(struct xsp_report *r, struct xsp_cell cell)
{
	return cell.kind == XSP_CELL_TEXT ? xsp_cell_text(copy(r, cell.text)) : cell;
}

/* Makes room for one more; false: out of memory. */
#define ROOM(report, array, capacity, count)                                                       \
	(!(report)->failed && !((report)->failed = xsp_grow((array), (capacity), (count) + 1) < 0))

static struct xsp_report_section *new_section(struct xsp_report *r, const char *key,
					      const char *title)
{
	struct xsp_report_section *s = xsp_arena_alloc(&r->arena, sizeof(*s));

	if (s != NULL)
		*s = (struct xsp_report_section){
			.report = r, .key = copy(r, key), .title = copy(r, title)};
	r->failed = r->failed || s == NULL;
	return r->failed ? NULL : s;
}

struct xsp_report_section *xsp_report_section(struct xsp_report *r, const char *key,
					      const char *title)
{
	for (size_t i = 0; i < r->section_count; i++)
		if (strcmp(r->sections[i]->key, key) == 0)
			return r->sections[i];
	if (!ROOM(r, &r->sections, &r->section_capacity, r->section_count))
		return NULL;
	struct xsp_report_section *s = new_section(r, key, title);
	if (s != NULL)
		r->sections[r->section_count++] = s;
	return s;
}

void xsp_report_value(struct xsp_report_section *s, const char *key, const char *title,
		      enum xsp_unit unit, struct xsp_cell value)
{
	if (s == NULL || !ROOM(s->report, &s->values, &s->value_capacity, s->value_count))
		return;
	s->values[s->value_count++] =
		(struct xsp_report_figure){.key = copy(s->report, key),
					   .title = copy(s->report, title),
					   .unit = unit,
					   .value = copy_cell(s->report, value)};
}

static struct xsp_cell field_cell(enum xsp_field field, const char *at)
{
	switch (field) {
	case XSP_FIELD_U64:
		return xsp_cell_sum(*(const uint64_t *)(const void *)at);
	case XSP_FIELD_U32:
		return xsp_cell_integer(*(const uint32_t *)(const void *)at);
	case XSP_FIELD_I64:
		return xsp_cell_integer((uint64_t) * (const int64_t *)(const void *)at);
	case XSP_FIELD_BOOL:
		return xsp_cell_bool(*(const bool *)(const void *)at);
	case XSP_FIELD_REAL:
		return xsp_cell_real(*(const double *)(const void *)at);
	case XSP_FIELD_TEXT:
		return xsp_cell_text(*(const char *const *)(const void *)at);
	case XSP_FIELD_NONE:
		break;
	}
	return xsp_cell_absent();
}

struct xsp_cell xsp_report_cell(const struct xsp_report_column *column, struct xsp_report_at *at)
{
	const struct xsp_report_source *s = &column->source;
	const char *row = at->row;

	if (s->cell != NULL)
		return s->cell(at);
	if (s->known_field != XSP_FIELD_NONE &&
	    field_cell(s->known_field, row + s->known_at).integer == 0)
		return xsp_cell_absent();
	return field_cell(s->field, row + s->at);
}

void xsp_report_look_at(struct xsp_report_at *at, const void *of, const void *row)
{
	at->of = of;
	at->row = row;
	at->room = 0;
}

void xsp_report_note(struct xsp_report_section *s, const char *text)
{
	if (s != NULL && ROOM(s->report, &s->notes, &s->note_capacity, s->note_count))
		s->notes[s->note_count++] = copy(s->report, text);
}

void xsp_report_caveat(struct xsp_report_section *s, const char *text)
{
	xsp_report_note(s, text);
	if (s != NULL && s->note_count > 0)
		s->caveat = s->notes[s->note_count - 1];
}

void xsp_report_notef(struct xsp_report_section *s, const char *fmt, ...)
{
	char text[1400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	xsp_report_note(s, text);
}

struct xsp_report_table *xsp_report_table(struct xsp_report_section *s,
					  const struct xsp_report_shape *shape)
{
	for (size_t i = 0; s != NULL && i < s->table_count; i++)
		if (s->tables[i]->shape == shape)
			return s->tables[i];
	if (s == NULL || !ROOM(s->report, &s->tables, &s->table_capacity, s->table_count))
		return NULL;
	struct xsp_report_table *t = xsp_arena_alloc(&s->report->arena, sizeof(*t));
	s->report->failed = t == NULL;
	if (t == NULL)
		return NULL;
	*t = (struct xsp_report_table){.report = s->report, .shape = shape};
	s->tables[s->table_count++] = t;
	return t;
}

void xsp_report_keep(struct xsp_report_table *t, const void *of, const void *row)
{
	struct xsp_report_at at;

	if (t == NULL || t->report->failed)
		return;
	const size_t used = t->row_count * t->shape->count;
	t->report->failed = xsp_grow(&t->cells, &t->capacity, used + t->shape->count) < 0;
	xsp_report_look_at(&at, of, row);
	for (size_t i = 0; !t->report->failed && i < t->shape->count; i++)
		t->cells[used + i] =
			copy_cell(t->report, xsp_report_cell(&t->shape->columns[i], &at));
	t->row_count += !t->report->failed;
}

void xsp_report_row_leads(struct xsp_report_table *t, bool leads)
{
	if (t == NULL)
		return;
	t->led = true;
	if (leads)
		t->leading = t->row_count;
}

static bool comes_before(const struct xsp_report_finding *a, const struct xsp_report_finding *b)
{
	return a->severity != b->severity ? a->severity > b->severity : a->share > b->share;
}

struct xsp_report_section *xsp_report_finding(struct xsp_report *r,
					      const struct xsp_report_finding *f)
{
	size_t at = r->finding_count;

	if (!ROOM(r, &r->findings, &r->finding_capacity, r->finding_count))
		return NULL;
	struct xsp_report_section *figures = new_section(r, f->rule, f->title);
	struct xsp_report_found found = {.finding = *f, .figures = figures};
	found.finding.rule = copy(r, f->rule);
	found.finding.subject = copy(r, f->subject);
	found.finding.title = copy(r, f->title);
	found.finding.advice = copy(r, f->advice);
	found.finding.uncertain = copy(r, f->uncertain);
	if (r->failed)
		return NULL;
	while (at > 0 && comes_before(f, &r->findings[at - 1].finding))
		at--;
	memmove(&r->findings[at + 1], &r->findings[at],
		(r->finding_count - at) * sizeof(*r->findings));
	r->findings[at] = found;
	r->finding_count++;
	return figures;
}

/* ---- reading ---- */

const struct xsp_report_section *xsp_report_find_section(const struct xsp_report *r,
							 const char *key)
{
	for (size_t i = 0; i < r->section_count; i++)
		if (strcmp(r->sections[i]->key, key) == 0)
			return r->sections[i];
	return NULL;
}

const struct xsp_report_table *xsp_report_find_table(const struct xsp_report_section *s,
						     const char *key)
{
	for (size_t i = 0; s != NULL && i < s->table_count; i++)
		if (strcmp(s->tables[i]->shape->key, key) == 0)
			return s->tables[i];
	return NULL;
}

size_t xsp_report_values(const struct xsp_report_section *s, const struct xsp_report_figure **out)
{
	*out = s->values;
	return s->value_count;
}

static double number_of(const struct xsp_cell *c)
{
	return c->kind == XSP_CELL_INTEGER ? (double)c->integer
	       : c->kind == XSP_CELL_REAL  ? c->real
					   : 0;
}

static const char *string_of(const struct xsp_cell *c)
{
	return c->kind == XSP_CELL_TEXT ? c->text : NULL;
}

static const struct xsp_cell *value_of(const struct xsp_report_section *s, const char *key)
{
	static const struct xsp_cell absent = {.kind = XSP_CELL_ABSENT};

	for (size_t i = 0; s != NULL && i < s->value_count; i++)
		if (strcmp(s->values[i].key, key) == 0)
			return &s->values[i].value;
	return &absent;
}

double xsp_number(const struct xsp_report_section *s, const char *key)
{
	return number_of(value_of(s, key));
}

const char *xsp_text(const struct xsp_report_section *s, const char *key)
{
	return string_of(value_of(s, key));
}

size_t xsp_report_notes(const struct xsp_report_section *s, const char *const **out)
{
	*out = s->notes;
	return s->note_count;
}

size_t xsp_report_row_count(const struct xsp_report_table *t)
{
	return t->row_count;
}

const struct xsp_cell *xsp_report_row_at(const struct xsp_report_table *t, size_t index)
{
	return t->cells + index * t->shape->count;
}

static const struct xsp_cell *cell_in(const struct xsp_report_table *t, size_t index,
				      const char *column)
{
	size_t i = 0;

	while (i + 1 < t->shape->count && strcmp(t->shape->columns[i].key, column) != 0)
		i++;
	return &xsp_report_row_at(t, index)[i];
}

double xsp_row_number(const struct xsp_report_table *t, size_t index, const char *column)
{
	return number_of(cell_in(t, index, column));
}

const char *xsp_row_text(const struct xsp_report_table *t, size_t index, const char *column)
{
	return string_of(cell_in(t, index, column));
}

const char *xsp_severity_list(enum xsp_severity severity)
{
	return severity == XSP_SEVERITY_NOTE  ? "notes"
	       : severity == XSP_SEVERITY_HOT ? "hot_operation"
					      : "findings";
}

size_t xsp_report_true_findings(const struct xsp_report *r)
{
	size_t n = r->finding_count;

	while (n > 0 && r->findings[n - 1].finding.severity < XSP_SEVERITY_LOW)
		n--;
	return n;
}

size_t xsp_report_findings(const struct xsp_report *r, const struct xsp_report_found **out)
{
	*out = r->findings;
	return r->finding_count;
}

const char *xsp_severity_name(enum xsp_severity severity)
{
	static const char *const names[] = {
		[XSP_SEVERITY_NOTE] = "note", [XSP_SEVERITY_HOT] = "hot",
		[XSP_SEVERITY_LOW] = "low",   [XSP_SEVERITY_MEDIUM] = "medium",
		[XSP_SEVERITY_HIGH] = "high",
	};

	return names[severity];
}

const char *xsp_unit_name(enum xsp_unit unit)
{
	static const char *const names[] = {
		[XSP_UNIT_TEXT] = "text",
		[XSP_UNIT_COUNT] = "count",
		[XSP_UNIT_NS] = "ns",
		[XSP_UNIT_TIME] = "time_ns",
		[XSP_UNIT_BYTES] = "bytes",
		[XSP_UNIT_SHARE] = "share",
		[XSP_UNIT_PER_SECOND] = "per_second",
		[XSP_UNIT_BYTES_PER_SECOND] = "bytes_per_second",
		[XSP_UNIT_NUMBER] = "number",
		[XSP_UNIT_CHANGE] = "share",
	};

	return names[unit];
}
