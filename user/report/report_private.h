/* SPDX-License-Identifier: BSD-2-Clause */
/* report_private.h - what a report is made of. Full reports are kept until they are written;
 * summaries are written at once. */
#ifndef XSP_REPORT_REPORT_PRIVATE_H
#define XSP_REPORT_REPORT_PRIVATE_H

#include <cjson/cJSON.h>

#include "base/arena.h"
#include "report/list.h"

struct xsp_report_table {
	struct xsp_report *report;
	const struct xsp_report_shape *shape;
	struct xsp_cell *cells; /* one row after the other */
	size_t row_count, capacity;
	size_t leading; /* number of rows up to the last one that leads */
	bool led; /* some rows lead, or could */
	/* of a summary */
	const struct xsp_list *list; /* NULL: of a full report */
	cJSON *rows, *last; /* an array, and its last object */
};

struct xsp_report_section {
	struct xsp_report *report;
	const char *key, *title;
	struct xsp_report_figure *values;
	size_t value_count, value_capacity;
	const char **notes;
	size_t note_count, note_capacity;
	const char *caveat; /* one of the notes */
	struct xsp_report_table **tables;
	size_t table_count, table_capacity;
};

/* A text that grows. */
struct xsp_report_text {
	FILE *f;
	char *text;
	size_t length;
};

struct xsp_report {
	struct xsp_arena arena; /* for texts, sections and tables */
	/* the first one is the head: what was recorded, and what was lost */
	struct xsp_report_section **sections;
	size_t section_count, section_capacity;
	struct xsp_report_found *findings;
	size_t finding_count, finding_capacity;
	bool failed;
	/* of a summary */
	enum xsp_report_form form;
	struct xsp_report_how how;
	cJSON *json; /* an object */
	struct xsp_report_text tables, lines;
	bool row_open; /* the last row still lacks its newline */
};

void xsp_report_look_at(struct xsp_report_at *at, const void *of, const void *row);
/* A row of a full report. */
void xsp_report_keep(struct xsp_report_table *t, const void *of, const void *row);
/* The cell's text for a terminal, elided to `columns` (0: whole); malloc'd. NULL: out of memory. */
char *xsp_report_cell_text(const struct xsp_cell *cell, enum xsp_unit unit, size_t columns);
/* A table's title and first rows, no line wider than the width. 0 or -ENOMEM. */
int xsp_report_put_few(const struct xsp_report_table *table, size_t rows, FILE *f,
		       const struct xsp_report_how *how);
/* By enum xsp_severity. */
struct xsp_severity_look {
	const char *name, *color; /* the color's escape sequence, or "" */
};
extern const struct xsp_severity_look xsp_severity_looks[];
/* How many there are without what is hot, and notes, which come last. */
size_t xsp_report_true_findings(const struct xsp_report *r);
cJSON *xsp_report_json_cell(const struct xsp_cell *cell);

#endif
