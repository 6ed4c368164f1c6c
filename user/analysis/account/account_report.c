/* SPDX-License-Identifier: BSD-2-Clause */
/* account_report.c - the account of the time (model/account/) as a section of the report: the shown family's rows, and a line
 * for each other one. */
#include "analysis/account/account_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "catalog/wait_reasons.h"
#include "model/run_stats.h"
#include "timeline/python.h"

#define OTHERS_SHOWN 8U

struct state {
	struct xsp_timeline *timeline;
	struct xsp_capture_reader *reader;
	struct xsp_account *account;
};

static int begin(struct xsp_timeline *t, struct xsp_capture_reader *r, void **out)
{
	struct state *s = calloc(1, sizeof(*s));
	int rc = s != NULL ? xsp_account_new(t, r, &s->account) : -ENOMEM;

	if (rc < 0 || s->account == NULL) {
		free(s);
		return rc;
	}
	s->timeline = t;
	s->reader = r;
	*out = s;
	return 0;
}

static struct xsp_timeline_sink sink(void *state)
{
	const struct state *s = state;

	return xsp_account_sink(s->account);
}

static void end(void *state)
{
	struct state *s = state;

	if (s != NULL)
		xsp_account_free(s->account);
	free(s);
}

const struct xsp_account *xsp_account_of(const void *state)
{
	return state != NULL ? ((const struct state *)state)->account : NULL;
}

/* ---- rows ---- */

/* What the columns' functions need beside the row. */
struct shown {
	const struct xsp_timeline *timeline;
	const struct xsp_account_family *family;
	const char *awaits; /* XSP_INFO_AWAITS of the family's process; NULL: none */
};

static const char *kind_name(enum xsp_account_kind kind)
{
	static const char *const names[XSP_ACCOUNT_KINDS] = {
		[XSP_ACCOUNT_WAIT] = "waiting",	 [XSP_ACCOUNT_SPAN] = "span",
		[XSP_ACCOUNT_CPU] = "on CPU",	 [XSP_ACCOUNT_READY] = "ready",
		[XSP_ACCOUNT_PROBES] = "probes", [XSP_ACCOUNT_OFF] = "off CPU"};

	return names[kind];
}

const char *xsp_account_reason(enum xsp_account_kind kind, unsigned why)
{
	if (why == XSP_ACCOUNT_SHORT)
		return "short waits";
	if (why == XSP_ACCOUNT_GIL)
		return "GIL";
	if (why == XSP_ACCOUNT_MUTEX || why == XSP_ACCOUNT_MONITOR)
		return "lock";
	if (why == XSP_ACCOUNT_SYNC)
		return "fsync";
	if (why == XSP_ACCOUNT_CLIENT)
		return "requests";
	if (why == XSP_WAIT_LOCK)
		return "condition";
	if (kind == XSP_ACCOUNT_CPU)
		return why == XSP_ACCOUNT_FAULT ? "page fault"
		       : why > XSP_ACCOUNT_DEAR ? xsp_dear_call_name(why - XSP_ACCOUNT_DEAR)
						: NULL;
	if (kind == XSP_ACCOUNT_READY)
		return why == XSP_WAIT_RUNNABLE ? "preempted" : xsp_wait_class_name(why);
	return kind == XSP_ACCOUNT_WAIT ? xsp_wait_class_name(why) : NULL;
}

static struct xsp_cell name_cell(const struct shown *of, uint32_t name)
{
	return xsp_cell_text(name != 0 ? xsp_timeline_name(of->timeline, name - 1) : NULL);
}

static struct xsp_cell peer_cell(struct xsp_report_at *at)
{
	const struct shown *of = at->of;
	const struct xsp_account_row *row = at->row;
	char peer[XSP_PEER_TEXT];
	const char *text = xsp_timeline_peer(of->timeline, row->peer, peer);

	snprintf(at->text, sizeof(at->text), "%s", text != NULL ? text : "");
	return xsp_cell_text(text != NULL ? at->text : NULL);
}

static struct xsp_cell per(const struct shown *of, double ns)
{
	const struct xsp_account_family *f = of->family;
	const double parts = (double)(f->steps > 0 ? f->steps : f->members > 0 ? f->members : 1);

