/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * brief.c - a report as one screen: who was recorded, what to do about it, where the time went, what was lost, and what to do
 * next. It reads the sections that the full text writes; without an account their first tables take its place.
 */
#include "report/report_private.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/rows/order.h"
#include "base/text.h"
#include "base/units.h"

#define LINES 23 /* the prompt has the last one */
#define FINDINGS 3
#define FINDING_INDENT 11
#define TITLE_LINES 2
#define ADVICE_LINES 5U /* less one for each finding */
#define LABEL_LEAST 24
#define BAR 14
#define WIDTH 80
#define WIDTH_MOST 132
/* A row's columns: the label has what the others leave. */
#define INDENT 4
#define FIGURE 10
#define SHARE 6
#define AROUND (INDENT + FIGURE + SHARE + 2 + BAR)
#define SMALL 0.01 /* a smaller place is one of the others */

struct brief {
	FILE *f;
	size_t width, lines;
	size_t below; /* lines that follow the tables */
	bool color;
	const struct xsp_report_how *how;
	const struct xsp_report *report;
	const struct xsp_report_section *account, *accounts; /* of one capture; of two sides */
};

/* The beginning of a text of a terminal, with "..." where more follows. */
static void elide_end(char *out, size_t size, const char *text, size_t columns)
{
	size_t n = strlen(text);

	snprintf(out, size, "%s", text);
	if (n <= columns || columns < 4 || n >= size)
		return;
	n = columns - 3;
	while (n > 0 && ((unsigned char)out[n] & 0xc0) == 0x80)
		n--;
	snprintf(out + n, size - n, "...");
}

/* A line, elided to the width. */
static void line(struct brief *b, const char *indent, const char *text)
{
	char out[1024];

	xsp_printable(out, sizeof(out), text, b->width - strlen(indent));
	fprintf(b->f, "%s%s\n", out[0] != '\0' ? indent : "", out);
	b->lines++;
}

/* ---- who ---- */

/* Of the section about the recording, which comes first; NULL: it does not say. */
static const char *recorded_value(const struct brief *b, const char *key)
{
	return xsp_text(b->report->section_count > 0 ? b->report->sections[0] : NULL, key);
}

/* How much of a text has room in a line: up to its last blank there. */
static size_t words_of(const char *text, size_t room)
{
	size_t end = 0;

	if (xsp_printable(NULL, 0, text, 0) <= room)
		return strlen(text);
	for (size_t i = 0; text[i] != '\0' && i <= room; i++)
		end = text[i] == ' ' ? i : end;
	return end != 0 ? end : strlen(text);
}

/* Words from column `indent` on, in at most so many lines; what has no room is elided. */
static void put_words(struct brief *b, const char *text, size_t indent, unsigned lines)
{
	const size_t room = b->width - indent;
	char all[XSP_REPORT_TEXT], rest[XSP_REPORT_TEXT];
	const char *at = all;

	xsp_printable(all, sizeof(all), text, 0);
	for (size_t n; lines > 1 && (n = words_of(at, room)) < strlen(at); lines--) {
		fprintf(b->f, "%.*s\n%*s", (int)n, at, (int)indent, "");
		at += n + 1;
		b->lines++;
	}
	elide_end(rest, sizeof(rest), at, room);
	fprintf(b->f, "%s\n", rest);
	b->lines++;
}

/* The step that a trigger was about is the slowest one: what it has that others have not. */
static void put_slowest_step(struct brief *b)
{
	const struct xsp_report_section *s = xsp_report_find_section(b->report, "steps");
	const struct xsp_report_table *t = xsp_report_find_table(s, "slowest");
	char text[400], time[XSP_UNITS_SIZE];

	if (t == NULL || t->row_count == 0)
		return;
	const char *longer = xsp_row_text(t, 0, "longer");
	snprintf(text, sizeof(text), "the slowest step, %s: %.300s; it alone: --from step:%.0f",
		 xsp_format_ns(time, (uint64_t)xsp_row_number(t, 0, "time_ns")),
		 longer != NULL ? longer : "", xsp_row_number(t, 0, "step"));
	put_words(b, text, 0, TITLE_LINES);
}

