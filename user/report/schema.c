/* SPDX-License-Identifier: BSD-2-Clause */
/* schema.c - a JSON Schema of a report, from the shapes of its tables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "base/json_writer.h"

/* What XSP_REPORT_LISTED() put there. The names are the linker's. */
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

/* What is the same for all of them. "%s" is the verb. */
static const char head[] =
	"{\n"
	"  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
	"  \"title\": \"xsptrace %s --format json\",\n"
	"  \"description\": \"What is not known is null. Keys are stable, titles and texts are "
	"not. "
	"A section or a table for which a capture has nothing may be missing.\",\n"
	"  \"type\": \"object\",\n"
	"  \"required\": [\"format\", \"version\", \"findings\", \"sections\"],\n"
	"  \"additionalProperties\": false,\n"
	"  \"properties\": {\n"
	"    \"format\": {\"const\": \"" XSP_REPORT_JSON "\"},\n"
	"    \"version\": {\"const\": %d},\n"
	"    \"findings\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/finding\"}},\n"
	"    \"sections\": {\n"
	"      \"type\": \"object\",\n"
	"      \"additionalProperties\": {\"$ref\": \"#/$defs/section\",\n"
	"        \"properties\": {\"tables\": {\"maxProperties\": 0}}},";
static const char definitions[] =
	"\n"
	"    }\n"
	"  },\n"
	"  \"$defs\": {\n"
	"    \"values\": {\"type\": \"object\",\n"
	"      \"additionalProperties\": {\"type\": [\"number\", \"string\", \"null\"]}},\n"
	"    \"about\": {\"description\": \"of the values: the same keys\", \"type\": \"object\",\n"
	"      \"additionalProperties\": {\"type\": \"object\",\n"
	"        \"required\": [\"title\", \"unit\"], \"additionalProperties\": false,\n"
	"        \"properties\": {\"title\": {\"type\": \"string\"},\n"
	"          \"unit\": {\"$ref\": \"#/$defs/unit\"}}}},\n"
	"    \"column\": {\"type\": \"object\",\n"
	"      \"required\": [\"key\", \"title\", \"unit\", \"identity\"],\n"
	"      \"additionalProperties\": false,\n"
	"      \"properties\": {\"key\": {\"type\": \"string\"}, \"title\": {\"type\": "
	"\"string\"},\n"
	"        \"unit\": {\"$ref\": \"#/$defs/unit\"},\n"
	"        \"identity\": {\"description\": \"it names the row\", \"type\": \"boolean\"}}},\n"
	"    \"table\": {\"type\": \"object\",\n"
	"      \"required\": [\"title\", \"row_count\", \"columns\", \"rows\"],\n"
	"      \"additionalProperties\": false,\n"
	"      \"properties\": {\"title\": {\"type\": \"string\"},\n"
	"        \"row_count\": {\"description\": \"of all rows, also where --top leaves some "
	"out\",\n"
	"          \"type\": \"integer\", \"minimum\": 0},\n"
	"        \"columns\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/column\"}},\n"
	"        \"rows\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}}}},\n"
	"    \"section\": {\"type\": \"object\",\n"
	"      \"required\": [\"title\", \"values\", \"about\", \"notes\", \"tables\"],\n"
	"      \"additionalProperties\": false,\n"
	"      \"properties\": {\"title\": {\"type\": \"string\"},\n"
	"        \"values\": {\"$ref\": \"#/$defs/values\"}, \"about\": {\"$ref\": "
	"\"#/$defs/about\"},\n"
	"        \"notes\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}},\n"
	"        \"tables\": {\"type\": \"object\",\n"
	"          \"additionalProperties\": {\"$ref\": \"#/$defs/table\"}}}},\n"
	"    \"finding\": {\"type\": \"object\",\n"
	"      \"required\": [\"rule\", \"severity\", \"subject\", \"title\", \"advice\", "
	"\"uncertain\",\n"
	"        \"share\", \"values\", \"about\"],\n"
	"      \"dependentRequired\": {\"from_ns\": [\"to_ns\"], \"to_ns\": [\"from_ns\"]},\n"
	"      \"additionalProperties\": false,\n"
	"      \"properties\": {\"rule\": {\"$ref\": \"#/$defs/rule\"},\n"
	"        \"severity\": {\"enum\": [\"low\", \"medium\", \"high\"]},\n"
	"        \"subject\": {\"$ref\": \"#/$defs/text\"}, \"title\": {\"type\": \"string\"},\n"
	"        \"advice\": {\"$ref\": \"#/$defs/text\"}, \"uncertain\": {\"$ref\": "
	"\"#/$defs/text\"},\n"
	"        \"share\": {\"$ref\": \"#/$defs/share\"},\n"
	"        \"from_ns\": {\"$ref\": \"#/$defs/time_ns\"}, \"to_ns\": {\"$ref\": "
	"\"#/$defs/time_ns\"},\n"
	"        \"values\": {\"$ref\": \"#/$defs/values\"}, \"about\": {\"$ref\": "
	"\"#/$defs/about\"}}},";

