/* SPDX-License-Identifier: BSD-2-Clause */
/* compare.c - the report of a comparison: what was compared, what changed, and the tables. */
#include "analysis/compare/compare.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/compare_private.h"
#include "analysis/rules/rules.h"
#include "base/rows/order.h"
#include "base/units.h"

#define LABELS 26U

/* ---- words ---- */

static const struct {
	const char *keyword, *meaning;
} reasons[] = {
	[WHY_NOISE] =
		{"none: noise",
		 "the 95 % interval holds the threshold: it is narrower with three captures a side, or longer ones"},
	[WHY_FEW] =
		{"none: few",
		 "too few measurements: 12 steps, a fourth of the time, or 3 captures a side are needed"},
	[WHY_NO_SPREAD] = {"none: no spread",
			   "all measurements are equal, which says nothing about another run"},
	[WHY_CHANCE] =
		{"none: chance",
		 "its own interval lies beyond the threshold, but so many were compared that chance brings that about (Holm's correction)"},
	[WHY_FASTEST] =
		{"none: fastest",
		 "the fastest ones have not changed as the middle has, so it may be the machine that was busy; three captures a side tell"},
	[WHY_ALL] =
		{"none: all alike",
		 "most operators (kernels) changed alike, as on a machine that is busier or a GPU with another clock; three captures a side tell"},
	[WHY_SMALL] = {"small",
		       "less than 1 % of the time (three captures a side: 0.1 %) is not judged"},
	[WHY_RARE] = {"none: seldom",
		      "it is on one side only, but not in most of the time of each capture"},
	[WHY_PEAK] =
		{"none: peak",
		 "the most that there was differs otherwise than most of the time does; three captures a side tell"},
	[WHY_NO_GROWTH] =
		{"none: no growth",
		 "one side gave memory back, and the other one only did not; neither grows by what matters"},
	[WHY_ONCE] =
		{"none: once",
		 "this memory was reached once (or in fewer than four of 16 pieces of the time) and then kept: one value, which says nothing about another run; three captures a side tell"},
	[WHY_ALONE] =
		{"none: alone",
		 "fewer than three kernels have 1 % of their device's time each, so that a slower kernel cannot be told from a GPU with another clock; three captures a side tell"},
};

/* ---- caveats ---- */

/* The version and filters of an imported trace are not known. */
static bool are_known_to_differ(const char *a, const char *b)
{
	return *a != '\0' && *b != '\0' && strcmp(a, b) != 0;
}

static const char *side_name(size_t side)
{
	static const char names[LABELS][2] = {"A", "B", "C", "D", "E", "F", "G", "H", "I",
					      "J", "K", "L", "M", "N", "O", "P", "Q", "R",
					      "S", "T", "U", "V", "W", "X", "Y", "Z"};

	return side < LABELS ? names[side] : "?";
}

struct of_side {
	const char *side;
	const struct xsp_compare_capture *capture;
};

#define CAPTURE(name, value) XSP_REPORT_CELL(capture_##name, void, struct of_side, value)

CAPTURE(path, xsp_cell_text(row->capture->path));
CAPTURE(recorded, xsp_cell_integer(xsp_series_recorded_ns(row->capture->series)));
CAPTURE(steps, xsp_cell_if(xsp_series_step_count(row->capture->series) > 0,
			   xsp_series_step_count(row->capture->series)));
CAPTURE(lost, xsp_cell_if(row->capture->lost_known, row->capture->lost));
CAPTURE(command, xsp_cell_text(row->capture->command));

