/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.h - what analyses found, as data: sections of values and tables, and findings.
 *
 * `analyze` writes it as text, JSON and CSV, `compare` sets two of them side by side, `view` draws them: each figure is
 * computed once. Keys are stable and part of the format (docs/analyze.md); titles and texts are for people. Whatever
 * cannot be told is absent (XSP_CELL_ABSENT), never 0.
 *
 * Functions that add copy what they are given. After one that ran out of memory the others do nothing, and
 * xsp_report_failed() says so: no check at each value.
 */
#ifndef XSP_REPORT_REPORT_H
#define XSP_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum xsp_unit {
	XSP_UNIT_TEXT, /* raw bytes of the target's: escaped on output */
	XSP_UNIT_COUNT,
	XSP_UNIT_NS, /* a duration */
	XSP_UNIT_TIME, /* a moment, ns from the beginning of the capture */
	XSP_UNIT_BYTES,
	XSP_UNIT_SHARE, /* 0 to 1, shown as % */
	XSP_UNIT_PER_SECOND,
	XSP_UNIT_BYTES_PER_SECOND,
	XSP_UNIT_NUMBER, /* without a unit */
};

struct xsp_cell {
	enum {
		XSP_CELL_ABSENT,
		XSP_CELL_TEXT,
		XSP_CELL_INTEGER,
		XSP_CELL_REAL,
		XSP_CELL_BOOL, /* in lists alone */
	} kind;
	union {
		const char *text;
		int64_t integer;
		double real;
	};
};
static inline struct xsp_cell xsp_cell_text(const char *text)
{
	return (struct xsp_cell){text == NULL ? XSP_CELL_ABSENT : XSP_CELL_TEXT, {.text = text}};
}
static inline struct xsp_cell xsp_cell_integer(uint64_t value)
{
	return (struct xsp_cell){XSP_CELL_INTEGER, {.integer = (int64_t)value}};
}
static inline struct xsp_cell xsp_cell_absent(void)
{
	return (struct xsp_cell){.kind = XSP_CELL_ABSENT};
}
static inline struct xsp_cell xsp_cell_bool(bool value)
{
	return (struct xsp_cell){XSP_CELL_BOOL, {.integer = value}};
}
static inline struct xsp_cell xsp_cell_if(bool known, uint64_t value)
{
	return known ? xsp_cell_integer(value) : xsp_cell_absent();
}
/* Absent where it is XSP_TOO_MUCH. */
static inline struct xsp_cell xsp_cell_sum(uint64_t sum)
{
	return sum > INT64_MAX ? xsp_cell_text(NULL) : xsp_cell_integer(sum);
}
static inline struct xsp_cell xsp_cell_real(double value)
{
	return (struct xsp_cell){XSP_CELL_REAL, {.real = value}};
}

#define XSP_REPORT_TEXT 4096
/* What a function sees that gives a cell's value. */
struct xsp_report_at {
	const void *of; /* whose rows they are: the analysis */
	const void *row;
	size_t room; /* in lists: columns that a text has; 0: as many as it likes */
	char text[XSP_REPORT_TEXT]; /* room for a text that stands nowhere else */
};

/* Where a column's value comes from: XSP_BY(), XSP_FIELD(), XSP_FIELD_IF(). */
struct xsp_report_source {
	struct xsp_cell (*cell)(struct xsp_report_at *at); /* NULL: a member of the row */
	enum xsp_field {
		XSP_FIELD_NONE,
		XSP_FIELD_U64, /* absent where it is XSP_TOO_MUCH */
		XSP_FIELD_U32,
		XSP_FIELD_I64,
		XSP_FIELD_BOOL,
		XSP_FIELD_REAL,
		XSP_FIELD_TEXT,
	} field;
	enum xsp_field known_field;
	unsigned short at, known_at; /* offsets */
};
/* What members can be: others need a function. */
#define XSP_FIELD_OF(type, member)                                                                 \
	_Generic(((type *)0)->member,                                                              \
		 uint64_t: XSP_FIELD_U64,                                                          \
		 unsigned long long: XSP_FIELD_U64,                                                \
		 uint32_t: XSP_FIELD_U32,                                                          \
		 int64_t: XSP_FIELD_I64,                                                           \
		 bool: XSP_FIELD_BOOL,                                                             \
		 double: XSP_FIELD_REAL,                                                           \
		 const char *: XSP_FIELD_TEXT)