	return xsp_cell_real(ns / parts);
}

static struct xsp_cell share_of(double part, uint64_t whole)
{
	return whole > 0 ? xsp_cell_real(part / (double)whole) : xsp_cell_absent();
}

XSP_REPORT_CELL(kind_cell, struct shown, struct xsp_account_row,
		xsp_cell_text(kind_name(row->kind)));
XSP_REPORT_CELL(place_cell, struct shown, struct xsp_account_row, name_cell(of, row->place));
XSP_REPORT_CELL(callee_cell, struct shown, struct xsp_account_row, name_cell(of, row->callee));
XSP_REPORT_CELL(reason_cell, struct shown, struct xsp_account_row,
		xsp_cell_text(xsp_account_reason(row->kind, row->why)));
XSP_REPORT_CELL(each_cell, struct shown, struct xsp_account_row, per(of, (double)row->ns));
XSP_REPORT_CELL(share_cell, struct shown, struct xsp_account_row,
		share_of((double)row->ns, of->family->ns));
XSP_REPORT_CELL(least_cell, struct shown, struct xsp_account_row,
		xsp_cell_if(of->family->members > 1 && row->most != 0, (uint64_t)row->least_ns));
XSP_REPORT_CELL(most_cell, struct shown, struct xsp_account_row,
		xsp_cell_if(of->family->members > 1 && row->most != 0, (uint64_t)row->most_ns));
XSP_REPORT_CELL(steps_cell, struct shown, struct xsp_account_row,
		xsp_cell_if(of->family->steps > 0 && row->steps > 0, row->steps));
XSP_REPORT_CELL(longest_cell, struct shown, struct xsp_account_row,
		xsp_cell_if(of->family->steps > 0 && row->steps > 0, row->longest_ns));

static const struct xsp_report_column columns[] = {
	{"kind", "kind", XSP_UNIT_TEXT, true, XSP_BY(kind_cell)},
	{"place", "place", XSP_UNIT_TEXT, true, XSP_BY(place_cell)},
	{"callee", "callee", XSP_UNIT_TEXT, true, XSP_BY(callee_cell)},
	{"reason", "reason", XSP_UNIT_TEXT, true, XSP_BY(reason_cell)},
	{"peer", "for", XSP_UNIT_TEXT, true, XSP_BY(peer_cell)},
	{"ns", "time", XSP_UNIT_NS, false, XSP_FIELD(struct xsp_account_row, ns)},
	{"each_ns", "each", XSP_UNIT_NS, false, XSP_BY(each_cell)},
	{"share", "share", XSP_UNIT_SHARE, false, XSP_BY(share_cell)},
	{"least_ns", "least", XSP_UNIT_NS, false, XSP_BY(least_cell)},
	{"most_ns", "most", XSP_UNIT_NS, false, XSP_BY(most_cell)},
	{"samples", "samples", XSP_UNIT_COUNT, false, XSP_FIELD(struct xsp_account_row, samples)},
	{"steps", "in steps", XSP_UNIT_COUNT, false, XSP_BY(steps_cell)},
	{"longest_ns", "longest", XSP_UNIT_NS, false, XSP_BY(longest_cell)},
};
XSP_REPORT_SHAPE(analyze, rows_shape, "account", "rows", "rows", columns);

XSP_REPORT_CELL(family_tid, struct state, struct xsp_account_family, xsp_cell_integer(row->tid));
XSP_REPORT_CELL(family_members, struct state, struct xsp_account_family,
		xsp_cell_integer(row->members));
XSP_REPORT_CELL(family_comm, struct state, struct xsp_account_family, xsp_cell_text(row->comm));

