/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * summary_python.c - spans by line of Python and by torch.nn.Module.
 *
 * Self times are summed by stack. At the end, these sums make the totals of lines and modules. So
 * no total counts a time twice, however functions call each other.
 */
#include "analysis/names/summary_python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "base/rows/tally.h"
#include "base/units.h"
#include "report/list.h"
#include "timeline/python.h"

#define INDENT_MAX 2000 /* columns of a module's indentation */
#define PATH_MAX_BYTES 2048 /* a longer path of a module is elided */

struct sum {
	uint64_t calls; /* calls by Python, without calls inside them */
	uint64_t ns; /* self time of spans with a duration */
	uint64_t measured; /* number of these spans */
};

/* Spans of one stack, without the frames that only opened the spans. */
struct stack {
	const struct xsp_capture_python *python;
	uint32_t first;
	struct sum sum;
};

struct line {
	const struct xsp_capture_python_frame *frame;
	struct sum self, total; /* self: it called them; total: it is among the callers */
	size_t last; /* 1 + the stack that was added last */
};

struct module {
	const struct module *parent;
	const char *path, *name; /* name: the path's last part */
	uint32_t depth;
	struct sum self, total;
	size_t order; /* in which modules were met */
	bool is_shown;
};

struct xsp_summary_python {
	struct xsp_timeline *timeline;
	uint64_t until_ns; /* lines were on by default and were released then; 0: they were not */
	XSP_TALLY(struct stack) stacks; /* by id and first frame */
	struct sum all, lineless, moduleless;
	/* made at the end */
	bool ended;
	XSP_TALLY(struct line) lines; /* by the frame's name */
	XSP_TALLY(struct module *) modules; /* by path */
	struct xsp_arena arena; /* of modules and their paths */
	struct xsp_report *report; /* the one that is being filled */
};

int xsp_summary_python_new(struct xsp_timeline *t, struct xsp_summary_python **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = t;
	(*out)->until_ns = xsp_timeline_python_until_ns(t);
	return 0;
}

void xsp_summary_python_free(struct xsp_summary_python *s)
{
	if (s == NULL)
		return;
	xsp_arena_free(&s->arena);
	xsp_tally_free(&s->stacks);
	xsp_tally_free(&s->lines);
	xsp_tally_free(&s->modules);
	free(s);
}

static void add(struct sum *to, const struct sum *what)
{
	to->calls += what->calls;
	to->ns += what->ns;
	to->measured += what->measured;
}

int xsp_summary_python_span(struct xsp_summary_python *s, const struct xsp_span *span)
{
	const bool measured = xsp_span_has_duration(span);
	struct sum one = {.ns = measured ? span->self_ns : 0, .measured = measured};

	if (s == NULL || (s->until_ns != 0 && span->start_ns > s->until_ns))
		return 0;
	one.calls = span->python == NULL || span->python_calls;
	add(&s->all, &one);
	if (span->python == NULL || span->python_first >= span->python->count) {
		add(&s->lineless, &one);
		return 0;
	}
	const uint64_t key = xsp_u64_mix(span->python->id) + span->python_first;
	struct stack *stack =
		xsp_tally_row(&s->stacks, key,
			      &(struct stack){.python = span->python, .first = span->python_first});
	if (stack == NULL)
		return -ENOMEM;
	add(&stack->sum, &one);
	return 0;
}

/* ---- lines ---- */

static int add_lines(struct xsp_summary_python *s, size_t number)
{
	const struct stack *stack = &s->stacks.rows[number];

	for (uint32_t i = stack->first; i < stack->python->count; i++) {
		const struct xsp_capture_python_frame *frame = &stack->python->frames[i];
		struct line *l =
			xsp_tally_row(&s->lines, frame->name, &(struct line){.frame = frame});
		if (l == NULL)
			return -ENOMEM;
		if (i == stack->first)
			add(&l->self, &stack->sum);
		if (l->last == number + 1) /* a recursion counts once */
			continue;
		l->last = number + 1;
		add(&l->total, &stack->sum);
	}
	return 0;
}

static XSP_ORDER(by_self, struct line,
		 XSP_FALLING(self.ns) ?: XSP_FALLING(self.calls) ?: XSP_FALLING(frame->name));

/* ---- modules ---- */