/* That member of the row's type. */
#define XSP_FIELD(type, member)                                                                    \
	{                                                                                          \
		.field = XSP_FIELD_OF(type, member), .at = offsetof(type, member)                  \
	}
/* The same where another member is not 0, else absent. */
#define XSP_FIELD_IF(type, member, known)                                                          \
	{                                                                                          \
		.field = XSP_FIELD_OF(type, member), .at = offsetof(type, member),                 \
		.known_field = XSP_FIELD_OF(type, known), .known_at = offsetof(type, known)        \
	}
#define XSP_BY(function)                                                                           \
	{                                                                                          \
		.cell = (function)                                                                 \
	}
/* Defines such a function: an expression of `of`, `row`, and `at->text`. */
#define XSP_REPORT_CELL(name, of_type, row_type, value)                                            \
	static struct xsp_cell name(struct xsp_report_at *at)                                      \
	{                                                                                          \
		const of_type *of = at->of;                                                        \
		const row_type *row = at->row;                                                     \
		(void)of;                                                                          \
		(void)row;                                                                         \
		return value;                                                                      \
	}                                                                                          \
	static struct xsp_cell name(struct xsp_report_at *at)

struct xsp_report_column {
	const char *key, *title; /* not copied: constants */
	enum xsp_unit unit;
	bool identity; /* names the row: `compare` joins rows by these */
	struct xsp_report_source source;
};

/*
 * A table that a report may have. Its keys and its columns are part of the format: `--json-schema` tells of all of them
 * (schema.c), by what XSP_REPORT_SHAPE() puts on a list that the linker gathers.
 */
