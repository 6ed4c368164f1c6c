/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/screen/top_page.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "catalog/wait_reasons.h"
#include "target/patterns/glob.h"

#define CELL 128 /* bytes; names have more room */
#define NAME_LEAST 24 /* drop columns before a name gets less */
#define THREAD_NAME 26
#define TAIL_LEAST 12
#define NAME_MAX_ALIGNED 64 /* in a pipe a longer name moves its numbers to the right */

/* ---- lines ---- */

enum style { PLAIN, TITLE, BAD };

/* Writes as much as fits. The text is printable. */
static void put(struct xsp_top_page *p, enum style style, const char *text)
{
	static const char *const codes[] = {"", "\033[7m", "\033[1;31m"};
	size_t length = 0;

	for (; text[length] != '\0'; length++) {
		if (((unsigned char)text[length] & 0xc0) == 0x80)
			continue; /* the rest of a character of several bytes */
		if (p->width > 0 && p->column == p->width)
			break;
		p->column++;
	}
	const bool colored = p->color && style != PLAIN && length > 0;
	fprintf(p->f, "%s%.*s%s", colored ? codes[style] : "", (int)length, text,
		colored ? "\033[0m" : "");
}

static void put_format(struct xsp_top_page *p, enum style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void put_format(struct xsp_top_page *p, enum style style, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	put(p, style, text);
}

static void end_line(struct xsp_top_page *p)
{
	fputc('\n', p->f);
	p->column = 0;
}

void xsp_top_print_line(struct xsp_top_page *p, const char *text)
{
	char printable[512];

	xsp_printable(printable, sizeof(printable), text, sizeof(printable) / 4);
	put(p, PLAIN, printable);
	end_line(p);
}

void xsp_top_print_process(struct xsp_top_page *p)
{
	const struct xsp_recorder_status *s = &p->status;
	char name[64], rate[XSP_UNITS_SIZE], lost[XSP_UNITS_SIZE];

	xsp_printable(name, sizeof(name), p->process, p->width > 0 && p->width < 100 ? 22 : 40);
	put_format(p, PLAIN, "%s  ", name);
	if (p->cpu < 0)
		put(p, PLAIN, "-% CPU  ");
	else
		put_format(p, PLAIN, "%.0f%% CPU  ", 100 * p->cpu);
	put_format(p, PLAIN, "%s events/s  ",
		   xsp_format_count(rate, (uint64_t)s->events_per_second));
	put_format(p, s->lost > 0 ? BAD : PLAIN, "%s lost", xsp_format_count(lost, s->lost));
	put_format(p, PLAIN, "  slowed by %.1f%%", 100 * s->overhead);
	if (s->slowdown > 0)
		put_format(p, PLAIN, " (thread %.0f%%)", 100 * s->slowdown);
	if (p->width == 0)
		put_format(p, PLAIN, "  after %.1f s%s", s->seconds,
			   s->paused ? "  off until the next window" : "");
	end_line(p);
}

/* ---- what stands in tables ---- */

struct column {
	const char *title;
	unsigned least; /* its least width */
	bool left; /* left-aligned: text */
	bool alone; /* stays if there is room for nothing else */
	void (*cell)(const struct xsp_top_page *p, const void *row, char out[CELL]);
	double (*value)(const struct xsp_top_page *p, const void *row); /* NULL: sort by its text */
};

static double seconds(const struct xsp_top_page *p)
{
	return (double)xsp_live_interval_ns(p->live) * 1e-9;
}

static void show_share(char out[CELL], double share, bool known)
{
	if (known)
		snprintf(out, CELL, "%.1f", 100 * share);
	else
		snprintf(out, CELL, "-");
}

static void show_count(char out[CELL], double count)
{
	if (count > 0 && count < 9.95)
		snprintf(out, CELL, "%.1f", count);
	else
		xsp_format_count(out, (uint64_t)(count + 0.5));
}

static double name_rate(const struct xsp_top_page *p, const void *row)
{
	const struct xsp_live_name *n = row;

	return seconds(p) > 0 ? (double)n->calls / seconds(p) : 0;
}

static double name_share(const struct xsp_top_page *p, const void *row)
{
	const struct xsp_live_name *n = row;

	return seconds(p) > 0 ? (double)n->self_ns * 1e-9 / seconds(p) : 0;
}

static void name_rate_cell(const struct xsp_top_page *p, const void *row, char out[CELL])
{
	if (seconds(p) > 0)
		show_count(out, name_rate(p, row));
	else
		snprintf(out, CELL, "-");
}

static void name_share_cell(const struct xsp_top_page *p, const void *row, char out[CELL])
{
	const struct xsp_live_name *n = row;

	show_share(out, name_share(p, row),
		   seconds(p) > 0 && (n->all.measured > 0 || n->calls == 0));
}

static void name_cell(const struct xsp_top_page *p, const void *row, char out[CELL])
{
	const struct xsp_live_name *n = row;

	snprintf(out, CELL, "%s", xsp_timeline_name(p->timeline, n->all.name));
}

/* The columns of the summary. */
#define COUNT_COLUMN(column, member)                                                               \
	static double column##_value(const struct xsp_top_page *p, const void *row)                \
	{                                                                                          \
		(void)p;                                                                           \
		return (double)((const struct xsp_live_name *)row)->member;                        \
	}                                                                                          \
	static void column##_cell(const struct xsp_top_page *p, const void *row, char out[CELL])   \
	{                                                                                          \
		(void)p;                                                                           \
		xsp_format_count(out, ((const struct xsp_live_name *)row)->member);                \
	}
COUNT_COLUMN(calls, all.calls)
COUNT_COLUMN(open, open)
#undef COUNT_COLUMN

#define TIME_COLUMN(column, known)                                                                 \
	static double column##_value(const struct xsp_top_page *p, const void *row)                \
	{                                                                                          \
		(void)p;                                                                           \
		return (double)((const struct xsp_live_name *)row)->all.column##_ns;               \
	}                                                                                          \
	static void column##_cell(const struct xsp_top_page *p, const void *row, char out[CELL])   \
	{                                                                                          \
		const struct xsp_live_name *n = row;                                               \
		(void)p;                                                                           \
		if (n->all.known > 0)                                                              \
			xsp_format_ns(out, n->all.column##_ns);                                    \
		else                                                                               \
			snprintf(out, CELL, "-");                                                  \
	}
TIME_COLUMN(total, outermost)
TIME_COLUMN(self, measured)
TIME_COLUMN(mean, measured)
TIME_COLUMN(p50, measured)
TIME_COLUMN(p99, measured)
TIME_COLUMN(max, measured)
#undef TIME_COLUMN

static const struct column name_columns[] = {
	{"name", 4, true, true, name_cell, NULL},
	{"calls/s", 9, false, true, name_rate_cell, name_rate},
	{"self%", 6, false, true, name_share_cell, name_share},
	{"calls", 9, false, false, calls_cell, calls_value},
	{"total", 7, false, false, total_cell, total_value},
	{"self", 7, false, false, self_cell, self_value},
	{"mean", 7, false, false, mean_cell, mean_value},
	{"open", 4, false, false, open_cell, open_value},
	{"p50", 7, false, false, p50_cell, p50_value},
	{"p99", 7, false, false, p99_cell, p99_value},
	{"max", 7, false, false, max_cell, max_value},
};

static double share_of(const struct xsp_live_thread *t, uint64_t ns)
{
	return t->interval_ns > 0 ? (double)ns / (double)t->interval_ns : 0;
}

static uint64_t blocked_ns(const struct xsp_live_thread *t)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < XSP_WAIT_CLASSES; i++)
		sum += i != XSP_WAIT_RUNNABLE ? t->blocked_ns[i] : 0;
	return sum;
}