static const struct xsp_report_column family_columns[] = {
	{"thread", "thread", XSP_UNIT_TEXT, true, XSP_BY(family_comm)},
	{"tid", "busiest", XSP_UNIT_COUNT, false, XSP_BY(family_tid)},
	{"members", "members", XSP_UNIT_COUNT, false, XSP_BY(family_members)},
	{"ns", "time", XSP_UNIT_NS, false, XSP_FIELD(struct xsp_account_family, all_ns)},
	{"cpu_ns", "on CPU", XSP_UNIT_NS, false, XSP_FIELD(struct xsp_account_family, all_cpu_ns)},
	{"ready_ns", "ready", XSP_UNIT_NS, false,
	 XSP_FIELD(struct xsp_account_family, all_ready_ns)},
};
XSP_REPORT_SHAPE(analyze, families_shape, "account", "families", "threads that do the same work",
		 family_columns);

/* ---- places: a row each on the screen ---- */

/* A place, or a part of it that has a line of its own. */
struct line {
	const struct xsp_account_place *place;
	const struct xsp_account_row *row; /* NULL: all of the place */
};
#define MAIN_PART                                                                                  \
	0.6 /* a place whose largest row is so much of it is shown with what that row is */
#define PART_SHARE 0.05 /* other rows of at least so much of all time get lines below their place */

static bool has_main_part(const struct xsp_account_place *p)
{
	return (double)p->rows[0].ns >= MAIN_PART * (double)p->ns;
}

static const char *without_place(enum xsp_account_kind kind)
{
	static const char *const texts[XSP_ACCOUNT_KINDS] = {
		[XSP_ACCOUNT_WAIT] = "waiting, where is not known",
		[XSP_ACCOUNT_CPU] = "on a CPU, not sampled",
		[XSP_ACCOUNT_READY] = "ready, without a CPU",
		[XSP_ACCOUNT_PROBES] = "the recording's own probes",
		[XSP_ACCOUNT_OFF] = "off the CPU (waits were not recorded)"};

	return texts[kind] != NULL ? texts[kind] : "";
}

/* "aten::addmm", "disk": what the row adds to its place. */
static const char *detail(const struct shown *of, const struct xsp_account_row *row)
{
	const char *reason = xsp_account_reason(row->kind, row->why);

	return row->kind == XSP_ACCOUNT_READY ? NULL
	       : reason != NULL		      ? reason
	       : row->callee != 0	      ? xsp_timeline_name(of->timeline, row->callee - 1)
					      : NULL;
}

/* Of JavaScript it is the line on which the function begins. */
static bool is_of_javascript(const char *name, const char *line)
{
	static const char file[] = "js:", typed[] = "eval:";

	return strncmp(name, typed, strlen(typed)) == 0 ||
	       ((size_t)(line - name) > strlen(file) &&
		strncmp(line - strlen(file), file, strlen(file)) == 0);
}

/* "line 44" of "replay.py:44 Decoder.message": rows of one function are apart by line. */
static const char *line_of(const struct shown *of, const struct xsp_account_row *row, char text[24])
{
	const char *name = row->place != 0 ? xsp_timeline_name(of->timeline, row->place - 1) : "";
	const char *end = strchr(name, ' '), *at = end;

	while (at != NULL && at > name && at[-1] >= '0' && at[-1] <= '9')
		at--;
	if (at == NULL || at == end || at == name || at[-1] != ':' || end - at > 10 ||
	    is_of_javascript(name, at))
		return "itself";
	snprintf(text, 24, "line %.*s", (int)(end - at), at);
	return text;
}

static struct xsp_cell what_cell(struct xsp_report_at *at)
{
	const struct shown *of = at->of;
	const struct line *line = at->row;
	const struct xsp_account_place *p = line->place;
	const struct xsp_account_row *row = line->row != NULL ? line->row : &p->rows[0];
	const char *more = line->row != NULL || has_main_part(p) ? detail(of, row) : NULL;
	const char *name = p->name != 0 ? xsp_timeline_name(of->timeline, p->name - 1)
					: without_place(p->kind);
	const bool waits = row->kind == XSP_ACCOUNT_WAIT && more != NULL;
	char text[XSP_PEER_TEXT], number[24];
	const char *peer = waits ? xsp_timeline_peer(of->timeline, row->peer, text) : NULL;
	const char *before = waits && p->name != 0 ? "waits: " : "", *gap = peer != NULL ? " " : "";

