/* SPDX-License-Identifier: BSD-2-Clause */
/* schema.c - a JSON Schema of a report, from the shapes of its tables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json_tree.h"
#include "base/rows/order.h"
#include "report/report.h"

/* What XSP_REPORT_LISTED() gathered. The linker defines the names. */
#define LIST(verb)                                                                                 \
	extern const struct xsp_report_shape *const __start_xsp_report_##verb[]                    \
		__attribute__((visibility("hidden")));                                             \
	extern const struct xsp_report_shape *const __stop_xsp_report_##verb[]                     \
		__attribute__((visibility("hidden")))
LIST(analyze); /* NOLINT(bugprone-reserved-identifier) */
LIST(compare); /* NOLINT(bugprone-reserved-identifier) */

static const struct list {
	const char *verb;
	const struct xsp_report_shape *const *first, *const *end;
} lists[] = {
	{"analyze", __start_xsp_report_analyze, __stop_xsp_report_analyze},
	{"compare", __start_xsp_report_compare, __stop_xsp_report_compare},
};

static const struct {
	const char *type, *what;
} units[] = {
	[XSP_UNIT_TEXT] = {"string", "text"},
	[XSP_UNIT_COUNT] = {"number", "how many; a mean of counts need not be whole"},
	[XSP_UNIT_NS] = {"number", "a duration in nanoseconds"},
	[XSP_UNIT_TIME] = {"number", "a moment, nanoseconds from the beginning of the capture"},
	[XSP_UNIT_BYTES] = {"number", "bytes"},
	[XSP_UNIT_SHARE] = {"number", "a share: 1 is all"},
	[XSP_UNIT_PER_SECOND] = {"number", "so many a second"},
	[XSP_UNIT_BYTES_PER_SECOND] = {"number", "bytes a second"},
	[XSP_UNIT_NUMBER] = {"number", "a number without a unit"},
};
#define UNITS (sizeof(units) / sizeof(units[0]))

/* The constant part, with ' for ". */
static const char fixed[] =
	"{'$schema': 'https://json-schema.org/draft/2020-12/schema', 'description': 'What is not known is null. Keys are stable, titles and texts are not. "
	"A section or a table for which a capture has nothing may be missing.', 'type': 'object', 'required': ['format', 'version', 'findings', 'hot_operation', 'notes', 'sections'], 'additionalProperties': false,"
	" 'properties': {  'format': {}, 'version': {},  'findings': {'type': 'array', 'items': {'$ref': '#/$defs/finding'}},  'hot_operation': {'type': 'array', 'items': {'$ref': '#/$defs/finding'}},  'notes': {'type': 'array', 'items': {'$ref': '#/$defs/finding'}},  'sections': {'type': 'object',"
	"   'additionalProperties': {'$ref': '#/$defs/section',    'properties': {'tables': {'maxProperties': 0}}}}}, '$defs': {  'values': {'type': 'object',"
	"   'additionalProperties': {'type': ['number', 'string', 'null']}},  'about': {'description': 'of the values: the same keys', 'type': 'object',   'additionalProperties': {'type': 'object',"
	"    'required': ['title', 'unit'], 'additionalProperties': false,    'properties': {'title': {'type': 'string'}, 'unit': {'$ref': '#/$defs/unit'}}}},  'column': {'type': 'object',"
	"   'required': ['key', 'title', 'unit', 'identity'], 'additionalProperties': false,   'properties': {'key': {'type': 'string'}, 'title': {'type': 'string'},"
	"    'unit': {'$ref': '#/$defs/unit'},    'identity': {'description': 'it names the row', 'type': 'boolean'}}},  'table': {'type': 'object',"
	"   'required': ['title', 'row_count', 'columns', 'rows'], 'additionalProperties': false,   'properties': {'title': {'type': 'string'},"
	"    'row_count': {'description': 'of all rows, also where --rows leaves some out',     'type': 'integer', 'minimum': 0},    'columns': {'type': 'array', 'items': {'$ref': '#/$defs/column'}},"
	"    'rows': {'type': 'array', 'items': {'type': 'object'}}}},  'section': {'type': 'object',   'required': ['title', 'values', 'about', 'notes', 'tables'],   'additionalProperties': false,"
	"   'properties': {'title': {'type': 'string'},    'values': {'$ref': '#/$defs/values'}, 'about': {'$ref': '#/$defs/about'},    'notes': {'type': 'array', 'items': {'type': 'string'}},"
	"    'tables': {'type': 'object', 'additionalProperties': {'$ref': '#/$defs/table'}}}},  'finding': {'type': 'object',"
	"   'required': ['rule', 'severity', 'subject', 'title', 'advice', 'uncertain', 'share',    'values', 'about'],   'dependentRequired': {'from_ns': ['to_ns'], 'to_ns': ['from_ns']},"
	"   'additionalProperties': false,   'properties': {'rule': {'$ref': '#/$defs/rule'},    'severity': {'enum': ['note', 'hot', 'low', 'medium', 'high']},"
	"    'subject': {'$ref': '#/$defs/text'}, 'title': {'type': 'string'},    'advice': {'$ref': '#/$defs/text'}, 'uncertain': {'$ref': '#/$defs/text'},    'share': {'$ref': '#/$defs/share'},"
	"    'from_ns': {'$ref': '#/$defs/time_ns'}, 'to_ns': {'$ref': '#/$defs/time_ns'},    'values': {'$ref': '#/$defs/values'}, 'about': {'$ref': '#/$defs/about'}}}}}";

/* NULL: out of memory. */
static cJSON *parse_fixed(void)
{
	char text[sizeof(fixed)];

	for (size_t i = 0; i < sizeof(fixed); i++)
		text[i] = fixed[i] == '\'' ? '"' : fixed[i];
	return cJSON_Parse(text);
}