static const struct xsp_report_column capture_columns[] = {
	{"side", "side", XSP_UNIT_TEXT, true, XSP_FIELD(struct of_side, side)},
	{"capture", "capture", XSP_UNIT_TEXT, true, XSP_BY(capture_path)},
	{"recorded", "recorded", XSP_UNIT_NS, false, XSP_BY(capture_recorded)},
	{"steps", "steps", XSP_UNIT_COUNT, false, XSP_BY(capture_steps)},
	{"lost", "lost", XSP_UNIT_COUNT, false, XSP_BY(capture_lost)},
	{"command", "command", XSP_UNIT_TEXT, false, XSP_BY(capture_command)},
};
XSP_REPORT_SHAPE(compare, captures_shape, "compared", "captures", "Captures", capture_columns);

#define DOUBTS 8U
static const char *const doubt_texts[DOUBTS] = {
	"uncertain: events were lost, so that times of their callers are too long and counts too low",
	"uncertain: not all of the time was recorded (--windows or --max-overhead)",
	"uncertain: a capture is damaged, or was not ended",
	"uncertain: probes came late (libraries, children, changed code): calls before are missing",
	"uncertain: the command lines differ",
	"uncertain: the captures are of different machines",
	"uncertain: the captures were recorded by different versions of xsptrace",
	"uncertain: the captures were recorded with different filters (xsptrace info): what is left out of one is in its callers' own time",
};

static void find_doubts(const struct xsp_compare_capture *c,
			const struct xsp_compare_capture *first, bool doubts[DOUBTS])
{
	doubts[0] = doubts[0] || c->lost > 0;
	doubts[1] = doubts[1] || c->windows > 0;
	doubts[2] = doubts[2] || c->damaged;
	doubts[3] = doubts[3] || c->late;
	doubts[4] = doubts[4] || strcmp(c->command, first->command) != 0;
	doubts[5] = doubts[5] || strcmp(c->host, first->host) != 0;
	doubts[6] = doubts[6] || are_known_to_differ(c->version, first->version);
	doubts[7] = doubts[7] || are_known_to_differ(c->filters, first->filters);
}

/* Notes all caveats and returns the first one, for findings; NULL: none. */
static const char *put_captures(struct xsp_report_section *head,
				const struct xsp_compare_side *sides, size_t count)
{
	struct xsp_report_table *t = xsp_report_table(head, &captures_shape);
	bool doubts[DOUBTS] = {false};
	const char *reason = NULL;
	uint64_t places_left_out = 0; /* these places are in no row */

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < sides[i].count; k++) {
			const struct xsp_compare_capture *c = &sides[i].captures[k];
			xsp_report_add(t, NULL, &(struct of_side){side_name(i), c});
			find_doubts(c, &sides[0].captures[0], doubts);
			places_left_out += xsp_series_places_left_out(c->series);
		}
	for (size_t i = 0; i < DOUBTS; i++) {
		if (!doubts[i])
			continue;
		xsp_report_note(head, doubt_texts[i]);
		reason = reason != NULL ? reason : doubt_texts[i] + strlen("uncertain: ");
	}
	if (places_left_out > 0)
		xsp_report_note(
			head,
			"memory is allocated at more places than are followed: growth of those that came last is not compared");
	return reason;
}

/* ---- tables ---- */

/* A difference as shown: a share, or bytes. A factor of a thousand only means that it is not
 * known. */
static double display_value(const struct comparison *c, double difference)
{
	if (!c->d.known)
		return NAN;
	if (c->what == COMPARED_GROWTH)
		return difference;
	return fabs(difference) < log(1000) ? expm1(difference) : NAN;
}

static struct xsp_cell real(double value)
{
	return isfinite(value) ? xsp_cell_real(value) : xsp_cell_absent();
}

/* A row as shown. */
struct verdict_row {
	const struct comparison *c;
	const char *name;
	const char *side; /* NULL with two sides: then the column is not shown */
	const char *verdict;
	bool calls; /* calls are counted */
};

#define OF(member) XSP_FIELD(struct verdict_row, member)
#define CELL(name, value) XSP_REPORT_CELL(compared_##name, void, struct verdict_row, value)