	peer = peer != NULL ? peer : "";
	if (line->row != NULL)
		snprintf(at->text, sizeof(at->text), "  %s%s%s%s", before,
			 more != NULL ? more : line_of(of, row, number), gap, peer);
	else
		snprintf(at->text, sizeof(at->text), "%.*s%s%s%s%s%s",
			 (int)xsp_account_name_length(name), name, more != NULL ? "  " : "", before,
			 more != NULL ? more : "", gap, peer);
	return xsp_cell_text(at->text);
}

/* "price_lines:21" of "pages.py:21 BasketPage.price_lines", "gather:41" of "gather::{lambda at line 41}::operator()", and others
 * as they are. */
static int put_function(char *out, size_t size, const char *name)
{
	static const char lambda[] = "::{lambda at line ";
	const char *function, *inner = strstr(name, lambda);
	size_t file;

	if (inner != NULL)
		return snprintf(out, size, "%.*s:%lu", (int)(inner - name), name,
				strtoul(inner + strlen(lambda), NULL, 10));
	if (!xsp_python_line_split(name, &file, &function))
		return snprintf(out, size, "%s", name);
	return snprintf(out, size, "%.*s%.*s", (int)xsp_account_name_length(function), function,
			(int)(function - 1 - (name + file)), name + file);
}

/* Who runs all of a program says nothing; of Python its line does, if it calls the place itself. */
static bool is_outermost(const struct shown *of, const struct xsp_account_caller *c)
{
	const char *name = xsp_timeline_name(of->timeline, c->name - 1);
	const size_t length = strlen(name);

	return strcmp(name, "main") == 0 ||
	       (c->level > 1 &&
		(xsp_ends_with(name, length, " <module>") || xsp_ends_with(name, length, " main") ||
		 xsp_ends_with(name, length, ".main")));
}

/* "get:12 < render:40 62 %, search:18 30 %": get() calls the place, and is called by these two. */
static struct xsp_cell from_cell(struct xsp_report_at *at)
{
	const struct shown *of = at->of;
	const struct line *line = at->row;
	const struct xsp_account_place *p = line->place;
	size_t used = 0;

	for (size_t i = 0; i < p->caller_count && line->row == NULL; i++) {
		const struct xsp_account_caller *c = &p->callers[i];
		const bool several = (i > 0 && c[-1].level == c->level) ||
				     (i + 1 < p->caller_count && c[1].level == c->level);
		if (used + 1 >= sizeof(at->text) || (!several && is_outermost(of, c)))
			break;
		used += (size_t)snprintf(at->text + used, sizeof(at->text) - used, "%s",
					 i == 0			   ? ""
					 : c[-1].level == c->level ? ", "
								   : " < ");
		if (used < sizeof(at->text))
			used += (size_t)put_function(at->text + used, sizeof(at->text) - used,
						     xsp_timeline_name(of->timeline, c->name - 1));
		if (several && used < sizeof(at->text))
			used += (size_t)snprintf(at->text + used, sizeof(at->text) - used,
						 " %.0f %%", 100 * c->share);
	}
	return xsp_cell_text(used > 0 ? at->text : NULL);
}

/* Where an event loop waits for anything. */
static bool is_loop(const struct shown *of, const struct xsp_account_place *p)
{
	const struct xsp_account_row *row = &p->rows[0];

	return p->kind == XSP_ACCOUNT_WAIT && row->why == XSP_WAIT_POLL && row->callee != 0 &&
	       strncmp(xsp_timeline_name(of->timeline, row->callee - 1), "selectors.py:", 13) == 0;
}

#define AWAIT_LEAST 0.1

/* "take:8 Queue.get 78 %, query:12 sleep 20 %": the lines in which the coroutines wait whose loop does. */
static struct xsp_cell awaits_cell(struct xsp_report_at *at)
{
	const struct shown *of = at->of;
	const struct line *line = at->row;
	char *next;
	size_t used = 0;