static void put_reference(struct xsp_json_writer *j, const char *to)
{
	char text[64];

	snprintf(text, sizeof(text), "#/$defs/%s", to);
	xsp_json_text(j, "$ref", text);
}

/* Of a row all columns are there, whatever is in them. */
static void put_table(struct xsp_json_writer *j, const struct xsp_report_shape *shape)
{
	xsp_json_begin(j, shape->key, '{');
	put_reference(j, "table");
	xsp_json_text(j, "title", shape->title);
	xsp_json_begin(j, "properties", '{');
	xsp_json_begin(j, "rows", '{');
	xsp_json_begin(j, "items", '{');
	xsp_json_begin(j, "required", '[');
	for (size_t i = 0; i < shape->count; i++)
		xsp_json_text(j, NULL, shape->columns[i].key);
	xsp_json_end(j, '[');
	xsp_json_bool(j, "additionalProperties", false);
	xsp_json_begin(j, "properties", '{');
	for (size_t i = 0; i < shape->count; i++) {
		xsp_json_begin(j, shape->columns[i].key, '{');
		put_reference(j, xsp_unit_name(shape->columns[i].unit));
		xsp_json_text(j, "title", shape->columns[i].title);
		xsp_json_end(j, '{');
	}
	for (unsigned open = 0; open < 5; open++)
		xsp_json_end(j, '{');
}

static void put_section(struct xsp_json_writer *j, const struct xsp_report_shape *const *shapes,
			size_t count)
{
	xsp_json_begin(j, shapes[0]->section, '{');
	put_reference(j, "section");
	xsp_json_begin(j, "properties", '{');
	xsp_json_begin(j, "tables", '{');
	xsp_json_bool(j, "additionalProperties", false);
	xsp_json_begin(j, "properties", '{');
	for (size_t i = 0; i < count; i++)
		put_table(j, shapes[i]);
	for (unsigned open = 0; open < 4; open++)
		xsp_json_end(j, '{');
}

static int by_section(const void *a, const void *b)
{
	const struct xsp_report_shape *const *x = a, *const *y = b;
	const int sections = strcmp((*x)->section, (*y)->section);

	return sections != 0 ? sections : strcmp((*x)->key, (*y)->key);
}

/* Sorted: in the list they stand as their files were linked. */
static void put_sections(struct xsp_json_writer *j, const struct list *list)
{
	const size_t count = (size_t)(list->end - list->first);
	const struct xsp_report_shape **shapes = calloc(count + 1, sizeof(*shapes));

	xsp_json_begin(j, "properties", '{');
	for (size_t i = 0; shapes != NULL && i < count; i++)
		shapes[i] = list->first[i];
	if (shapes != NULL)
		qsort(shapes, count, sizeof(*shapes), by_section);
	for (size_t i = 0, end = 0; shapes != NULL && i < count; i = end) {
		while (end < count && strcmp(shapes[end]->section, shapes[i]->section) == 0)
			end++;
		put_section(j, shapes + i, end - i);
	}
	xsp_json_end(j, '{');
	j->failed = j->failed || shapes == NULL;
	free(shapes);
}

/* One definition a unit, then which there are. */
static void put_units(struct xsp_json_writer *j)
{
	for (size_t i = 0; i < UNITS; i++) {
		xsp_json_begin(j, xsp_unit_name((enum xsp_unit)i), '{');
		xsp_json_text(j, "description", units[i].what);
		xsp_json_begin(j, "type", '[');
		xsp_json_text(j, NULL, units[i].type);
		xsp_json_text(j, NULL, "null");
		xsp_json_end(j, '[');
		xsp_json_end(j, '{');
	}
	xsp_json_begin(j, "unit", '{');
	xsp_json_begin(j, "enum", '[');
	for (size_t i = 0; i < UNITS; i++)
		xsp_json_text(j, NULL, xsp_unit_name((enum xsp_unit)i));
	xsp_json_end(j, '[');
	xsp_json_end(j, '{');
}

/* Those of compare are its own, and of analyze those that came. */
static void put_rules(struct xsp_json_writer *j, const char *(*rule)(size_t index))
{
	xsp_json_begin(j, "rule", '{');
	xsp_json_text(j, "type", "string");
	if (rule != NULL) {
		xsp_json_begin(j, "enum", '[');
		for (size_t i = 0; rule(i) != NULL; i++)
			xsp_json_text(j, NULL, rule(i));
		xsp_json_end(j, '[');
	}
	xsp_json_end(j, '{');
}

int xsp_report_write_schema(const char *verb, const char *(*rule)(size_t index), FILE *f)
{
	const struct list *list = strcmp(verb, lists[0].verb) == 0 ? &lists[0] : &lists[1];
	struct xsp_json_writer j = {.f = f, .depth = 3};

	fprintf(f, head, list->verb, XSP_REPORT_VERSION);
	put_sections(&j, list);
	fputs(definitions, f);
	j = (struct xsp_json_writer){.f = f, .depth = 2, .failed = j.failed};
	put_units(&j);
	put_rules(&j, list == &lists[0] ? rule : NULL);
	fputs("\n  }\n}\n", f);
	return j.failed ? -ENOMEM : ferror(f) ? -EIO : 0;
}