CELL(change, real(display_value(row->c, row->c->d.by)));
CELL(low, real(display_value(row->c, row->c->d.low)));
CELL(high, real(display_value(row->c, row->c->d.high)));
CELL(a, real(row->c->typical[0]));
CELL(b, real(row->c->typical[1]));
CELL(calls_a, real(row->calls ? row->c->calls[0] : NAN));
CELL(calls_b, real(row->calls ? row->c->calls[1] : NAN));

#define COLUMNS(value, difference)                                                                 \
	{                                                                                          \
		{"name", "name", XSP_UNIT_TEXT, true, OF(name)},                                   \
			{"side", "side", XSP_UNIT_TEXT, true, OF(side)},                           \
			{"verdict", "verdict", XSP_UNIT_TEXT, false, OF(verdict)},                 \
			{"change", "change", difference, false, XSP_BY(compared_change)},          \
			{"low", "from", difference, false, XSP_BY(compared_low)},                  \
			{"high", "to", difference, false, XSP_BY(compared_high)},                  \
			{"a", "A", value, false, XSP_BY(compared_a)},                              \
			{"b", "B", value, false, XSP_BY(compared_b)},                              \
			{"calls_a", "calls A", XSP_UNIT_NUMBER, false, XSP_BY(compared_calls_a)},  \
			{"calls_b", "calls B", XSP_UNIT_NUMBER, false, XSP_BY(compared_calls_b)},  \
	}
#define COLUMN_COUNT 10
static const struct xsp_report_column of_times[COLUMN_COUNT] =
	COLUMNS(XSP_UNIT_NS, XSP_UNIT_CHANGE);
static const struct xsp_report_column of_bytes[COLUMN_COUNT] =
	COLUMNS(XSP_UNIT_BYTES, XSP_UNIT_CHANGE);
static const struct xsp_report_column of_growth[COLUMN_COUNT] =
	COLUMNS(XSP_UNIT_BYTES, XSP_UNIT_BYTES);