	if (of->awaits == NULL || line->row != NULL || !is_loop(of, line->place))
		return xsp_cell_absent();
	const double all = (double)strtoull(of->awaits, &next, 10);
	for (const char *text = next; *text == '\n' && text[1] != '\0';) {
		const double share = (double)strtoull(text + 1, &next, 10) / all;
		const char *tab = *next == '\t' ? strchr(next + 1, '\t') : NULL;
		const size_t length = tab != NULL ? strcspn(tab, "\n") : 0;
		char name[XSP_NAME_MAX], function[XSP_NAME_MAX];
		if (length == 0 || !(share >= AWAIT_LEAST && share <= 1) ||
		    used + 1 >= sizeof(at->text))
			break;
		snprintf(name, sizeof(name), "%.*s", (int)(tab - next - 1), next + 1);
		put_function(function, sizeof(function), name);
		used += (size_t)snprintf(at->text + used, sizeof(at->text) - used,
					 "%s%s%s%.*s %.0f %%", used > 0 ? ", " : "", function,
					 length > 1 ? " " : "", (int)length - 1, tab + 1,
					 100 * share);
		text = tab + length;
	}
	return xsp_cell_text(used > 0 ? at->text : NULL);
}

static int64_t ns_of(const struct line *line)
{
	return line->row != NULL ? line->row->ns : line->place->ns;
}

XSP_REPORT_CELL(line_ns, struct shown, struct line, xsp_cell_integer((uint64_t)ns_of(row)));
XSP_REPORT_CELL(line_each, struct shown, struct line, per(of, (double)ns_of(row)));
XSP_REPORT_CELL(line_share, struct shown, struct line,
		share_of((double)ns_of(row), of->family->ns));
XSP_REPORT_CELL(line_error, struct shown, struct line,
		row->row == NULL && row->place->error_ns > 0
			? share_of((double)row->place->error_ns, of->family->ns)
			: xsp_cell_absent());
XSP_REPORT_CELL(line_part, struct shown, struct line,
		xsp_cell_text(row->row != NULL ? "part" : NULL));

static const struct xsp_report_column line_columns[] = {
	{"what", "where the time went", XSP_UNIT_TEXT, true, XSP_BY(what_cell)},
	{"ns", "time", XSP_UNIT_NS, false, XSP_BY(line_ns)},
	{"each_ns", "each", XSP_UNIT_NS, false, XSP_BY(line_each)},
	{"share", "share", XSP_UNIT_SHARE, false, XSP_BY(line_share)},
	{"error_share", "+-", XSP_UNIT_SHARE, false, XSP_BY(line_error)},
	{"part", "of the place above", XSP_UNIT_TEXT, false, XSP_BY(line_part)},
	{"from", "called from", XSP_UNIT_TEXT, false, XSP_BY(from_cell)},
	{"awaits", "coroutines await", XSP_UNIT_TEXT, false, XSP_BY(awaits_cell)},
};
XSP_REPORT_SHAPE(analyze, places_shape, "account", "places", "places", line_columns);

static void put_lines(struct xsp_report_section *section, const struct shown *of)
{
	const struct xsp_account_family *f = of->family;
	struct xsp_report_table *table = xsp_report_table(section, &places_shape);

	for (size_t i = 0; i < f->count; i++) {
		const struct xsp_account_place *p = &f->places[i];
		xsp_report_add(table, of, &(struct line){p, NULL});
		for (size_t k = has_main_part(p); k < p->count && p->name != 0; k++)
			if ((double)p->rows[k].ns >= PART_SHARE * (double)f->ns)
				xsp_report_add(table, of, &(struct line){p, &p->rows[k]});
	}
}

/* ---- the head ---- */

/* "python3 train.py (4360)", as its user started it. */
static void put_who(struct xsp_report_section *section, const struct xsp_capture_reader *r,
		    uint32_t pid)
{
	const struct xsp_capture_process *p = xsp_capture_process_of(r, pid);
	char command[480], text[512];

	xsp_run_process_command(r, pid, command, sizeof(command));
	snprintf(text, sizeof(text), "%s (%" PRIu32 ")", command,
		 p != NULL && p->ns_pid != 0 ? p->ns_pid : pid);
	xsp_report_value(section, "who", "program", XSP_UNIT_TEXT, xsp_cell_text(text));
}

static void put_share(struct xsp_report_section *section, const char *key, const char *title,
		      uint64_t part, uint64_t whole)
{
	xsp_report_value(section, key, title, XSP_UNIT_SHARE, share_of((double)part, whole));
}