/* Why it was written, if it is a snapshot. */
static void end_head(struct brief *b)
{
	const char *why = recorded_value(b, "snapshot");
	char text[600];

	if (why != NULL) {
		snprintf(text, sizeof(text), "snapshot: %s", why);
		put_words(b, text, 0, TITLE_LINES);
	}
	if (b->how->moment != NULL) {
		snprintf(text, sizeof(text), "%s: %s",
			 strncmp(why != NULL ? why : "", "sig", 3) == 0 ? "at the end in"
									: "in that time",
			 b->how->moment);
		put_words(b, text, 0, TITLE_LINES);
	}
	if (why != NULL && strncmp(why, "step", 4) == 0)
		put_slowest_step(b);
	line(b, "", "");
}

/* Of a schedule only the windows: " in 5 windows of 4.1 min" follows. */
#define WINDOWS_SIZE 64
static void put_recorded_time(const struct brief *b, char time[XSP_UNITS_SIZE],
			      char windows[WINDOWS_SIZE])
{
	const struct xsp_report_section *s = xsp_report_find_section(b->report, "recording");
	const uint64_t all = (uint64_t)xsp_number(b->account, "duration_ns");
	char of[XSP_UNITS_SIZE];

	windows[0] = '\0';
	xsp_format_ns(time, all);
	if (xsp_text(s, "schedule") == NULL)
		return;
	xsp_format_ns(time, (uint64_t)xsp_number(s, "recorded_ns"));
	snprintf(windows, WINDOWS_SIZE, " in %.0f windows of %s", xsp_number(s, "windows"),
		 xsp_format_ns(of, all));
}

static void put_head(struct brief *b)
{
	const struct xsp_report_section *a = b->account;
	const char *who = xsp_text(a, "who");
	const double steps = xsp_number(a, "steps"), members = xsp_number(a, "members");
	const double cpu = 100 * xsp_number(a, "cpu_share"),
		     ready = 100 * xsp_number(a, "ready_share");
	char text[1200], rest[160], time[XSP_UNITS_SIZE], windows[WINDOWS_SIZE], name[400];
	const double busy = xsp_number(a, "busy_threads"), threads = xsp_number(a, "threads");

	put_recorded_time(b, time, windows);
	snprintf(rest, sizeof(rest), "  %s%s, %.0f busy thread%s of %.0f", time, windows, busy,
		 busy == 1 ? "" : "s", threads);
	xsp_printable(name, sizeof(name), who != NULL ? who : "", b->width - strlen(rest));
	snprintf(text, sizeof(text), "%s%s", name, rest);
	line(b, "", text);
	if (xsp_number(a, "off_share") > 0)
		snprintf(text, sizeof(text), "on CPU %.0f %%, by samples alone", cpu);
	else
		snprintf(text, sizeof(text), "on CPU %.0f %%, ready %.0f %%, waiting %.0f %%", cpu,
			 ready, fmax(0, 100 - cpu - ready));
	if (members > 1)
		xsp_join(text, sizeof(text), "; ", "mean of %.0f threads", members);
	if (steps > 0) {
		xsp_format_ns(time, (uint64_t)(xsp_number(a, "ns") / steps));
		xsp_join(text, sizeof(text), "; ", "%.0f steps of %s", steps, time);
	}
	line(b, "", text);
	end_head(b);
}

/* ---- findings ---- */