/* Finds or makes the module of that path; its parent exists. NULL: out of memory. */
static struct module *module_of(struct xsp_summary_python *s, const struct module *parent,
				const char *path, size_t length)
{
	const uint64_t hash = xsp_u64_mix(xsp_text_hash(path, length));
	struct module **known = xsp_tally_find(&s->modules, hash);

	if (known != NULL)
		return *known;
	struct module *m = xsp_arena_alloc(&s->arena, sizeof(*m));
	char *copy = xsp_arena_copy(&s->arena, path, length);
	if (m == NULL || copy == NULL || xsp_tally_row(&s->modules, hash, &m) == NULL)
		return NULL;
	*m = (struct module){.parent = parent, .path = copy, .order = s->modules.count - 1};
	m->depth = parent != NULL ? parent->depth + 1 : 0;
	m->name = parent != NULL ? copy + strlen(parent->path) + 1 : copy;
	return m;
}

/* Adds to the module and to those around it. */
static int add_module(struct xsp_summary_python *s, const struct stack *stack)
{
	struct xsp_python_module names;
	char path[PATH_MAX_BYTES];
	size_t length = 0;
	struct module *m = NULL;

	xsp_timeline_python_module(s->timeline, stack->python, stack->first, &names);
	if (names.count == 0) {
		add(&s->moduleless, &stack->sum);
		return 0;
	}
	for (uint32_t i = 0; i < names.count; i++) {
		if (length + strlen(names.names[i]) + 2 > sizeof(path))
			break;
		for (const char *c = names.names[i];; c++) {
			if (*c != '.' && *c != '\0') {
				path[length++] = *c;
				continue;
			}
			m = module_of(s, m, path, length);
			if (m == NULL)
				return -ENOMEM;
			add(&m->total, &stack->sum);
			path[length++] = '.';
			if (*c == '\0')
				break;
		}
	}
	add(m != NULL ? &m->self : &s->moduleless, &stack->sum);
	return 0;
}

/* As a tree, and siblings by falling total. */
static int by_tree(const void *a, const void *b)
{
	const struct module *x = *(struct module *const *)a, *y = *(struct module *const *)b;
	const uint32_t depth_x = x->depth, depth_y = y->depth;

	while (x->depth > y->depth)
		x = x->parent;
	while (y->depth > x->depth)
		y = y->parent;
	if (x == y)
		return depth_x < depth_y ? -1 : depth_x > depth_y;
	while (x->parent != y->parent) {
		x = x->parent;
		y = y->parent;
	}
	return XSP_FALLING(total.ns) ?: XSP_RISING(order);
}

/* A shown module has a longer total than any hidden one, so the modules around it are shown too. */
static XSP_ORDER_POINTERS(by_total, struct module, XSP_FALLING(total.ns) ?: XSP_RISING(order));

static void sort(struct xsp_summary_python *s, size_t most)
{
	xsp_tally_sort(&s->modules, by_total);
	for (size_t i = 0; i < s->modules.count; i++)
		s->modules.rows[i]->is_shown = most == 0 || i < most;
	xsp_tally_sort(&s->modules, by_tree);
}

/* Makes lines and modules from stacks, once. */
static int end(struct xsp_summary_python *s)
{
	int rc = 0;

	for (size_t i = 0; i < s->stacks.count && !s->ended && rc == 0; i++) {
		rc = add_lines(s, i);
		if (rc == 0)
			rc = add_module(s, &s->stacks.rows[i]);
	}
	if (!s->ended)
		add(&s->moduleless, &s->lineless);
	xsp_tally_sort(&s->lines, by_self);
	s->ended = true;
	return rc;
}

int xsp_summary_python_modules(struct xsp_summary_python *s,
			       int (*fn)(void *ctx, const char *path, uint64_t ns, uint64_t calls),
			       void *ctx)
{
	int rc = end(s);

	for (size_t i = 0; i < s->modules.count && rc == 0; i++)
		rc = fn(ctx, s->modules.rows[i]->path, s->modules.rows[i]->self.ns,
			s->modules.rows[i]->self.calls);
	return rc;
}

/* ---- in reports ---- */

static const char *line_text(const struct xsp_summary_python *s, const struct line *line,
			     char out[XSP_PYTHON_LINE_MAX])
{
	struct xsp_python_line l;

	if (!xsp_timeline_python_line(s->timeline, line->frame, &l))
		return "[not known]";
	xsp_python_line_show(&l, out);
	return out;
}