static void put_head(struct xsp_report_section *section, const struct state *s,
		     const struct xsp_account_family *families, size_t count)
{
	const struct xsp_account_family *f = &families[0];
	size_t busy = 0, threads = 0;
	uint64_t start, end;

	for (size_t i = 0; i < count; i++) {
		threads += families[i].members + families[i].idle;
		if (families[i].all_cpu_ns + families[i].all_ready_ns >=
		    (f->all_cpu_ns + f->all_ready_ns) / XSP_ACCOUNT_IDLE)
			busy += families[i].members;
	}
	put_who(section, s->reader, f->pid);
	xsp_timeline_window(s->timeline, &start, &end);
	xsp_report_value(section, "duration_ns", "recorded", XSP_UNIT_NS,
			 xsp_cell_integer(end - start));
	xsp_report_value(section, "threads", "threads", XSP_UNIT_COUNT, xsp_cell_integer(threads));
	xsp_report_value(section, "busy_threads", "busy ones", XSP_UNIT_COUNT,
			 xsp_cell_integer(busy));
	xsp_report_value(section, "thread", "the account is of", XSP_UNIT_TEXT,
			 xsp_cell_text(f->comm));
	xsp_report_value(section, "members", "... so many threads", XSP_UNIT_COUNT,
			 xsp_cell_integer(f->members));
	put_share(section, "cpu_share", "on a CPU", f->all_cpu_ns, f->all_ns);
	put_share(section, "ready_share", "ready, without a CPU", f->all_ready_ns, f->all_ns);
	xsp_report_value(section, "off_share", "off the CPU, without recorded waits",
			 XSP_UNIT_SHARE,
			 f->off_ns > 0 ? share_of((double)f->off_ns, f->ns) : xsp_cell_absent());
	xsp_report_value(section, "steps", "steps", XSP_UNIT_COUNT,
			 xsp_cell_if(f->steps > 0, f->steps));
	xsp_report_value(section, "ns", "time in the account", XSP_UNIT_NS,
			 xsp_cell_integer(f->ns));
	put_share(section, "places_read_share", "waits whose place was read", f->stack_ns,
		  f->wait_ns);
}

#define UNNAMED_LEAST 0.1

/* What would name the functions of an interpreter or a runtime, by the name of its program. */
static const char *names_for(const char *exe)
{
	static const struct {
		const char *program, *advice;
	} maps[] = {
		{"java",
		 "start java with -XX:+PreserveFramePointer and a perf map (perf-map-agent, or jcmd PID Compiler.perfmap)"},
		{"python",
		 "install the debug symbols of python3 (python3-dbg); from 3.12 on python3 -X perf"},
		{"ruby", "install the debug symbols of libruby, or start ruby with --yjit-perf"},
		{"R", "install the debug symbols of R (r-base-core-dbg)"},
	};

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		if (strncmp(exe, maps[i].program, strlen(maps[i].program)) == 0)
			return maps[i].advice;
	return "install its debug symbols, or build it with -g";
}

/* Programs that run what is not native code, and whose own functions are all that samples find without a map: what would name
 * those of the script, and by what such names are known. */
static const struct script {
	const char *program, *advice, *named[3];
} scripts[] = {
	{"node",
	 "--perf-basic-prof-only-functions --interpreted-frames-native-stack names those of JavaScript",
	 {"JS:", "Compile:", "Function:"}},
	{"perl",
	 "nothing names Perl's subroutines from outside (Devel::NYTProf does, inside)",
	 {NULL}},
};

static const struct script *script_of(const char *exe)
{
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		if (strncmp(exe, scripts[i].program, strlen(scripts[i].program)) == 0)
			return &scripts[i];
	return NULL;
}

static bool is_named(const struct script *script, const char *place)
{
	const char *function;
	size_t file;

	if (xsp_python_line_split(place, &file,
				  &function)) /* "app.js:12 handler", from V8 itself */
		return true;
	for (size_t i = 0; i < sizeof(script->named) / sizeof(script->named[0]); i++)
		if (script->named[i] != NULL && strstr(place, script->named[i]) != NULL)
			return true;
	return false;
}