static void thread_cell(const struct xsp_top_page *p, const void *row, char out[CELL])
{
	const struct xsp_live_thread *t = row;

	(void)p;
	snprintf(out, CELL, "%s (%u)", t->comm, t->ns_tid);
}

static void now_cell(const struct xsp_top_page *p, const void *row, char out[CELL])
{
	const struct xsp_live_thread *t = row;

	(void)p;
	if (t->now == XSP_NOW_UNKNOWN)
		snprintf(out, CELL, "-");
	else if (t->now == XSP_NOW_RUNS)
		snprintf(out, CELL, "running");
	else if (t->now == XSP_NOW_WAITS + XSP_WAIT_RUNNABLE)
		snprintf(out, CELL, "runnable");
	else
		snprintf(out, CELL, "%s", xsp_wait_class_name(t->now - XSP_NOW_WAITS));
}

#define SHARE_COLUMN(column, ns)                                                                   \
	static double column##_value(const struct xsp_top_page *p, const void *row)                \
	{                                                                                          \
		const struct xsp_live_thread *t = row;                                             \
		(void)p;                                                                           \
		return share_of(t, ns);                                                            \
	}                                                                                          \
	static void column##_cell(const struct xsp_top_page *p, const void *row, char out[CELL])   \
	{                                                                                          \
		const struct xsp_live_thread *t = row;                                             \
		show_share(out, column##_value(p, row), t->times_known && t->interval_ns > 0);     \
	}
SHARE_COLUMN(cpu, t->running_ns)
SHARE_COLUMN(runnable, t->runnable_ns)
SHARE_COLUMN(blocked, blocked_ns(t))
#undef SHARE_COLUMN

static double spans_value(const struct xsp_top_page *p, const void *row)
{
	return seconds(p) > 0 ? (double)((const struct xsp_live_thread *)row)->spans / seconds(p)
			      : 0;
}

static void spans_cell(const struct xsp_top_page *p, const void *row, char out[CELL])
{
	if (seconds(p) > 0)
		show_count(out, spans_value(p, row));
	else
		snprintf(out, CELL, "-");
}

/* "lock 81%, poll 12%": the longest first. */
static void reasons_cell(const struct xsp_top_page *p, const void *row, char out[CELL])
{
	const struct xsp_live_thread *t = row;
	bool printed[XSP_WAIT_CLASSES] = {[XSP_WAIT_RUNNABLE] = true};
	int at = 0;

	(void)p;
	snprintf(out, CELL, "-");
	for (unsigned n = 0; n < 3 && at < CELL; n++) {
		unsigned best = XSP_WAIT_RUNNABLE;
		for (unsigned i = 0; i < XSP_WAIT_CLASSES; i++)
			if (!printed[i] &&
			    (printed[best] || t->blocked_ns[i] > t->blocked_ns[best]))
				best = i;
		if (printed[best] || share_of(t, t->blocked_ns[best]) < 0.005)
			return;
		printed[best] = true;
		at += snprintf(out + at, (size_t)(CELL - at), "%s%s %.0f%%", at > 0 ? ", " : "",
			       xsp_wait_class_name(best), 100 * share_of(t, t->blocked_ns[best]));
	}
}

static void inside_cell(const struct xsp_top_page *p, const void *row, char out[CELL])
{
	const struct xsp_live_thread *t = row;

	snprintf(out, CELL, "%s", t->has_open ? xsp_timeline_name(p->timeline, t->open) : "-");
}

/* Where it was seen last. */
static void at_cell(const struct xsp_top_page *p, const void *row, char out[CELL])
{
	const struct xsp_live_thread *t = row;
	const char *place = p->place != NULL ? p->place(p->place_ctx, t->tid) : NULL;

	if (place == NULL && t->place != 0) /* it ran: only samples show functions then */
		place = xsp_timeline_name(p->timeline, t->place - 1);
	snprintf(out, CELL, "%s", place != NULL ? place : "-");
}

static const struct column thread_columns[] = {
	{"thread", 6, true, true, thread_cell, NULL},
	{"now", 8, true, true, now_cell, NULL},
	{"cpu%", 5, false, true, cpu_cell, cpu_value},
	{"at", TAIL_LEAST, true, false, at_cell, NULL},
	{"runnable%", 9, false, false, runnable_cell, runnable_value},
	{"blocked%", 8, false, false, blocked_cell, blocked_value},
	{"blocked in", TAIL_LEAST, true, false, reasons_cell, NULL},
	{"spans/s", 9, false, false, spans_cell, spans_value},
	{"inside", TAIL_LEAST, true, false, inside_cell, NULL},
};

/* ---- tables ---- */

static const struct table {
	const struct column *columns;
	unsigned count;
	unsigned by; /* the column that orders equal rows */
} tables[XSP_TOP_TABLES] = {
	[XSP_TOP_NAMES] = {name_columns, sizeof(name_columns) / sizeof(name_columns[0]), 5},
	[XSP_TOP_THREADS] = {thread_columns, sizeof(thread_columns) / sizeof(thread_columns[0]), 5},
};

unsigned xsp_top_columns(enum xsp_top_table which)
{
	return tables[which].count;
}

const char *xsp_top_title(enum xsp_top_table which, unsigned column)
{
	return tables[which].columns[column].title;
}

bool xsp_top_column(const char *title, enum xsp_top_table *which, unsigned *column)
{
	for (unsigned w = 0; w < XSP_TOP_TABLES; w++)
		for (unsigned i = 0; i < tables[w].count; i++)
			if (strcmp(tables[w].columns[i].title, title) == 0) {
				*which = w;
				*column = i;
				return true;
			}
	return false;
}

/* Pointers to the rows, in their order. */
struct order {
	const struct xsp_top_page *p;
	enum xsp_top_table which;
};

static int by_column(const struct order *o, unsigned column, const void *x, const void *y)
{
	const struct column *c = &tables[o->which].columns[column];
	char a[CELL], b[CELL];

	if (c->value != NULL) {
		const double p = c->value(o->p, x), q = c->value(o->p, y);
		return p > q ? -1 : p < q;
	}
	c->cell(o->p, x, a);
	c->cell(o->p, y, b);
	return strcmp(a, b);
}

static int compare(const void *a, const void *b, void *ctx)
{
	const void *x = *(const void *const *)a, *y = *(const void *const *)b;
	const struct order *o = ctx;
	int rc = by_column(o, o->p->sort[o->which], x, y);

	if (rc == 0)
		rc = by_column(o, tables[o->which].by, x, y);
	return rc != 0 ? rc : by_column(o, 0, x, y);
}

/* A filter without wildcards matches anywhere in the text. */
static bool is_visible(const struct xsp_top_page *p, const char *text)
{
	if (p->filter[0] == '\0')
		return true;
	return strpbrk(p->filter, "*?[") != NULL ? xsp_glob_match(p->filter, text)
						 : strstr(text, p->filter) != NULL;
}

static const void **find_rows(const struct xsp_top_page *p, enum xsp_top_table which, size_t *count)
{
	struct xsp_live_name *names;
	struct xsp_live_thread *threads;
	const size_t all = which == XSP_TOP_NAMES ? xsp_live_names(p->live, &names)
						  : xsp_live_threads(p->live, &threads);
	const void **rows = calloc(all + 1, sizeof(*rows));

	*count = 0;
	for (size_t i = 0; rows != NULL && i < all; i++)
		if (which == XSP_TOP_THREADS && is_visible(p, threads[i].comm))
			rows[(*count)++] = &threads[i];
		else if (which == XSP_TOP_NAMES &&
			 is_visible(p, xsp_timeline_name(p->timeline, names[i].all.name)))
			rows[(*count)++] = &names[i];
	struct order order = {p, which};
	if (rows != NULL && *count > 1)
		qsort_r(rows, *count, sizeof(*rows), compare, &order);
	return rows;
}

#define COLUMNS_MAX 16
_Static_assert(sizeof(name_columns) / sizeof(name_columns[0]) <= COLUMNS_MAX, "room for all");
_Static_assert(sizeof(thread_columns) / sizeof(thread_columns[0]) <= COLUMNS_MAX, "room for all");

struct layout {
	unsigned width[COLUMNS_MAX]; /* 0: not shown */
};

/* A probe that the brake has released sees nothing more: 0 calls a second would be wrong. */
static bool is_let_go(const struct xsp_top_page *p, const char *name)
{
	const struct xsp_capture_let_go *let_gos;
	const struct xsp_capture_probe *probes;
	const size_t count = xsp_capture_let_gos(p->capture, &let_gos);

	xsp_capture_probes(p->capture, &probes);
	for (size_t i = 0; i < count; i++)
		if (strcmp(probes[let_gos[i].probe].name, name) == 0)
			return true;
	return false;
}

/* Names may be longer than a cell. */
static char *cell_text(const struct xsp_top_page *p, const struct column *c, const void *row)
{
	char cell[CELL];
	const char *text = cell, *behind = "";

	if (c->cell == name_cell) {
		const struct xsp_live_name *n = row;
		text = xsp_timeline_name(p->timeline, n->all.name);
		behind = is_let_go(p, text) ? " (released)" : n->all.mostly_probes ? " *" : "";
	} else {
		c->cell(p, row, cell);
	}
	const size_t size = strlen(text) + 16;
	char *printable = malloc(size);
	if (printable != NULL) {
		xsp_printable(printable, size - 12, text, 0);
		xsp_join(printable, size, "", "%s", behind);
	}
	return printable;
}

static unsigned columns_of(const char *text)
{
	return (unsigned)xsp_printable(NULL, 0, text, 0);
}

static int measure(const struct xsp_top_page *p, enum xsp_top_table which, const void **rows,
		   size_t count, struct layout *l)
{
	const struct table *t = &tables[which];

	for (unsigned c = 0; c < t->count; c++) {
		const unsigned title = columns_of(t->columns[c].title) + (c == p->sort[which]);
		l->width[c] = title > t->columns[c].least ? title : t->columns[c].least;
		for (size_t i = 0; i < count; i++) {
			char *text = cell_text(p, &t->columns[c], rows[i]);
			if (text == NULL)
				return -ENOMEM;
			const unsigned width = columns_of(text);
			free(text);
			l->width[c] = width > l->width[c] ? width : l->width[c];
		}
	}
	return 0;
}

/* Drops the columns that do not fit; the first column takes the room that is left. */
static void fit(const struct xsp_top_page *p, enum xsp_top_table which, struct layout *l)
{
	const struct table *t = &tables[which];
	const unsigned most = which == XSP_TOP_THREADS ? THREAD_NAME
			      : p->width == 0	       ? NAME_MAX_ALIGNED
						       : UINT32_MAX;
	unsigned used = 0, name = l->width[0] < NAME_LEAST ? l->width[0] : NAME_LEAST;

	l->width[0] = l->width[0] < most ? l->width[0] : most;
	if (p->width == 0)
		return;
	for (unsigned c = 1; c < t->count; c++) {
		const unsigned left = p->width > name + used + 2 ? p->width - name - used - 2 : 0;
		const bool is_text = t->columns[c].left && !t->columns[c].alone;
		const unsigned least = is_text ? t->columns[c].least : l->width[c];
		if (!t->columns[c].alone && left < least && p->sort[which] != c)
			l->width[c] = 0;
		else if (is_text && l->width[c] > left)
			l->width[c] = left;
		used += l->width[c] > 0 ? l->width[c] + 2 : 0;
	}
	const unsigned left = p->width > used ? p->width - used : 0;
	if (l->width[0] > left)
		l->width[0] = left > 8 ? left : 8;
}

static void put_cell(struct xsp_top_page *p, enum style style, const struct column *c,
		     unsigned width, unsigned index, const char *text)
{
	const size_t size = strlen(text) + 8;
	char *printable = malloc(size);

	if (printable == NULL)
		return; /* the line has no room for it */
	const unsigned columns =
		(unsigned)xsp_printable(printable, size, text, p->width > 0 ? width : 0);
	const int blanks = (int)(width > columns ? width - columns : 0);
	put_format(p, style, "%*s", index > 0 ? 2 + (c->left ? 0 : blanks) : 0, "");
	put(p, style, printable);
	put_format(p, style, "%*s", c->left ? blanks : 0, "");
	free(printable);
}

/* The sort column gets a mark. */
static void put_titles(struct xsp_top_page *p, enum xsp_top_table which, const struct layout *l)
{
	const struct table *t = &tables[which];

	for (unsigned c = 0; c < t->count; c++) {
		char title[32];
		snprintf(title, sizeof(title), "%s%s", c == p->sort[which] ? ">" : "",
			 t->columns[c].title);
		if (l->width[c] > 0)
			put_cell(p, TITLE, &t->columns[c], l->width[c], c, title);
	}
	if (p->width > p->column)
		put_format(p, TITLE, "%*s", (int)(p->width - p->column), "");
	end_line(p);
}

static int put_row(struct xsp_top_page *p, enum xsp_top_table which, const struct layout *l,
		   const void *row)
{
	const struct table *t = &tables[which];

	for (unsigned c = 0; c < t->count; c++) {
		char *text = l->width[c] > 0 ? cell_text(p, &t->columns[c], row) : NULL;
		if (l->width[c] > 0 && text == NULL)
			return -ENOMEM;
		if (text != NULL)
			put_cell(p, PLAIN, &t->columns[c], l->width[c], c, text);
		free(text);
	}
	end_line(p);
	return 0;
}

long xsp_top_print_table(struct xsp_top_page *p, enum xsp_top_table which, size_t rows,
			 size_t skipped)
{
	struct layout layout = {.width = {0}};
	size_t count;
	const void **found = find_rows(p, which, &count);
	int rc = found == NULL ? -ENOMEM : 0;

	if (rc == 0 && skipped > count)
		skipped = count;
	size_t shown_count = rc == 0 ? count - skipped : 0;
	if (rows > 0 && shown_count > rows - 1)
		shown_count = rows - 1;
	if (rc == 0)
		rc = measure(p, which, found + skipped, shown_count, &layout);
	if (rc == 0) {
		fit(p, which, &layout);
		put_titles(p, which, &layout);
	}
	for (size_t i = 0; rc == 0 && i < shown_count; i++)
		rc = put_row(p, which, &layout, found[skipped + i]);
	free(found);
	return rc < 0 ? rc : (long)count;
}

void xsp_top_print_help(struct xsp_top_page *p)
{
	static const char *const lines[] = {
		"Names, of the last interval:",
		"  calls/s  calls that ended",
		"  self%    their time without that of calls inside, in shares of a core",
		"and since the beginning, as the summary of a recording has them:",
		"  calls, total, self, mean, p50, p99, max",
		"  open     have begun and not ended",
		"  *        most of its time is that of probes inside",
		"  (released) its probe cost too much: --max-overhead",
		"Threads: running, runnable (it lacks a processor), or what they wait for;",
		"  shares of the last interval; at which line of Python or function; blocked in",
		"  what; the innermost open name",
		"First line: CPU time of the process; events; those that were lost; what probes",
		"  cost it: of a core, and of the thread that is slowed most",
		"",
		"  q  quit                        t     names or threads",
		"  s, right, left  sort by        f, /  only what matches: a glob, or a part",
		"  down, up, page down, page up   p     stop showing, go on",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		xsp_top_print_line(p, lines[i]);
}