/* By kind of comparison: where its rows stand, and what its verdicts are called. */
static const struct {
	const char *section_title;
	struct xsp_report_shape shape;
	const char *less, *more, *rule;
} kinds[COMPARED_KINDS] = {
#define KIND(kind, in, section, table, title, columns, less, more, rule)                           \
	[COMPARED_##kind] = {in, {section, table, title, columns, COLUMN_COUNT}, less, more, rule}
	KIND(STEP, "Steps", "steps", "step", "Time of a step", of_times, "faster", "slower",
	     "slower"),
	KIND(IN_STEP, "Operators", "operators", "in_step", "Own time in a step", of_times, "faster",
	     "slower", "slower"),
	KIND(OPERATOR, "Operators", "operators", "call", "Own time of a call", of_times, "faster",
	     "slower", "slower-call"),
	KIND(LINE, "Python", "python", "line", "Own time of a call from a line", of_times, "faster",
	     "slower", "slower-line"),
	KIND(MODULE, "Python", "python", "module", "Own time of a call from a module", of_times,
	     "faster", "slower", "slower-module"),
	KIND(KERNEL, "Kernels", "kernels", "kernel", "Time of a kernel", of_times, "faster",
	     "slower", "slower-kernel"),
	KIND(PEAK, "Memory", "memory", "peak", "At most", of_bytes, "less", "more", "memory"),
	KIND(GROWTH, "Memory", "memory", "growth", "Growth", of_growth, "grows less", "grows more",
	     "leak"),
#undef KIND
};
XSP_REPORT_LISTED(compare) *const listed[] = {
	&kinds[COMPARED_STEP].shape,	 &kinds[COMPARED_IN_STEP].shape,
	&kinds[COMPARED_OPERATOR].shape, &kinds[COMPARED_LINE].shape,
	&kinds[COMPARED_MODULE].shape,	 &kinds[COMPARED_KERNEL].shape,
	&kinds[COMPARED_PEAK].shape,	 &kinds[COMPARED_GROWTH].shape,
};

static const char *verdict_name(const struct comparison *c)
{
	static const char *const of_all[] = {
		[VERDICT_SAME] = "same", [VERDICT_NEW] = "new", [VERDICT_GONE] = "gone"};

	return c->verdict == VERDICT_NONE   ? reasons[c->why].keyword
	       : c->verdict == VERDICT_LESS ? kinds[c->what].less
	       : c->verdict == VERDICT_MORE ? kinds[c->what].more
					    : of_all[c->verdict];
}

/* The report that is being written. */
struct writing {
	struct xsp_report *report;
	bool reasons[sizeof(reasons) / sizeof(reasons[0])]; /* the reasons that some table gives */
	const char *doubt;
	unsigned found;
};

static double weight(const struct comparison *c)
{
	if (c->in[0] != c->in[1])
		return c->share;
	if (!c->d.known)
		return 0;
	return c->what == COMPARED_GROWTH ? fabs(c->d.by) : c->share * fabs(expm1(c->d.by));
}

static XSP_ORDER(by_weight, struct comparison,
		 XSP_RISING(what)
			 ?: XSP_COMPARE(y->verdict > VERDICT_SAME, x->verdict > VERDICT_SAME)
			 ?: XSP_COMPARE(weight(y), weight(x))
			 ?: strcmp(x->name, y->name));

static void put_row(struct writing *w, const struct comparison *c, const char *side)
{
	const bool sure = c->verdict > VERDICT_SAME;
	char verdict_text[40];

	if (c->verdict == VERDICT_NONE)
		w->reasons[c->why] = true;
	snprintf(verdict_text, sizeof(verdict_text), "%s%s", verdict_name(c),
		 sure && w->doubt != NULL ? "?" : "");
	struct xsp_report_section *section = xsp_report_section(
		w->report, kinds[c->what].shape.section, kinds[c->what].section_title);
	struct xsp_report_table *table = xsp_report_table(section, &kinds[c->what].shape);
	const struct verdict_row row = {.c = c,
					.name = c->name,
					.side = side,
					.verdict = verdict_text,
					.calls = c->calls[0] > 0 || c->calls[1] > 0};
	xsp_report_add(table, NULL, &row);
	xsp_report_row_leads(table, sure);
}

/* ---- what has changed, as findings ---- */

/* The relative growth of a step, or of the time, that the row causes. */
static double effect(const struct pair *p, const struct comparison *c)
{
	const struct comparison *step = &p->rows[0];

	if (c->what == COMPARED_STEP || c->what == COMPARED_PEAK)
		return expm1(c->d.by);
	if (c->what == COMPARED_GROWTH)
		return 1;
	if (c->what == COMPARED_IN_STEP && step->what == COMPARED_STEP && step->typical[0] > 0)
		return (c->typical[1] - c->typical[0]) / step->typical[0];
	return c->share * expm1(c->d.by);
}

/* "1.23 us", "3.4 MiB" */
static const char *quantity(char text[XSP_UNITS_SIZE], const struct comparison *c, double value)
{
	const uint64_t whole = fabs(value) < 9e18 ? (uint64_t)llround(fabs(value)) : 0;

	return kinds[c->what].shape.columns == of_times ? xsp_format_ns(text, whole)
							: xsp_format_bytes(text, whole);
}

/* "12.3 % slower in B (10.1 % to 14.5 %)", "285 times slower in B (250 to 320)": beyond the double per cent say little. */
static const char *by_how_much(char text[160], const struct comparison *c, const char *side)
{
	const char *more = kinds[c->what].more;

	if (c->d.by < log(2))
		snprintf(text, 160, "%.1f %% %s in %s (%.1f %% to %.1f %%)", 100 * expm1(c->d.by),
			 more, side, 100 * expm1(c->d.low), 100 * expm1(c->d.high));
	else
		snprintf(text, 160, "%.3g times %s in %s (%.3g to %.3g)", exp(c->d.by),
			 strcmp(more, "slower") == 0 ? "the time" : "as much", side, exp(c->d.low),
			 exp(c->d.high));
	return text;
}

static void put_slower(struct writing *w, const struct pair *p, const struct comparison *c,
		       const char *side)
{
	char a[XSP_UNITS_SIZE], b[XSP_UNITS_SIZE], how[160], *title = NULL;
	const bool growth = c->what == COMPARED_GROWTH;
	int rc;

	if (growth)
		rc = asprintf(&title, "%s grows by %s a %s in %s, by %s%s in A", c->name,
			      quantity(b, c, c->typical[1]), p->steps ? "step" : "second", side,
			      c->typical[0] < 0 ? "-" : "", quantity(a, c, c->typical[0]));
	else if (!isfinite(c->typical[0])) /* a row of all kernels */
		rc = asprintf(&title, "%s: %s", c->name, by_how_much(how, c, side));
	else
		rc = asprintf(&title, "%s: %s, %s after %s", c->name, by_how_much(how, c, side),
			      quantity(b, c, c->typical[1]), quantity(a, c, c->typical[0]));
	if (rc < 0)
		return;
	const double share = effect(p, c);
	struct xsp_report_section *figures = xsp_report_finding(
		w->report,
		&(struct xsp_report_finding){.rule = kinds[c->what].rule,
					     .severity = growth ? XSP_SEVERITY_HIGH
								: xsp_rule_severity(share),
					     .subject = c->name,
					     .title = title,
					     .uncertain = w->doubt,
					     .share = share});
	xsp_report_value(figures, "p", "chance (corrected)", XSP_UNIT_NUMBER, real(c->p));
	free(title);
}

/* For a call, the row of the same name in a step, which says more; NULL: there is none, or this
 * is no call. */
static const struct comparison *in_step(const struct pair *p, const struct comparison *c)
{
	for (size_t i = 0; i < p->count && c->what == COMPARED_OPERATOR; i++)
		if (p->rows[i].what == COMPARED_IN_STEP && strcmp(p->rows[i].name, c->name) == 0)
			return &p->rows[i];
	return NULL;
}

/* Did the capture hold the data that the rule needs? `needs`: if not, what it needs. */
static bool was_looked_for(const struct xsp_report *r, const char *rule, const char **needs)
{
	const struct xsp_report_table *t =
		r != NULL ? xsp_report_find_table(xsp_report_find_section(r, "rules"), "rules")
			  : NULL;

	for (size_t i = 0; t != NULL && i < xsp_report_row_count(t); i++) {
		if (strcmp(xsp_row_text(t, i, "rule"), rule) == 0)
			*needs = xsp_row_text(t, i, "needs");
		if (*needs != NULL)
			return false;
	}
	return true;
}

/* Notes a finding that some captures of the other side could not show: it is no change. */
static bool was_not_looked_for(struct writing *w, const struct xsp_compare_side *lacks,
			       const struct xsp_report_finding *f, bool came, const char *side)
{
	const char *needs = NULL;
	char text[256];
	size_t i = 0;

	while (i < lacks->count && was_looked_for(lacks->captures[i].report, f->rule, &needs))
		i++;
	if (i == lacks->count)
		return false;
	snprintf(text, sizeof(text),
		 "not compared: %s is found in %s, and %s was recorded without what it needs (%s)",
		 f->rule, came ? (side != NULL ? side : "B") : "A",
		 came ? "A" : (side != NULL ? side : "B"), needs);
	xsp_report_note(xsp_report_section(w->report, "bottlenecks", "Bottlenecks"), text);
	return true;
}

/* Lines move, and processes have other numbers: the finding stays the same. */
static bool has_found(const struct xsp_report *r, const struct xsp_report_finding *f)
{
	const struct xsp_report_found *all;
	const size_t n = r != NULL ? xsp_report_findings(r, &all) : 0;
	bool has = false;

	for (size_t i = 0; i < n && !has; i++) {
		const struct xsp_report_finding *one = &all[i].finding;
		has = strcmp(one->rule, f->rule) == 0 &&
		      xsp_compare_same_place(one->subject != NULL ? one->subject : "",
					     f->subject != NULL ? f->subject : "");
	}
	return has;
}

/* How many captures of a side have this finding. `nearly` also counts those that come close to
 * the threshold, since such a finding comes and goes by chance. */
static size_t captures_with(const struct xsp_compare_side *side, const struct xsp_report_finding *f,
			    bool nearly)
{
	size_t n = 0;

	for (size_t i = 0; i < side->count; i++)
		n += has_found(side->captures[i].report, f) ||
		     (nearly && has_found(side->captures[i].nearly, f));
	return n;
}

/* With one recording a side: could a busier machine cause the finding? */
static bool is_of_machine(const struct pair *p, const struct xsp_report_finding *f)
{
	const long rule = xsp_rule_index(f->rule, strlen(f->rule));

	return !p->repeats && rule >= 0 && xsp_rules[rule].machine;
}

/* A finding on one side. */
struct side_finding {
	const char *side; /* as in struct verdict_row */
	struct xsp_report_finding finding;
};

#define FOUND(member) XSP_FIELD(struct side_finding, finding.member)

static const struct xsp_report_column finding_columns[] = {
	{"rule", "rule", XSP_UNIT_TEXT, true, FOUND(rule)},
	{"subject", "of", XSP_UNIT_TEXT, true, FOUND(subject)},
	{"side", "side", XSP_UNIT_TEXT, true, XSP_FIELD(struct side_finding, side)},
	{"title", "finding", XSP_UNIT_TEXT, false, FOUND(title)},
};
XSP_REPORT_SHAPE(compare, came_shape, "bottlenecks", "came", "Came", finding_columns);
XSP_REPORT_SHAPE(compare, went_shape, "bottlenecks", "went", "Went", finding_columns);

/* Findings in all captures of one side and in none of the other. */
static void put_findings(struct writing *w, const struct pair *p, bool came, const char *side)
{
	const struct xsp_compare_side *has = came ? p->b : p->a, *lacks = came ? p->a : p->b;
	const struct xsp_report_found *all;
	const size_t n = has->captures[0].report != NULL
				 ? xsp_report_findings(has->captures[0].report, &all)
				 : 0;

	for (size_t i = 0; i < n; i++) {
		const struct xsp_report_finding *f = &all[i].finding;
		if (captures_with(has, f, false) < has->count ||
		    captures_with(lacks, f, true) > 0 || is_of_machine(p, f) ||
		    was_not_looked_for(w, lacks, f, came, side))
			continue;
		struct xsp_report_section *section =
			xsp_report_section(w->report, "bottlenecks", "Bottlenecks");
		struct xsp_report_table *t =
			xsp_report_table(section, came ? &came_shape : &went_shape);
		xsp_report_add(t, NULL, &(struct side_finding){.side = side, .finding = *f});
		if (!came)
			continue;
		struct xsp_report_finding copy = *f;
		copy.uncertain = f->uncertain != NULL ? f->uncertain : w->doubt;
		xsp_report_finding(w->report, &copy);
		if (f->severity > XSP_SEVERITY_LOW)
			w->found |= XSP_COMPARE_NEW_BOTTLENECK;
	}
}

/* ---- all of it ---- */

static void put_verdicts(struct writing *w, const struct pair *p, const char *name,
			 const char *side)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct comparison *c = &p->rows[i];
		put_row(w, c, side);
		if (c->verdict != VERDICT_MORE)
			continue;
		const struct comparison *step = in_step(p, c);
		/* larger calls, but fewer: each takes longer, and all together less */
		if (step != NULL && step->verdict == VERDICT_LESS &&
		    step->calls[1] < step->calls[0])
			continue;
		w->found |= c->what >= COMPARED_PEAK ? XSP_COMPARE_MEMORY : XSP_COMPARE_SLOWER;
		if (step == NULL || step->verdict != VERDICT_MORE)
			put_slower(w, p, c, name);
	}
}