/* A loop that waits for events, or a thread for work, has no function that anybody looks for. */
static int64_t working_ns(const struct xsp_account_place *p)
{
	int64_t ns = 0;

	for (size_t i = 0; i < p->count && p->kind < XSP_ACCOUNT_READY; i++)
		if (p->rows[i].why != XSP_WAIT_POLL && p->rows[i].why != XSP_WAIT_LOCK)
			ns += p->rows[i].ns;
	return ns;
}

/* Are its places the functions of what runs a script? Then says so, once. */
static bool note_script(struct xsp_report_section *section, const struct state *s,
			const struct xsp_account_family *f)
{
	const struct xsp_capture_process *p = xsp_capture_process_of(s->reader, f->pid);
	const struct script *script = p != NULL ? script_of(xsp_base_name(p->exe)) : NULL;
	char said[300];
	int64_t ns = 0;

	for (size_t i = 0; script != NULL && i < f->count; i++) {
		const uint32_t name = f->places[i].name;
		if (name != 0 && is_named(script, xsp_timeline_name(s->timeline, name - 1)))
			return false;
		ns += name != 0 ? working_ns(&f->places[i]) : 0;
	}
	if (script == NULL || f->ns == 0 || (double)ns < UNNAMED_LEAST * (double)f->ns)
		return false;
	snprintf(said, sizeof(said), "places are functions of %s itself: %s", script->program,
		 script->advice);
	xsp_report_caveat(section, said);
	return true;
}

static void note_unnamed(struct xsp_report_section *section, const struct state *s,
			 const struct xsp_account_family *f)
{
	const struct xsp_capture_process *p = xsp_capture_process_of(s->reader, f->pid);
	char said[300];
	int64_t ns = 0;

	for (size_t i = 0; i < f->count; i++) {
		const uint32_t name = f->places[i].name;
		const char *text = name != 0 ? xsp_timeline_name(s->timeline, name - 1) : "";
		if (strstr(text, "+0x") != NULL || strcmp(text, "[generated code]") == 0)
			ns += f->places[i].ns;
	}
	if (p != NULL && f->ns > 0 && (double)ns >= UNNAMED_LEAST * (double)f->ns) {
		snprintf(said, sizeof(said),
			 "%.3g %% of the time is in functions without names: %s",
			 100.0 * (double)ns / (double)f->ns, names_for(xsp_base_name(p->exe)));
		xsp_report_caveat(section, said);
	}
}

static int report(void *state, struct xsp_report *out)
{
	struct state *s = state;
	const struct xsp_account_family *families;
	int rc = xsp_account_end(s->account);
	const size_t count = xsp_account_families(s->account, &families);

	if (rc < 0 || count == 0)
		return rc;
	struct xsp_report_section *section =
		xsp_report_section(out, "account", "Where the time went");
	char awaits[40];
	snprintf(awaits, sizeof(awaits), XSP_INFO_AWAITS " %" PRIu32, families[0].pid);
	const struct shown of = {s->timeline, &families[0], xsp_capture_info(s->reader, awaits)};
	put_head(section, s, families, count);
	if (xsp_account_left_out(s->account) > 0)
		xsp_report_notef(section,
				 "too many threads or places: %" PRIu64
				 " times something was counted for none of them",
				 xsp_account_left_out(s->account));
	if (!note_script(section, s, &families[0]))
		note_unnamed(section, s, &families[0]);
	put_lines(section, &of);
	struct xsp_report_table *table = xsp_report_table(section, &rows_shape);
	for (size_t i = 0; i < families[0].count; i++)
		xsp_report_rows(table, &of, families[0].places[i].rows,
				sizeof(*families[0].places[i].rows), families[0].places[i].count);
	table = xsp_report_table(section, &families_shape);
	xsp_report_rows(table, s, families, sizeof(*families),
			count < OTHERS_SHOWN ? count : OTHERS_SHOWN);
	return 0;
}

const struct xsp_analysis xsp_analysis_account = {
	.name = "account",
	.begin = begin,
	.sink = sink,
	.report = report,
	.end = end,
};