static void put_reference(struct xsp_json_work *w, cJSON *to, const char *definition,
			  const char *title)
{
	char text[64];

	snprintf(text, sizeof(text), "#/$defs/%s", definition);
	xsp_json_put_text(w, to, "$ref", text);
	if (title != NULL)
		xsp_json_put_text(w, to, "title", title);
}

/* A row has all of its columns, whatever they hold. */
static void put_table(struct xsp_json_work *w, cJSON *tables, const struct xsp_report_shape *shape)
{
	cJSON *table = xsp_json_put_object(w, tables, shape->key);

	put_reference(w, table, "table", shape->title);
	cJSON *rows = xsp_json_put_object(w, xsp_json_put_object(w, table, "properties"), "rows");
	cJSON *row = xsp_json_put_object(w, rows, "items");
	cJSON *required = xsp_json_put_array(w, row, "required");
	xsp_json_put(w, row, "additionalProperties", cJSON_CreateFalse());
	cJSON *cells = xsp_json_put_object(w, row, "properties");
	for (size_t i = 0; i < shape->count; i++) {
		const struct xsp_report_column *column = &shape->columns[i];
		xsp_json_put_text(w, required, NULL, column->key);
		put_reference(w, xsp_json_put_object(w, cells, column->key),
			      xsp_unit_name(column->unit), column->title);
	}
}

static void put_section(struct xsp_json_work *w, cJSON *sections,
			const struct xsp_report_shape *const *shapes, size_t count)
{
	cJSON *section = xsp_json_put_object(w, sections, shapes[0]->section);

	put_reference(w, section, "section", NULL);
	cJSON *tables =
		xsp_json_put_object(w, xsp_json_put_object(w, section, "properties"), "tables");
	xsp_json_put(w, tables, "additionalProperties", cJSON_CreateFalse());
	tables = xsp_json_put_object(w, tables, "properties");
	for (size_t i = 0; i < count; i++)
		put_table(w, tables, shapes[i]);
}

static XSP_ORDER_POINTERS(by_section, struct xsp_report_shape,
			  strcmp(x->section, y->section) ?: strcmp(x->key, y->key));

/* Sorted, because the list has them in the order of linking. */
static void put_sections(struct xsp_json_work *w, cJSON *to, const struct list *list)
{
	const size_t count = (size_t)(list->end - list->first);
	const struct xsp_report_shape **shapes = calloc(count + 1, sizeof(*shapes));
	cJSON *sections = xsp_json_put_object(w, to, "properties");

	for (size_t i = 0; shapes != NULL && i < count; i++)
		shapes[i] = list->first[i];
	if (shapes != NULL)
		qsort(shapes, count, sizeof(*shapes), by_section);
	for (size_t i = 0, end = 0; shapes != NULL && i < count; i = end) {
		while (end < count && strcmp(shapes[end]->section, shapes[i]->section) == 0)
			end++;
		put_section(w, sections, shapes + i, end - i);
	}
	w->failed = w->failed || shapes == NULL;
	free(shapes);
}

/* One definition for each unit, then the list of units. */
static void put_units(struct xsp_json_work *w, cJSON *definitions)
{
	cJSON *names = cJSON_CreateArray();

	for (size_t i = 0; i < UNITS; i++) {
		const char *name = xsp_unit_name((enum xsp_unit)i);
		cJSON *unit = xsp_json_put_object(w, definitions, name);
		xsp_json_put_text(w, unit, "description", units[i].what);
		cJSON *types = xsp_json_put_array(w, unit, "type");
		xsp_json_put_text(w, types, NULL, units[i].type);
		xsp_json_put_text(w, types, NULL, "null");
		xsp_json_put_text(w, names, NULL, name);
	}
	xsp_json_put(w, xsp_json_put_object(w, definitions, "unit"), "enum", names);
}

/* Lists the rules of analyze. For compare (`rule` NULL) any key may stand, as it adds its own. */
static void put_rules(struct xsp_json_work *w, cJSON *definitions,
		      const char *(*rule)(size_t index))
{
	cJSON *rules = xsp_json_put_object(w, definitions, "rule");

	xsp_json_put_text(w, rules, "type", "string");
	if (rule == NULL)
		return;
	cJSON *keys = xsp_json_put_array(w, rules, "enum");
	for (size_t i = 0; rule(i) != NULL; i++)
		xsp_json_put_text(w, keys, NULL, rule(i));
}

int xsp_report_write_schema(const char *verb, const char *(*rule)(size_t index), FILE *f)
{
	const struct list *list = strcmp(verb, lists[0].verb) == 0 ? &lists[0] : &lists[1];
	struct xsp_json_work w = {.failed = false};
	cJSON *root = parse_fixed(), *definitions = xsp_json_find_at(root, "$defs");
	char title[64];

	snprintf(title, sizeof(title), "xsptrace %s --format json", list->verb);
	xsp_json_put_text(&w, root, "title", title);
	xsp_json_put_text(&w, xsp_json_find_at(root, "properties.format"), "const",
			  XSP_REPORT_JSON);
	xsp_json_put(&w, xsp_json_find_at(root, "properties.version"), "const",
		     xsp_json_of_number(XSP_REPORT_VERSION));
	put_sections(&w, xsp_json_find_at(root, "properties.sections"), list);
	put_units(&w, definitions);
	put_rules(&w, definitions, list == &lists[0] ? rule : NULL);
	w.failed = w.failed || xsp_json_print(root, f) < 0;
	cJSON_Delete(root);
	fputc('\n', f);
	return w.failed ? -ENOMEM : ferror(f) ? -EIO : 0;
}