static void put_finding(struct brief *b, size_t index, unsigned advice_lines)
{
	const struct xsp_report_finding *f = &b->report->findings[index].finding;
	const struct xsp_severity_look *look = &xsp_severity_looks[f->severity];
	char text[XSP_REPORT_TEXT];

	fprintf(b->f, "%s %zu  %-7s%s", b->color ? look->color : "", index + 1, look->name,
		b->color ? "\033[0m" : "");
	put_words(b, f->title, FINDING_INDENT, TITLE_LINES);
	if (f->advice == NULL || f->advice[0] == '\0')
		return;
	snprintf(text, sizeof(text), "do: %s", f->advice);
	fprintf(b->f, "%*s", FINDING_INDENT, "");
	put_words(b, text, FINDING_INDENT, advice_lines);
}

/* How many would save much: they come first. */
static size_t grave_findings(const struct xsp_report *r)
{
	size_t n = 0;

	while (n < r->finding_count && r->findings[n].finding.severity > XSP_SEVERITY_LOW)
		n++;
	return n;
}

static size_t put_findings(struct brief *b)
{
	const size_t grave = grave_findings(b->report);
	const size_t count = grave < FINDINGS ? grave : FINDINGS;
	size_t i = 0;

	/* what to do about one alone is said whole */
	for (; i < count && b->lines < LINES / 2; i++)
		put_finding(b, i, ADVICE_LINES - (unsigned)count);
	if (i > 0)
		line(b, "", "");
	return i;
}

/* ---- the account ---- */

/* Figures in one unit, so that they can be compared at a glance. */
struct scale {
	double by;
	const char *unit;
};
static struct scale scale_of(double ns)
{
	return ns >= 10e9   ? (struct scale){1e-9, "s"}
	       : ns >= 10e6 ? (struct scale){1e-6, "ms"}
	       : ns >= 10e3 ? (struct scale){1e-3, "us"}
			    : (struct scale){1, "ns"};
}

static void put_row(struct brief *b, const char *label, double ns, double share, struct scale scale)
{
	const size_t room = b->width - AROUND;
	const double shown = ns * scale.by;
	char text[XSP_REPORT_TEXT];
	int bar = (int)lround(share * BAR);

	bar = bar > BAR ? BAR : bar < 0 ? 0 : bar;
	xsp_printable(text, sizeof(text), label, room);
	fprintf(b->f, "%*s%s%*s%*.*f%*.0f  %.*s\n", INDENT, "", text,
		(int)(room - xsp_printable(NULL, 0, text, 0)), "", FIGURE, shown < 10 ? 2 : 1,
		shown, SHARE, 100 * share, bar, "##############");
	b->lines++;
}

/* Where a place and what it waits for have no room in one line, the latter has its own; NULL: they have. */
static const char *second_line(const struct brief *b, const char *label)
{
	const char *more = strstr(label, "  waits: ");

	return more != NULL && more != label && xsp_printable(NULL, 0, label, 0) > b->width - AROUND
		       ? more
		       : NULL;
}

/* A line below a place, without figures. */
static void put_below(struct brief *b, const char *before, const char *text)
{
	char said[XSP_REPORT_TEXT], whole[XSP_REPORT_TEXT], out[XSP_REPORT_TEXT];

	snprintf(said, sizeof(said), "%s%s", before, text);
	xsp_printable(whole, sizeof(whole), said, 0);
	elide_end(out, sizeof(out), whole, b->width - INDENT);
	fprintf(b->f, "%*s%s\n", INDENT, "", out);
	b->lines++;
}

static void put_place(struct brief *b, const char *label, double ns, double share,
		      struct scale scale)
{
	const char *more = second_line(b, label);
	char text[XSP_REPORT_TEXT];

	if (more != NULL)
		snprintf(text, sizeof(text), "%.*s", (int)(more - label), label);
	put_row(b, more != NULL ? text : label, ns, share, scale);
	if (more != NULL)
		put_below(b, "", more);
}

static XSP_ORDER(largest_first, double, XSP_COMPARE(*y, *x));