struct xsp_report_shape {
	const char *section, *key, *title; /* constants, as columns are */
	const struct xsp_report_column *columns;
	size_t count;
};
/* Before `*const name[] = {&shape, ...}`; `verb`: analyze or compare. */
#define XSP_REPORT_LISTED(verb)                                                                    \
	__attribute__((section("xsp_report_" #verb), used,                                         \
		       aligned(sizeof(void *)))) static const struct xsp_report_shape
/* Defines a shape by the array of its columns. */
#define XSP_REPORT_SHAPE(verb, name, section, key, title, columns)                                 \
	static const struct xsp_report_shape name = {section, key, title, columns,                 \
						     sizeof(columns) / sizeof((columns)[0])};      \
	XSP_REPORT_LISTED(verb) *const name##_listed[] = {&name}

enum xsp_severity { XSP_SEVERITY_LOW, XSP_SEVERITY_MEDIUM, XSP_SEVERITY_HIGH };

/* What a rule found. Figures that prove it are values with keys, like those of a section. */
struct xsp_report_finding {
	const char *rule; /* key of the rule: "sync", "leak" ... */
	enum xsp_severity severity;
	const char *
		subject; /* operator, line or kernel that it is about; NULL: the whole run. With the
			      * rule it says which finding of another report is the same */
	const char *title; /* one line: what is slow, by how much */
	const char *advice; /* what to do, which names the line or operator */
	const char *uncertain; /* why it may be wrong (lost events, windows ...); NULL: it is not */
	double share; /* of the recorded time (or of what the rule is about), 0 to 1: what the severity is of */
	uint64_t from_ns,
		to_ns; /* a place to look at, from the beginning of the capture; 0, 0: none */
};

struct xsp_report;
struct xsp_report_section;
struct xsp_report_table;

int xsp_report_new(struct xsp_report **out); /* 0 or -ENOMEM */
void xsp_report_free(struct xsp_report *r);
bool xsp_report_failed(const struct xsp_report *r);

/* Sections in the order in which they are first named; what the functions return may be NULL after a failure, and may be
 * given on all the same. */
struct xsp_report_section *xsp_report_section(struct xsp_report *r, const char *key,
					      const char *title);
void xsp_report_value(struct xsp_report_section *s, const char *key, const char *title,
		      enum xsp_unit unit, struct xsp_cell value);
/* A line of text for people: what the figures leave out, and why. */
void xsp_report_note(struct xsp_report_section *s, const char *text);
void xsp_report_notef(struct xsp_report_section *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* That of the shape, which is made if need be. */
struct xsp_report_table *xsp_report_table(struct xsp_report_section *s,
					  const struct xsp_report_shape *shape);
/* A row of the type that the columns' sources are of; `of`: what their functions get beside it. */
void xsp_report_add(struct xsp_report_table *t, const void *of, const void *row);
/* `count` rows of `size` bytes each. */
void xsp_report_rows(struct xsp_report_table *t, const void *of, const void *rows, size_t size,
		     size_t count);
/* Is the last row one of those that the table is for? Where it is said, a text has few of the others (xsp_report_how). */
void xsp_report_row_leads(struct xsp_report_table *t, bool leads);
/* The finding's own figures follow by xsp_report_value() on what is returned. */
struct xsp_report_section *xsp_report_finding(struct xsp_report *r,
					      const struct xsp_report_finding *f);

/* ---- reading: all that is handed out lives as long as the report, or until something is added ---- */

struct xsp_report_figure {
	const char *key, *title;
	enum xsp_unit unit;
	struct xsp_cell value;
};
/* NULL: there is no such. */
const struct xsp_report_section *xsp_report_find_section(const struct xsp_report *r,
							 const char *key);
const struct xsp_report_table *xsp_report_find_table(const struct xsp_report_section *s,
						     const char *key);

size_t xsp_report_values(const struct xsp_report_section *s, const struct xsp_report_figure **out);
size_t xsp_report_notes(const struct xsp_report_section *s, const char *const **out);
struct xsp_cell xsp_report_cell(const struct xsp_report_column *column, struct xsp_report_at *at);
size_t xsp_report_row_count(const struct xsp_report_table *t);
/* A cell for each column. */
const struct xsp_cell *xsp_report_row_at(const struct xsp_report_table *t, size_t index);

/* Highest severity first, of equals the greatest share. */
struct xsp_report_found {
	struct xsp_report_finding finding;
	struct xsp_report_section *figures; /* its values */
};
size_t xsp_report_findings(const struct xsp_report *r, const struct xsp_report_found **out);

const char *xsp_severity_name(enum xsp_severity severity); /* "high" */
const char *xsp_unit_name(enum xsp_unit unit); /* "ns", "bytes", ... */

/* ---- writing ---- */

/* What the JSON calls itself; its version is changed with what older readers would take wrongly. */
#define XSP_REPORT_JSON "xsptrace report"
#define XSP_REPORT_VERSION 1

struct xsp_report_how {
	size_t top; /* rows of a table; 0: all */
	bool brief; /* text: behind rows that lead, few others */
	int width; /* of a terminal; 0: it is none, names are never cut */
	bool color;
};
/* A figure as texts show it: "12.3 ms", "-". Not of texts. Returns out. */
#define XSP_REPORT_FIGURE 72
char *xsp_report_figure_text(const struct xsp_cell *cell, enum xsp_unit unit,
			     char out[XSP_REPORT_FIGURE]);
/* 0, -ENOMEM, or -EIO. What is the target's is escaped. */
int xsp_report_write_text(const struct xsp_report *r, FILE *f, const struct xsp_report_how *how);
int xsp_report_write_json(const struct xsp_report *r, FILE *f, const struct xsp_report_how *how);
int xsp_report_write_csv(const struct xsp_report *r, FILE *f, const struct xsp_report_how *how);
/*
 * A JSON Schema (draft 2020-12) of what xsp_report_write_json() makes of the reports of a verb: analyze or compare.
 * `rule`: the key of each rule that may find something, then NULL. Returns as above.
 */
int xsp_report_write_schema(const char *verb, const char *(*rule)(size_t index), FILE *f);

#endif