/* A line, a module, or the rest. */
struct place {
	const char *name;
	const struct sum *self, *total;
	uint32_t indent; /* in the tree of modules */
	/* parts of a line */
	const char *function, *file;
	uint32_t line;
};

static struct xsp_cell time_cell(const struct sum *s)
{
	return xsp_cell_if(s->measured > 0, s->ns);
}

#define CELL(name, value) XSP_REPORT_CELL(name, struct xsp_summary_python, struct place, value)

CELL(place_calls, xsp_cell_integer(row->self->calls));
CELL(place_total, time_cell(row->total));
CELL(place_self, time_cell(row->self));
CELL(place_share, row->self->measured > 0 && of->all.ns > 0
			  ? xsp_cell_real((double)row->self->ns / (double)of->all.ns)
			  : xsp_cell_absent());

static const struct xsp_report_column columns[] = {
	{"name", "where", XSP_UNIT_TEXT, true, XSP_FIELD(struct place, name)},
	{"calls", "calls", XSP_UNIT_COUNT, false, XSP_BY(place_calls)},
	{"total_ns", "total", XSP_UNIT_NS, false, XSP_BY(place_total)},
	{"self_ns", "self", XSP_UNIT_NS, false, XSP_BY(place_self)},
	{"share", "share of self", XSP_UNIT_SHARE, false, XSP_BY(place_share)},
};
XSP_REPORT_SHAPE(analyze, modules_shape, "python", "modules", "by torch.nn.Module", columns);
XSP_REPORT_SHAPE(analyze, lines_shape, "python", "lines", "by line that called", columns);

static struct xsp_cell place_shown(struct xsp_report_at *at)
{
	const struct place *place = at->row;
	const size_t left = 43 + (size_t)place->indent;
	const size_t room = at->room > left + 8 ? at->room - left : at->room > 0 ? 8 : 0;

	const size_t indent = place->indent < INDENT_MAX ? place->indent : INDENT_MAX;
	memset(at->text, ' ', indent);
	xsp_printable(at->text + indent, sizeof(at->text) - indent, place->name, room);
	return xsp_cell_text(at->text);
}

/* Share 0 if there is no time at all. */
CELL(place_share_shown,
     row->self->measured > 0 && of->all.ns == 0 ? xsp_cell_real(0) : place_share(at));

static const struct xsp_report_column more_columns[] = {
	{"share", "share", XSP_UNIT_SHARE, false, XSP_BY(place_share_shown)},
	{"shown", "module", XSP_UNIT_TEXT, false, XSP_BY(place_shown)},
	{"path", "path", XSP_UNIT_TEXT, false, XSP_FIELD(struct place, name)},
	{"function", "function", XSP_UNIT_TEXT, false, XSP_FIELD(struct place, function)},
	{"file", "file", XSP_UNIT_TEXT, false, XSP_FIELD(struct place, file)},
	{"line", "line", XSP_UNIT_NUMBER, false, XSP_FIELD(struct place, line)},
};

#define SHOWN(what)                                                                                \
	{                                                                                          \
		{.key = "calls", .width = 9}, {.key = "total_ns", .width = 9},                     \
			{.key = "self_ns", .width = 9},                                            \
			{.key = "share", .width = 8, .format = "%.2f %%", .times = 100},           \
			{.key = "shown", .title = what},                                           \
	}
static const struct xsp_list_column lines_shown[] = SHOWN("line of Python");
static const struct xsp_list_column modules_shown[] = SHOWN("module");
#define SUMS "calls total_ns? self_ns?"
static const struct xsp_list line_list = {
	XSP_LIST_COLUMNS(columns),
	XSP_LIST_MORE(more_columns),
	.full = &lines_shape,
	.json = "lines",
	.keys = "function file line " SUMS,
	XSP_LIST_TEXT(lines_shown),
	.rows = "line",
};
static const struct xsp_list module_list = {
	XSP_LIST_COLUMNS(columns), XSP_LIST_MORE(more_columns), .full = &modules_shape,
	.json = "modules",	   .keys = "path " SUMS,	XSP_LIST_TEXT(modules_shown),
	.rows = "module",
};
static const struct xsp_list without_line = {XSP_LIST_COLUMNS(columns), .json = "without_line",
					     .keys = SUMS};
static const struct xsp_list without_module = {XSP_LIST_COLUMNS(columns), .json = "without_module",
					       .keys = SUMS};