/* Of the smallest row that has room. */
static double least_share(const struct xsp_report_table *t, size_t room)
{
	double largest[LINES];
	size_t count = 0;

	for (size_t i = 0; i < t->row_count; i++) {
		const double one = xsp_row_number(t, i, "share");
		XSP_RANK(largest, &count, room, &one, largest_first);
	}
	return count == room ? fmax(largest[room - 1], SMALL) : SMALL;
}

#define CALLED_LEAST 0.15
#define CALLED_MOST 2U

/* What stands below a place: who calls it, or what the coroutines of an event loop wait for. NULL: nothing. */
static const char *below_place(const struct xsp_report_table *t, size_t row, const char **before)
{
	const char *awaits = xsp_row_text(t, row, "awaits");

	*before = awaits != NULL ? "  awaits " : "  from ";
	return awaits != NULL ? awaits : xsp_row_text(t, row, "from");
}

/* Of the largest places it has a line each. */
static size_t called_lines(const struct xsp_report_table *t, size_t room)
{
	const size_t most = room / 4 < CALLED_MOST ? room / 4 : CALLED_MOST;
	const char *before;
	size_t n = 0;

	for (size_t i = 0; i < t->row_count && n < most; i++)
		n += below_place(t, i, &before) != NULL &&
		     xsp_row_number(t, i, "share") >= CALLED_LEAST;
	return n;
}

static void put_account(struct brief *b)
{
	const struct xsp_report_table *t = xsp_report_find_table(b->account, "places");
	const double steps = xsp_number(b->account, "steps"),
		     members = xsp_number(b->account, "members");
	const double whole = xsp_number(b->account, "ns") / fmax(1, steps > 0 ? steps : members);
	const struct scale scale = scale_of(whole);
	char text[200], time[XSP_UNITS_SIZE];
	size_t others = 0, shown = 0;
	double other_ns = 0, other_share = 0;

	if (t == NULL)
		return;
	/* a title, the others and a blank line are there, too */
	const size_t all = LINES > b->lines + b->below + 3 ? LINES - b->lines - b->below - 3 : 1;
	size_t called = called_lines(t, all);
	const size_t room = all - called;
	snprintf(text, sizeof(text), "%s of %s", steps > 0 ? "one step" : "the time",
		 xsp_format_ns(time, (uint64_t)whole));
	fprintf(b->f, "%s%*s%-*s%*s%*s%s\n", b->color ? "\033[1m" : "", INDENT, "",
		(int)(b->width - AROUND), text, FIGURE, scale.unit, SHARE, "%",
		b->color ? "\033[0m" : "");
	b->lines++;
	const double least = least_share(t, room);
	for (size_t i = 0; i < t->row_count; i++) {
		const double ns = xsp_row_number(t, i, "each_ns"),
			     share = xsp_row_number(t, i, "share");
		const char *what = xsp_row_text(t, i, "what");
		const size_t lines = second_line(b, what) != NULL ? 2 : 1;
		if (shown + lines <= room && share >= least) {
			put_place(b, what, ns, share, scale);
			shown += lines;
			const char *before, *below = below_place(t, i, &before);
			if (below != NULL && called > 0 && called-- > 0)
				put_below(b, before, below);
		} else if (xsp_row_text(t, i, "part") == NULL) {
			others++;
			other_ns += ns;
			other_share += share;
		}
	}
	snprintf(text, sizeof(text), "%zu other place%s", others, others == 1 ? "" : "s");
	if (others > 0)
		put_row(b, text, other_ns, other_share, scale);
	line(b, "", "");
}

/* ---- without an account ---- */

static void put_recorded(struct brief *b)
{
	const struct xsp_report_section *s = xsp_report_find_section(b->report, "recording");
	char text[200], time[XSP_UNITS_SIZE], spans[XSP_UNITS_SIZE];

	if (s == NULL)
		return;
	xsp_format_ns(time, (uint64_t)xsp_number(s, "recorded_ns"));
	xsp_format_count(spans, (uint64_t)xsp_number(s, "spans"));
	snprintf(text, sizeof(text), "%s recorded, %s spans in %.0f threads", time, spans,
		 xsp_number(s, "threads"));
	line(b, "", text);
	end_head(b);
}