/* No row shows what most of them did. `but`: the row that shows it with repeats. `like`: what
 * one recording mistakes it for. */
static void note_common(struct xsp_report_section *head, const struct pair *p, const char *of,
			double by, const char *but, const char *like)
{
	char text[400];

	snprintf(text, sizeof(text),
		 "most %s changed by %.1f %%, which is taken out of the changes below%s%s", of,
		 100 * expm1(by),
		 p->repeats ? ", but for that of " : ": one recording a side cannot tell it from ",
		 p->repeats ? but : like);
	if (fabs(by) > log1p(p->threshold) / 2)
		xsp_report_note(head, text);
}

static void put_method(struct xsp_report_section *head, const struct pair *p, const char *name)
{
	char text[400];

	snprintf(
		text, sizeof(text),
		"%s against A: %s, %s; %zu judged, by 95 %% intervals and Holm's correction, against a threshold of %.3g %%",
		name, p->steps ? "by steps, and by calls" : "by calls (no steps on both sides)",
		p->repeats ? "each capture is one measurement"
			   : "blocks of one recording are the measurements",
		p->judged, 100 * p->threshold);
	xsp_report_note(head, text);
	if (p->disturbed > 0)
		xsp_report_notef(
			head,
			"%zu capture%s dropped: there the threads were ready to run without a CPU for far longer than in the others of the side",
			p->disturbed, p->disturbed == 1 ? " was" : "s were");
	if (p->common_known)
		note_common(head, p, "operators", p->common, "the step", "a slower machine");
	/* a GPU's clock changes the time of all its kernels */
	for (size_t i = 0; i < p->device_count; i++) {
		snprintf(text, sizeof(text), "kernels%s", p->devices[i].kernels);
		if (p->devices[i].known)
			note_common(head, p, text, p->devices[i].by, "all kernels",
				    "another clock of the GPU");
	}
}