/* Spans that are in no row: an extra row, in JSON an object of its own. */
static void put_rest(const struct xsp_summary_python *s, struct xsp_report_section *section,
		     struct xsp_report_table *t, const struct xsp_list *list,
		     const struct sum *rest, const char *name)
{
	const struct place place = {.name = name, .self = rest, .total = rest};

	if (xsp_report_form(s->report) == XSP_FORM_JSON)
		xsp_list_values(section, list, s, &place);
	else if (rest->calls + rest->measured > 0)
		xsp_report_add(t, s, &place);
}

static int put_line(const struct xsp_summary_python *s, struct xsp_report_table *t,
		    const struct line *line)
{
	struct xsp_python_line l = {.path = "", .function = "[not known]"};
	char text[XSP_PYTHON_LINE_MAX];

	xsp_timeline_python_line(s->timeline, line->frame, &l);
	char *file = strndup(l.path, l.path_length);
	if (file == NULL)
		return -ENOMEM;
	xsp_report_add(t, s,
		       &(struct place){.name = line_text(s, line, text),
				       .self = &line->self,
				       .total = &line->total,
				       .function = l.function,
				       .file = file,
				       .line = l.line});
	free(file);
	return 0;
}

static int put_lines(const struct xsp_summary_python *s, struct xsp_report_section *section)
{
	struct xsp_report_table *t = xsp_list_table(section, &line_list);
	const size_t shown_count =
		xsp_list_most(s->report, xsp_report_how(s->report)->top, s->lines.count);
	int rc = 0;

	for (size_t i = 0; i < shown_count && rc == 0; i++)
		rc = put_line(s, t, &s->lines.rows[i]);
	put_rest(s, section, t, &without_line, &s->lineless, "[no line of Python]");
	xsp_list_more(s->report, &line_list, s->lines.count - shown_count);
	xsp_list_gap(s->report);
	return rc;
}

static void put_modules(struct xsp_summary_python *s, struct xsp_report_section *section)
{
	const bool text = xsp_report_form(s->report) == XSP_FORM_TEXT;
	struct xsp_report_table *t = xsp_list_table(section, &module_list);
	size_t hidden = 0;

	sort(s, text ? xsp_report_how(s->report)->top : 0);
	for (size_t i = 0; i < s->modules.count; i++) {
		const struct module *m = s->modules.rows[i];
		hidden += !m->is_shown;
		if (m->is_shown)
			xsp_report_add(t, s,
				       &(struct place){.name = text ? m->name : m->path,
						       .self = &m->self,
						       .total = &m->total,
						       .indent = 2 * m->depth});
	}
	if (s->modules.count > 0 || xsp_report_form(s->report) != XSP_FORM_FULL)
		put_rest(s, section, t, &without_module, &s->moduleless, "[no module]");
	xsp_list_more(s->report, &module_list, hidden);
	xsp_list_gap(s->report);
}

/* How long lines were recorded, if not to the end; or NULL. */
static const char *until_text(const struct xsp_summary_python *s, char out[XSP_UNITS_SIZE])
{
	const uint64_t first_ns = xsp_timeline_first_ns(s->timeline, s->until_ns);

	return first_ns > 0 ? xsp_format_ns(out, first_ns) : NULL;
}

static void put_until(const struct xsp_summary_python *s, struct xsp_report_section *section)
{
	char time[XSP_UNITS_SIZE];
	FILE *f = xsp_list_below(s->report);

	if (s->until_ns != 0)
		xsp_list_member(s->report, "lines_until_ns", xsp_cell_integer(s->until_ns));
	if (until_text(s, time) == NULL)
		return;
	xsp_report_notef(section, "of the first %s", time);
	if (f != NULL)
		fprintf(f, "of the first %s:\n", time);
}

int xsp_summary_python_report(struct xsp_summary_python *s, bool by_line, bool by_module,
			      struct xsp_report *report)
{
	int rc = s != NULL ? end(s) : 0;

	if (rc < 0 || s == NULL || !(by_line || by_module))
		return rc;
	if (s->stacks.count == 0) {
		if (xsp_list_below(report) != NULL)
			fputs("no span has a line of Python: record with --python\n\n",
			      xsp_list_below(report));
		return 0;
	}
	struct xsp_report_section *section =
		xsp_report_section(report, "python", "Spans by line of Python and by module");
	s->report = report;
	put_until(s, section);
	if (by_line)
		rc = put_lines(s, section);
	if (rc == 0 && by_module)
		put_modules(s, section);
	return rc;
}