/* The first table of each section, and fewer rows of each the more there are. */
static int put_tables(struct brief *b)
{
	const struct xsp_report *r = b->report;
	int rc = 0;

	for (size_t i = 0; i < r->section_count && rc == 0; i++) {
		const struct xsp_report_section *s = r->sections[i];
		const size_t used = b->lines + b->below + 4, left = LINES > used ? LINES - used : 0;
		if (s->table_count == 0 || left == 0 || strcmp(s->key, "rules") == 0)
			continue;
		const size_t all = s->tables[0]->row_count, rows = all < left ? all : left;
		rc = rows > 0 ? xsp_report_put_few(s->tables[0], rows, b->f, b->how) : 0;
		b->lines += rows > 0 ? rows + 3 + (all > rows) : 0;
	}
	return rc;
}

/* ---- two sides ---- */

#define TIMES 8 /* the column of a factor */

/* "A  before.xspt  3.4 s  python3 train.py" */
static void put_sides(struct brief *b)
{
	const struct xsp_report_section *s = xsp_report_find_section(b->report, "compared");
	const struct xsp_report_table *t = xsp_report_find_table(s, "captures");

	for (size_t i = 0; t != NULL && i < t->row_count && i < LINES / 4; i++) {
		const char *command = xsp_row_text(t, i, "command");
		const double steps = xsp_row_number(t, i, "steps");
		char text[1200], time[XSP_UNITS_SIZE], of_steps[40] = "";
		xsp_format_ns(time, (uint64_t)xsp_row_number(t, i, "recorded"));
		if (steps > 0)
			snprintf(of_steps, sizeof(of_steps), ", %.0f steps", steps);
		snprintf(text, sizeof(text), "%s  %s  %s%s  %s", xsp_row_text(t, i, "side"),
			 xsp_row_text(t, i, "capture"), time, of_steps,
			 command != NULL ? command : "");
		line(b, "", text);
	}
	line(b, "", "");
}

static void put_both(struct brief *b, const char *label, const double ns[2], double ratio,
		     struct scale scale)
{
	const size_t room = b->width - INDENT - 3 * FIGURE - TIMES;
	char text[XSP_REPORT_TEXT], times[32] = "", sides[2][32] = {"-", "-"};

	xsp_printable(text, sizeof(text), label, room);
	for (size_t i = 0; i < 2; i++)
		if (ns[i] > 0)
			snprintf(sides[i], sizeof(sides[i]), "%.2f", ns[i] * scale.by);
	if (ratio > 0 && ratio < 1e4)
		snprintf(times, sizeof(times), ratio < 10 ? "%.2fx" : "%.0fx", ratio);
	fprintf(b->f, "%*s%s%*s%*s%*s%+*.2f%*s\n", INDENT, "", text,
		(int)(room - xsp_printable(NULL, 0, text, 0)), "", FIGURE, sides[0], FIGURE,
		sides[1], FIGURE, (ns[1] - ns[0]) * scale.by, TIMES, times);
	b->lines++;
}

