/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.h - what analyses found, as data: sections of values and tables, and findings.
 *
 * Each figure is computed once: `analyze` writes a report as text, JSON and CSV, `compare` compares
 * two, `view` draws them. Keys are stable and part of the format (docs/analyze.md); titles and
 * texts are for readers. An unknown figure is absent (XSP_CELL_ABSENT), never 0.
 *
 * Functions that add copy their arguments. When memory runs out, all later calls do nothing and
 * xsp_report_failed() returns true. So callers need not check each value.
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
	XSP_UNIT_TIME, /* a time, ns from the beginning of the capture */
	XSP_UNIT_BYTES,
	XSP_UNIT_SHARE, /* 0 to 1, shown as % */
	XSP_UNIT_PER_SECOND,
	XSP_UNIT_BYTES_PER_SECOND,
	XSP_UNIT_NUMBER, /* without a unit */
	/* a share by which it became more, for programs; people get a factor from the double on */
	XSP_UNIT_CHANGE,
};

struct xsp_cell {
	enum {
		XSP_CELL_ABSENT,
		XSP_CELL_TEXT,
		XSP_CELL_INTEGER,
		XSP_CELL_REAL,
		XSP_CELL_BOOL, /* only in lists */
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
/* Absent if `sum` is XSP_TOO_MUCH. */
static inline struct xsp_cell xsp_cell_sum(uint64_t sum)
{
	return sum > INT64_MAX ? xsp_cell_text(NULL) : xsp_cell_integer(sum);
}
static inline struct xsp_cell xsp_cell_real(double value)
{
	return (struct xsp_cell){XSP_CELL_REAL, {.real = value}};
}

#define XSP_REPORT_TEXT 4096
/* The argument of a function that makes a cell. */
struct xsp_report_at {
	const void *of; /* the analysis whose rows they are */
	const void *row;
	size_t room; /* in lists: columns for a text; 0: no limit */
	char text[XSP_REPORT_TEXT]; /* buffer for a text that the cell points to */
};

/* The source of a column's value: XSP_BY(), XSP_FIELD(), XSP_FIELD_IF(). */
struct xsp_report_source {
	struct xsp_cell (*cell)(struct xsp_report_at *at); /* NULL: a member of the row */
	enum xsp_field {
		XSP_FIELD_NONE,
		XSP_FIELD_U64, /* absent if it is XSP_TOO_MUCH */
		XSP_FIELD_U32,
		XSP_FIELD_I64,
		XSP_FIELD_BOOL,
		XSP_FIELD_REAL,
		XSP_FIELD_TEXT,
	} field;
	enum xsp_field known_field;
	unsigned short at, known_at; /* offsets */
};
/* The kinds of members; other types need a function. */
#define XSP_FIELD_OF(type, member)                                                                 \
	_Generic(((type *)0)->member,                                                              \
		 uint64_t: XSP_FIELD_U64,                                                          \
		 unsigned long long: XSP_FIELD_U64,                                                \
		 uint32_t: XSP_FIELD_U32,                                                          \
		 int64_t: XSP_FIELD_I64,                                                           \
		 bool: XSP_FIELD_BOOL,                                                             \
		 double: XSP_FIELD_REAL,                                                           \
		 const char *: XSP_FIELD_TEXT)
/* A member of the row's type. */
#define XSP_FIELD(type, member)                                                                    \
	{                                                                                          \
		.field = XSP_FIELD_OF(type, member), .at = offsetof(type, member)                  \
	}
/* The same; absent if the member `known` is 0. */
#define XSP_FIELD_IF(type, member, known)                                                          \
	{                                                                                          \
		.field = XSP_FIELD_OF(type, member), .at = offsetof(type, member),                 \
		.known_field = XSP_FIELD_OF(type, known), .known_at = offsetof(type, known)        \
	}
#define XSP_BY(function)                                                                           \
	{                                                                                          \
		.cell = (function)                                                                 \
	}
/* Defines such a function, from an expression of `of`, `row` and `at->text`. */
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
	const char *key, *title; /* constants, not copied */
	enum xsp_unit unit;
	bool identity; /* part of the row's name: `compare` joins rows by it */
	struct xsp_report_source source;
};

/*
 * A table that a report may have. Its keys and columns are part of the format. XSP_REPORT_SHAPE()
 * puts it on a list that the linker gathers, and `--json-schema` describes the list (schema.c).
 */
struct xsp_report_shape {
	const char *section, *key, *title; /* constants, not copied */
	const struct xsp_report_column *columns;
	size_t count;
};
/* Goes before `*const name[] = {&shape, ...}`; `verb`: analyze or compare. */
#define XSP_REPORT_LISTED(verb)                                                                    \
	__attribute__((section("xsp_report_" #verb), used,                                         \
		       aligned(sizeof(void *)))) static const struct xsp_report_shape
/* Defines a shape from the array of its columns. */
#define XSP_REPORT_SHAPE(verb, name, section, key, title, columns)                                 \
	static const struct xsp_report_shape name = {section, key, title, columns,                 \
						     sizeof(columns) / sizeof((columns)[0])};      \
	XSP_REPORT_LISTED(verb) *const name##_listed[] = {&name}

enum xsp_severity {
	XSP_SEVERITY_NOTE, /* no finding: it need not be a fault of the program */
	XSP_SEVERITY_HOT, /* nor that: where much of the time goes, which may be what the program is for */
	XSP_SEVERITY_LOW, /* from here on: findings */
	XSP_SEVERITY_MEDIUM,
	XSP_SEVERITY_HIGH,
};
/* The name of the list that has those of a severity: "findings", "hot_operation", "notes". */
const char *xsp_severity_list(enum xsp_severity severity);

/* A rule's finding. The figures that prove it are values with keys, as in a section. */
struct xsp_report_finding {
	const char *rule; /* key of the rule: "sync", "leak" ... */
	enum xsp_severity severity;
	/* operator, line or kernel; NULL: the whole run. Rule and subject identify a finding
	 * across reports. */
	const char *subject;
	const char *title; /* one line: what is slow, and by how much */
	const char *advice; /* what to do, with the line or operator */
	const char *uncertain; /* its caveats (lost events, windows ...); NULL: none */
	double share; /* 0 to 1, of the recorded time or the rule's own whole: sets the severity */
	/* a range to look at, from the beginning of the capture; 0, 0: none */
	uint64_t from_ns, to_ns;
};

struct xsp_report;
struct xsp_report_section;
struct xsp_report_table;

int xsp_report_new(struct xsp_report **out); /* 0 or -ENOMEM */
void xsp_report_free(struct xsp_report *r);
bool xsp_report_failed(const struct xsp_report *r);

/* Sections keep the order in which they are first named. The result may be NULL after a failure;
 * every function accepts that. */
struct xsp_report_section *xsp_report_section(struct xsp_report *r, const char *key,
					      const char *title);
void xsp_report_value(struct xsp_report_section *s, const char *key, const char *title,
		      enum xsp_unit unit, struct xsp_cell value);
/* A line of text for readers: what is missing from the figures, and why. */
void xsp_report_note(struct xsp_report_section *s, const char *text);
void xsp_report_notef(struct xsp_report_section *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A note that the brief screen shows as well: what was asked for and is not there, or what would make the answer better. */
void xsp_report_caveat(struct xsp_report_section *s, const char *text);
/* Finds or makes the shape's table. */
struct xsp_report_table *xsp_report_table(struct xsp_report_section *s,
					  const struct xsp_report_shape *shape);
/* Adds a row of the type that the columns' sources expect. `of`: passed to their functions. */
void xsp_report_add(struct xsp_report_table *t, const void *of, const void *row);
/* `count` rows of `size` bytes each. */
void xsp_report_rows(struct xsp_report_table *t, const void *of, const void *rows, size_t size,
		     size_t count);
/* Is the last row one that the table is for? Once called, a brief text shows few of the others
 * (xsp_report_how). */
void xsp_report_row_leads(struct xsp_report_table *t, bool leads);
/* Add the finding's figures to the result with xsp_report_value(). */
struct xsp_report_section *xsp_report_finding(struct xsp_report *r,
					      const struct xsp_report_finding *f);

/* ---- reading: results live as long as the report, or until something is added ---- */

struct xsp_report_figure {
	const char *key, *title;
	enum xsp_unit unit;
	struct xsp_cell value;
};
/* NULL: there is no such section. */
const struct xsp_report_section *xsp_report_find_section(const struct xsp_report *r,
							 const char *key);
const struct xsp_report_table *xsp_report_find_table(const struct xsp_report_section *s,
						     const char *key);

size_t xsp_report_values(const struct xsp_report_section *s, const struct xsp_report_figure **out);
/* A section's value; 0 or NULL: there is none of that kind. */
double xsp_number(const struct xsp_report_section *s, const char *key);
const char *xsp_text(const struct xsp_report_section *s, const char *key);
size_t xsp_report_notes(const struct xsp_report_section *s, const char *const **out);
struct xsp_cell xsp_report_cell(const struct xsp_report_column *column, struct xsp_report_at *at);
size_t xsp_report_row_count(const struct xsp_report_table *t);
/* A cell for each column. */
const struct xsp_cell *xsp_report_row_at(const struct xsp_report_table *t, size_t index);
/* The same of a row's cell in that column, which the table has. */
double xsp_row_number(const struct xsp_report_table *t, size_t index, const char *column);
const char *xsp_row_text(const struct xsp_report_table *t, size_t index, const char *column);

/* Highest severity first, then the greatest share. */
struct xsp_report_found {
	struct xsp_report_finding finding;
	struct xsp_report_section *figures; /* its values */
};
size_t xsp_report_findings(const struct xsp_report *r, const struct xsp_report_found **out);

const char *xsp_severity_name(enum xsp_severity severity); /* "high" */
const char *xsp_unit_name(enum xsp_unit unit); /* "ns", "bytes", ... */

/* ---- writing ---- */

/* Name of the JSON format. Its version changes if older readers would misread it. */
#define XSP_REPORT_JSON "xsptrace report"
#define XSP_REPORT_VERSION 1

struct xsp_report_how {
	size_t top; /* rows of a table; 0: all */
	bool brief; /* text: few rows after those that lead */
	bool few; /* text: of one screen, where there is no way to more rows */
	int width; /* of a terminal; 0: no terminal, so nothing is elided or dropped */
	bool color;
	/* for one screen: the files that were written, and the command that shows more; NULL: not known */
	const char *files, *next;
	const char *
		moment; /* the same: where the time went of which it is a snapshot; NULL: of none */
};
/* A figure as text: "12.3 ms", "-". Not for texts. Returns out. */
#define XSP_REPORT_FIGURE 72
char *xsp_report_figure_text(const struct xsp_cell *cell, enum xsp_unit unit,
			     char out[XSP_REPORT_FIGURE]);
/* Escapes the target's texts. 0, -ENOMEM or -EIO. */
int xsp_report_write_text(const struct xsp_report *r, FILE *f, const struct xsp_report_how *how);
/* One screen: the findings, the account or the first tables, and what to do next. */
int xsp_report_write_brief(const struct xsp_report *r, FILE *f, const struct xsp_report_how *how);
int xsp_report_write_json(const struct xsp_report *r, FILE *f, const struct xsp_report_how *how);
int xsp_report_write_csv(const struct xsp_report *r, FILE *f, const struct xsp_report_how *how);
/*
 * A JSON Schema (draft 2020-12) of what xsp_report_write_json() writes for a verb: analyze or
 * compare. `rule`: the key of each rule that may find something, then NULL. 0, -ENOMEM or -EIO.
 */
int xsp_report_write_schema(const char *verb, const char *(*rule)(size_t index), FILE *f);

#endif