static int compare_pair(struct writing *w, struct xsp_report_section *head, struct pair *p,
			const char *name, const char *side)
{
	int rc = xsp_compare_measure(p);

	if (rc == 0)
		rc = xsp_compare_judge(p);
	if (rc == 0) {
		put_method(head, p, name);
		rc = xsp_compare_accounts(p, side, w->report);
		if (p->count > 0)
			qsort(p->rows, p->count, sizeof(*p->rows), by_weight);
		put_verdicts(w, p, name, side);
		put_findings(w, p, true, side);
		put_findings(w, p, false, side);
	}
	free(p->rows);
	free(p->series);
	free(p->devices);
	return rc;
}

int xsp_compare(const struct xsp_compare_side *sides, size_t count, double threshold,
		struct xsp_report *report, unsigned *found)
{
	struct writing w = {.report = report};
	struct xsp_report_section *head = xsp_report_section(report, "compared", "Compared");
	int rc = 0;

	w.doubt = put_captures(head, sides, count);
	for (size_t i = 1; i < count && rc == 0; i++) {
		struct pair p = {.a = &sides[0], .b = &sides[i], .threshold = threshold};
		rc = compare_pair(&w, head, &p, side_name(i), count > 2 ? side_name(i) : NULL);
	}
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		char text[300];
		snprintf(text, sizeof(text), "%s: %s", reasons[i].keyword, reasons[i].meaning);
		if (w.reasons[i])
			xsp_report_note(xsp_report_section(report, "words", "No verdict, and why"),
					text);
	}
	*found = w.found;
	return rc < 0 || xsp_report_failed(report) ? -ENOMEM : 0;
}