static void put_accounts(struct brief *b)
{
	const struct xsp_report_table *t = xsp_report_find_table(b->accounts, "places");
	const char *unit = xsp_text(b->accounts, "unit");
	const double whole[2] = {xsp_number(b->accounts, "a_ns"), xsp_number(b->accounts, "b_ns")};
	const struct scale scale = scale_of(fmax(whole[0], whole[1]));
	const size_t room = LINES > b->lines + b->below + 4 ? LINES - b->lines - b->below - 4 : 1;
	double others[2] = {0, 0};
	char text[80];

	if (t == NULL || unit == NULL)
		return;
	snprintf(text, sizeof(text), "%s, %s", unit, scale.unit);
	fprintf(b->f, "%s%*s%-*s%*s%*s%*s%*s%s\n", b->color ? "\033[1m" : "", INDENT, "",
		(int)(b->width - INDENT - 3 * FIGURE - TIMES), text, FIGURE, "A", FIGURE, "B",
		FIGURE, "change", TIMES, "B/A", b->color ? "\033[0m" : "");
	for (size_t i = 0; i < t->row_count; i++) {
		const double ns[2] = {xsp_row_number(t, i, "a_ns"), xsp_row_number(t, i, "b_ns")};
		if (i < room)
			put_both(b, xsp_row_text(t, i, "name"), ns, xsp_row_number(t, i, "ratio"),
				 scale);
		others[0] += i < room ? 0 : ns[0];
		others[1] += i < room ? 0 : ns[1];
	}
	snprintf(text, sizeof(text), "%zu other places", t->row_count - room);
	if (t->row_count > room)
		put_both(b, text, others, 0, scale);
	put_both(b, "all", whole, whole[0] > 0 ? whole[1] / whole[0] : 0, scale);
	line(b, "", "");
}

/* ---- what to do next ---- */

#define FILES_INDENT 7 /* "files: " */

static size_t words_lines(const struct brief *b, const char *text, size_t indent)
{
	return text == NULL ? 0 : 1U + (strlen(text) > b->width - 2 * indent);
}

static size_t caveat_lines(const struct brief *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->report->section_count; i++)
		n += words_lines(b, b->report->sections[i]->caveat, 0);
	return n;
}

static void put_caveats(struct brief *b)
{
	for (size_t i = 0; i < b->report->section_count; i++)
		if (b->report->sections[i]->caveat != NULL)
			put_words(b, b->report->sections[i]->caveat, 0, TITLE_LINES);
}

static void put_end(struct brief *b, const char *health, bool more)
{
	char text[1200];

	put_caveats(b);
	if (health != NULL)
		put_words(b, health, 0, TITLE_LINES);
	if (b->how->files != NULL) {
		snprintf(text, sizeof(text), "files: %s", b->how->files);
		put_words(b, text, FILES_INDENT, TITLE_LINES);
	}
	/* a command is there to be copied: it is never elided */
	if (b->how->next != NULL)
		fprintf(b->f, "more:  %s\n", b->how->next);
	else
		line(b, "",
		     more ? "more findings, and all figures: --full" : "all figures: --full");
}

int xsp_report_write_brief(const struct xsp_report *r, FILE *f, const struct xsp_report_how *how)
{
	struct brief b = {.f = f,
			  .width = how->width <= 0	     ? WIDTH
				   : how->width < WIDTH_MOST ? (size_t)how->width
							     : WIDTH_MOST,
			  .color = how->color,
			  .how = how,
			  .report = r,
			  .account = xsp_report_find_section(r, "account"),
			  .accounts = xsp_report_find_section(r, "accounts")};
	const char *health = recorded_value(&b, "health");
	int rc = 0;

	/* a program that reads the tables of a capture without waits or samples gets all of them */
	if (b.account == NULL && b.accounts == NULL && how->width == 0 && how->files == NULL &&
	    xsp_report_find_section(r, "recording") != NULL)
		return xsp_report_write_text(r, f, how);
	if (b.width < LABEL_LEAST + AROUND)
		b.width = LABEL_LEAST + AROUND;
	b.below = 1 + caveat_lines(&b) + words_lines(&b, health, 0) +
		  words_lines(&b, how->files, FILES_INDENT);
	if (b.account != NULL)
		put_head(&b);
	else if (b.accounts != NULL)
		put_sides(&b);
	else
		put_recorded(&b);
	const size_t shown = put_findings(&b);
	if (b.account != NULL)
		put_account(&b);
	else if (b.accounts != NULL)
		put_accounts(&b);
	else
		rc = put_tables(&b);
	put_end(&b, health, xsp_report_true_findings(r) > shown);
	return rc < 0 || r->failed ? -ENOMEM : ferror(f) ? -EIO : 0;
}
