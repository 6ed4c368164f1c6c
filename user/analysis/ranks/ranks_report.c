/* SPDX-License-Identifier: BSD-2-Clause */
/* ranks_report.c - a job as sections of a report: which rank holds the others up, and where. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/ranks/ranks_private.h"
#include "analysis/rules/rules.h"
#include "base/saturate.h"
#include "base/units.h"

/* A finding needs this many late arrivals, and this many times the lateness of the others. */
#define LATE_TIMES 3
#define LATE_FACTOR 3
/* An operator is named if it explains this share of a rank's lateness. If REST_SHARE is left
 * unexplained, something other than operators is at fault. */
#define OPERATOR_SHARE 0.25
#define REST_SHARE 0.5
/* A kernel that explains this share of an operator's excess takes its place. */
#define KERNEL_SHARE 0.8
#define STEPS_SHOWN 10000U

/* The divisor of totals, so that recordings of different lengths compare. */
enum unit { A_STEP, A_COLLECTIVE, A_SECOND };
static const char *const unit_names[] = {"a step", "a collective", "a second"};

struct found {
	struct xsp_ranks *job;
	struct xsp_report *report;
	enum unit unit;
	int64_t *scratch;
	/* Looks for stragglers; otherwise for late ranks without a reason in operators. */
	bool in_operators;
	/* Without a capture: moments are the job's. */
	struct xsp_rule_context rules;
	struct xsp_rule_finding finding; /* the current one */
	char who[96], subject[320];
};

static double units_of(const struct rank *k, enum unit unit)
{
	if (unit == A_STEP)
		return (double)k->steps.count;
	return unit == A_COLLECTIVE ? (double)k->matched : (double)k->recorded_ns * 1e-9;
}

static enum unit unit_for(const struct xsp_ranks *j)
{
	enum unit unit = A_STEP;

	for (; unit < A_SECOND; unit++) {
		size_t have = 0;
		for (size_t i = 0; i < j->count; i++)
			have += units_of(&j->ranks[i], unit) > 0;
		if (have == j->count)
			break;
	}
	return unit;
}

static struct xsp_cell known(bool is, int64_t value)
{
	return is ? xsp_cell_integer((uint64_t)value) : xsp_cell_absent();
}

static struct xsp_cell share(int64_t part, int64_t all)
{
	return all > 0 ? xsp_cell_real((double)part / (double)all) : xsp_cell_absent();
}

/* ---- the job ---- */

/* Caveats: why figures may be off. */
static const struct {
	size_t at; /* offset of a flag in struct rank */
	const char *text;
} doubts[] = {
	{offsetof(struct rank, lossy), "events were lost"},
	{offsetof(struct rank, windows),
	 "not all of the time was recorded (windows of --max-overhead)"},
	{offsetof(struct rank, damaged), "its capture is damaged, or was not ended"},
};
#define DOUBTS (sizeof(doubts) / sizeof(doubts[0]))

static bool is_doubtful(const struct rank *k, size_t doubt)
{
	return *(const bool *)((const char *)k + doubts[doubt].at);
}

/* The first caveat that holds for any rank; NULL: none. */
static const char *doubt(const struct xsp_ranks *j)
{
	for (size_t d = 0; d < DOUBTS; d++)
		for (size_t i = 0; i < j->count; i++)
			if (is_doubtful(&j->ranks[i], d))
				return doubts[d].text;
	return NULL;
}

static void note_rank(const struct xsp_ranks *j, size_t rank, struct xsp_report_section *s)
{
	const struct rank *k = &j->ranks[rank];
	char title[96];

	xsp_ranks_title(k, title, sizeof(title));
	for (size_t d = 0; d < DOUBTS; d++)
		if (is_doubtful(k, d))
			xsp_report_notef(s, "%s: %s: its figures are lower bounds", title,
					 doubts[d].text);
	if (k->matched > 0 && !k->waits_known)
		xsp_report_notef(
			s,
			"%s: its waits were not recorded (--waits): it is taken to wait from its arrival at a collective to the last rank's",
			title);
	for (size_t before = 0; before < rank && k->number >= 0; before++)
		if (j->ranks[before].number == k->number)
			xsp_report_notef(
				s, "%s is there more than once: are these captures of one job?",
				title);
}

static void note_job(const struct xsp_ranks *j, struct xsp_report_section *s)
{
	char count[XSP_UNITS_SIZE];
	uint64_t unmatched = 0, of_no_group = 0;

	for (size_t i = 0; i < j->count; i++) {
		unmatched += j->ranks[i].unmatched;
		of_no_group += j->ranks[i].gpu_of_no_group;
		note_rank(j, i, s);
	}
	if (unmatched > 0)
		xsp_report_notef(
			s,
			"collectives that were recorded on one rank only, or whose group could not be told: %s",
			xsp_format_count(count, unmatched));
	if (of_no_group > 0)
		xsp_report_notef(
			s, "kernels of collectives that no recorded call of c10d launched: %s",
			xsp_format_count(count, of_no_group));
	if (j->collectives.count == 0)
		xsp_report_note(
			s,
			"no collective was recorded on two ranks: what waits for whom is not known, and clocks are as the hosts have them");
	if (j->hosts_not_aligned > 0)
		xsp_report_notef(
			s,
			"clocks of %zu hosts are as they have them: no collective that all leave together was recorded on them and on the first rank's host",
			j->hosts_not_aligned);
}

static void report_job(struct found *f)
{
	struct xsp_ranks *j = f->job;
	struct xsp_report_section *s = xsp_report_section(f->report, "job", "Job");
	uint64_t calls = 0;
	long world = -1;

	for (size_t i = 0; i < j->count; i++)
		world = j->ranks[i].world > world ? j->ranks[i].world : world;
	for (size_t i = 0; i < j->collectives.count; i++)
		calls += j->collectives.rows[i].calls;
	xsp_report_value(s, "captures", "captures", XSP_UNIT_COUNT, xsp_cell_integer(j->captures));
	xsp_report_value(s, "ranks", "ranks recorded", XSP_UNIT_COUNT, xsp_cell_integer(j->count));
	xsp_report_value(s, "world_size", "ranks of the job", XSP_UNIT_COUNT,
			 known(world > 0, world));
	xsp_report_value(s, "hosts", "hosts", XSP_UNIT_COUNT, xsp_cell_integer(j->hosts));
	xsp_report_value(s, "time_ns", "from the first recording's beginning to the last one's end",
			 XSP_UNIT_NS, xsp_cell_integer((uint64_t)(j->end_ns - j->start_ns)));
	xsp_report_value(s, "collectives", "collectives on several ranks", XSP_UNIT_COUNT,
			 xsp_cell_integer(calls));
	xsp_report_value(s, "spread_median_ns", "ends of one collective lie apart, median",
			 XSP_UNIT_NS, known(j->spreads > 0, j->spread_median_ns));
	xsp_report_value(s, "spread_max_ns", "... at most", XSP_UNIT_NS,
			 known(j->spreads > 0, j->spread_most_ns));
	note_job(j, s);
}

/* ---- ranks ---- */

/* Mean over the steps after warm-up. */
static int64_t mean_step(const struct rank *k, bool own)
{
	int64_t sum = 0, count = 0;

	for (size_t i = 0; i < k->steps.count; i++) {
		const struct rank_step *s = &k->steps.rows[i];
		if (s->warm_up)
			continue;
		sum += s->end_ns - s->start_ns - (own ? s->waited_ns : 0);
		count++;
	}
	return count > 0 ? sum / count : 0;
}

#define RANK(member) XSP_FIELD(struct rank, member)
#define RANK_MET(member) XSP_FIELD_IF(struct rank, member, matched)
#define RANK_CELL(name, value) XSP_REPORT_CELL(rank_##name, struct xsp_ranks, struct rank, value)

RANK_CELL(number, known(row->number >= 0, row->number));
RANK_CELL(host, xsp_cell_text(row->host[0] != '\0' ? row->host : NULL));
RANK_CELL(blocked, known(row->matched > 0 && row->waits_known, row->blocked_ns));
RANK_CELL(blocked_share, row->matched > 0 && row->waits_known
				 ? share(row->blocked_ns, row->recorded_ns)
				 : known(false, 0));
RANK_CELL(transfer, known(row->matched > 0, row->in_ns - row->waited_ns));
RANK_CELL(step, known(row->steps.count > 0, mean_step(row, false)));
RANK_CELL(own_step, known(row->steps.count > 0, mean_step(row, true)));
RANK_CELL(shift, known(of->hosts > 1, row->shift_ns));

static const struct xsp_report_column rank_columns[] = {
	{"rank", "rank", XSP_UNIT_COUNT, true, XSP_BY(rank_number)},
	{"host", "host", XSP_UNIT_TEXT, false, XSP_BY(rank_host)},
	{"process", "process", XSP_UNIT_NUMBER, false, RANK(display_pid)},
	{"collectives", "collectives", XSP_UNIT_COUNT, false, RANK(matched)},
	{"last", "last to come", XSP_UNIT_COUNT, false, RANK_MET(times_last)},
	{"late_ns", "late by", XSP_UNIT_NS, false, RANK_MET(late_ns)},
	{"waited_ns", "waited for others", XSP_UNIT_NS, false, RANK_MET(waited_ns)},
	{"blocked_ns", "of that blocked", XSP_UNIT_NS, false, XSP_BY(rank_blocked)},
	{"blocked_share", "of its time", XSP_UNIT_SHARE, false, XSP_BY(rank_blocked_share)},
	{"transfer_ns", "in transfers", XSP_UNIT_NS, false, XSP_BY(rank_transfer)},
	{"steps", "steps", XSP_UNIT_COUNT, false, RANK(steps.count)},
	{"step_ns", "a step", XSP_UNIT_NS, false, XSP_BY(rank_step)},
	{"own_step_ns", "without waiting", XSP_UNIT_NS, false, XSP_BY(rank_own_step)},
	{"clock_shift_ns", "clock moved by, ns", XSP_UNIT_NUMBER, false, XSP_BY(rank_shift)},
};
XSP_REPORT_SHAPE(analyze, ranks_shape, "ranks", "ranks", "Ranks", rank_columns);

static void report_ranks(struct found *f)
{
	struct xsp_report_section *s = xsp_report_section(f->report, "ranks", "Ranks");
	struct xsp_report_table *t = xsp_report_table(s, &ranks_shape);

	xsp_report_rows(t, f->job, f->job->ranks, sizeof(*f->job->ranks), f->job->count);
	xsp_report_note(
		s,
		"late by: in all, after the others' median, where it was more than what ends lie apart; waited: from its own arrival to the last one's; blocked: "
		"a thread of it stood still for that, or its GPU had nothing else to do");
}

/* ---- steps ---- */

struct step_row {
	uint64_t number;
	const struct rank *slowest;
	int64_t time_ns, own_ns, median_ns;
	size_t ranks;
};

/* The ranks' steps at the middle of one of `first`'s steps. */
static struct step_row step_row(const struct xsp_ranks *j, const struct rank *first,
				const struct rank_step *at, int64_t *scratch)
{
	const int64_t middle = at->start_ns + (at->end_ns - at->start_ns) / 2 + first->shift_ns;
	struct step_row row = {.number = at->number, .slowest = &j->ranks[0], .own_ns = -1};

	for (size_t i = 0; i < j->count; i++) {
		const struct rank *k = &j->ranks[i];
		const struct rank_step *s = xsp_ranks_step_at(k, middle - k->shift_ns);
		if (s == NULL)
			continue;
		const int64_t time = s->end_ns - s->start_ns, own = time - s->waited_ns;
		scratch[row.ranks++] = own;
		row.time_ns = time > row.time_ns ? time : row.time_ns;
		if (own <= row.own_ns)
			continue;
		row.own_ns = own;
		row.slowest = k;
	}
	row.median_ns = xsp_ranks_median(scratch, row.ranks);
	return row;
}

#define STEP(member) XSP_FIELD(struct step_row, member)
#define STEP_CELL(name, value) XSP_REPORT_CELL(name, struct found, struct step_row, value)

STEP_CELL(slowest_rank, known(row->slowest->number >= 0, row->slowest->number));
STEP_CELL(step_ranks, xsp_cell_integer(row->ranks));

static const struct xsp_report_column step_columns[] = {
	{"step", "step", XSP_UNIT_COUNT, true, STEP(number)},
	{"time_ns", "time", XSP_UNIT_NS, false, STEP(time_ns)},
	{"rank", "slowest rank", XSP_UNIT_COUNT, false, XSP_BY(slowest_rank)},
	{"own_ns", "its own time", XSP_UNIT_NS, false, STEP(own_ns)},
	{"median_own_ns", "median of the ranks", XSP_UNIT_NS, false, STEP(median_ns)},
	{"ranks", "ranks", XSP_UNIT_COUNT, false, XSP_BY(step_ranks)},
};
XSP_REPORT_SHAPE(analyze, steps_shape, "rank_steps", "rank_steps", "Steps by rank", step_columns);

static void put_steps(struct found *f, struct xsp_report_section *s, const struct rank *first)
{
	struct xsp_report_table *t = xsp_report_table(s, &steps_shape);
	int64_t sum = 0, count = 0;

	for (size_t i = 0; i < first->steps.count; i++) {
		const struct step_row row =
			step_row(f->job, first, &first->steps.rows[i], f->scratch);
		sum += first->steps.rows[i].warm_up ? 0 : row.time_ns;
		count += !first->steps.rows[i].warm_up;
		if (i < STEPS_SHOWN)
			xsp_report_add(t, f, &row);
	}
	xsp_report_value(s, "steps", "steps", XSP_UNIT_COUNT, xsp_cell_integer(first->steps.count));
	xsp_report_value(s, "mean_ns", "mean, of each step its slowest rank's", XSP_UNIT_NS,
			 known(count > 0, count > 0 ? sum / count : 0));
	if ((size_t)count < first->steps.count)
		xsp_report_notef(s,
				 "the first %zu are warm-up: they are in the table, and in no mean",
				 first->steps.count - (size_t)count);
	if (first->steps.count > STEPS_SHOWN)
		xsp_report_note(s, "the table has the first 10,000 steps");
	xsp_report_note(
		s,
		"a step takes as long as its slowest rank; own time: without what the rank was blocked for others that were late");
}

static void report_steps(struct found *f)
{
	const struct rank *first = NULL;
	struct xsp_report_section *s = xsp_report_section(f->report, "rank_steps", "Steps by rank");

	for (size_t i = 0; i < f->job->count; i++)
		if (first == NULL || f->job->ranks[i].steps.count > first->steps.count)
			first = &f->job->ranks[i];
	if (first != NULL && first->steps.count > 0)
		put_steps(f, s, first);
	else if (f->job->marker != NULL)
		xsp_report_notef(s, "no whole span is called %.100s (--step)", f->job->marker);
	else
		xsp_report_note(
			s, "nothing marks steps: ProfilerStep#N, Optimizer.step, or --step NAME");
}

/* ---- collectives ---- */

/* Over all ranks: the mean bytes of a call, and which rank was late most. */
static void sum_up(const struct xsp_ranks *j, struct collective_sum *c)
{
	uint64_t bytes = 0, calls = 0;

	for (size_t i = 0; i < j->count; i++) {
		struct rank *k = &j->ranks[i];
		const struct operator_sum *sum = xsp_ranks_sum(k, c->name, false);
		xsp_add_saturated(&bytes, sum != NULL ? sum->bytes : 0);
		calls += sum != NULL ? sum->sized : 0;
		for (size_t l = 0; l < k->late.count; l++)
			if (k->late.rows[l].name == c->name &&
			    k->late.rows[l].sum_ns > c->late_ns) {
				c->late_ns = k->late.rows[l].sum_ns;
				c->latest = k;
			}
	}
	c->mean_bytes = calls > 0 && bytes != XSP_TOO_MUCH ? bytes / calls : 0;
}

static XSP_ORDER(by_waited, struct collective_sum, XSP_FALLING(waited_ns) ?: XSP_RISING(name));

#define COLLECTIVE(member) XSP_FIELD(struct collective_sum, member)
#define COLLECTIVE_CELL(name, value)                                                               \
	XSP_REPORT_CELL(collective_##name, struct xsp_ranks, struct collective_sum, value)

COLLECTIVE_CELL(name, xsp_cell_text(of->names.rows[row->name]));
COLLECTIVE_CELL(transfer, known(true, row->transfer_ns / (int64_t)row->calls));

COLLECTIVE_CELL(rank, known(row->latest != NULL && row->latest->number >= 0,
			    row->latest != NULL ? row->latest->number : 0));

static const struct xsp_report_column collective_columns[] = {
	{"operator", "collective", XSP_UNIT_TEXT, true, XSP_BY(collective_name)},
	{"calls", "calls", XSP_UNIT_COUNT, false, COLLECTIVE(calls)},
	{"ranks", "ranks", XSP_UNIT_COUNT, false, COLLECTIVE(ranks)},
	{"time_ns", "time in it", XSP_UNIT_NS, false, COLLECTIVE(in_ns)},
	{"waited_ns", "for late ranks", XSP_UNIT_NS, false, COLLECTIVE(waited_ns)},
	{"max_waited_ns", "at most", XSP_UNIT_NS, false, COLLECTIVE(most_waited_ns)},
	{"transfer_ns", "transfer, mean", XSP_UNIT_NS, false, XSP_BY(collective_transfer)},
	{"bytes", "bytes, mean", XSP_UNIT_BYTES, false,
	 XSP_FIELD_IF(struct collective_sum, mean_bytes, mean_bytes)},
	{"rank", "latest rank", XSP_UNIT_COUNT, false, XSP_BY(collective_rank)},
	{"late_ns", "late by", XSP_UNIT_NS, false,
	 XSP_FIELD_IF(struct collective_sum, late_ns, late_ns)},
};
XSP_REPORT_SHAPE(analyze, collectives_shape, "collectives", "collectives", "Collectives",
		 collective_columns);

static void report_collectives(struct found *f)
{
	struct xsp_ranks *j = f->job;
	struct xsp_report_section *s = xsp_report_section(f->report, "collectives", "Collectives");
	struct xsp_report_table *t = xsp_report_table(s, &collectives_shape);

	xsp_tally_sort(&j->collectives, by_waited);
	for (size_t i = 0; i < j->collectives.count; i++) {
		sum_up(j, &j->collectives.rows[i]);
		xsp_report_add(t, j, &j->collectives.rows[i]);
	}
	xsp_report_note(
		s,
		"times are sums over the ranks; for late ranks: until the last one had come; transfer: what the last one to come took");
}

/* ---- who holds the others up ---- */

/* By how much an operator takes longer on a rank than on the others. */
struct excess {
	uint32_t name;
	bool gpu, waits;
	double ns; /* in total */
	double own, others; /* self time for each unit */
	double calls, others_calls;
};

/* A figure of a rank. Counts are in thousandths: the median is an integer. */
typedef double figure_fn(struct rank *k, const void *of);

static double calls_of(struct rank *k, const void *of)
{
	const struct operator_sum *s = xsp_ranks_sum(k, *(const uint32_t *)of, false);

	return s != NULL ? 1000 * (double)s->calls : 0;
}

static double self_of(struct rank *k, const void *of)
{
	const struct operator_sum *s = xsp_ranks_sum(k, *(const uint32_t *)of, false);

	return s != NULL ? (double)s->self_ns : 0;
}

static double line_of(struct rank *k, const void *of)
{
	const struct line_sum *at = of, *s = xsp_ranks_line(k, at->line, at->in);

	return s != NULL ? (double)s->ns : 0;
}

/* Median over the other ranks, for each unit. */
static double others_median(struct found *f, size_t rank, figure_fn *figure, const void *of)
{
	size_t n = 0;

	for (size_t i = 0; i < f->job->count; i++) {
		struct rank *k = &f->job->ranks[i];
		if (i != rank)
			f->scratch[n++] = (int64_t)(figure(k, of) / units_of(k, f->unit));
	}
	return (double)xsp_ranks_median(f->scratch, n);
}

static struct excess excess_of(struct found *f, size_t rank, const struct operator_sum *sum)
{
	const double units = units_of(&f->job->ranks[rank], f->unit);
	struct excess e = {.name = sum->name,
			   .gpu = sum->gpu,
			   .waits = sum->waits,
			   .own = (double)sum->self_ns / units,
			   .calls = (double)sum->calls / units,
			   .others = others_median(f, rank, self_of, &sum->name),
			   .others_calls = others_median(f, rank, calls_of, &sum->name) / 1000};

	e.ns = (e.own - e.others) * units;
	return e;
}

/*
 * The line of the program at which the rank spends most time beyond the others, in the operator or (0) in none. Shown if it
 * explains as much of the lateness as an operator must.
 */
static void add_line(struct found *f, const struct rank *k, uint32_t in)
{
	const size_t rank = (size_t)(k - f->job->ranks);
	const double units = units_of(k, f->unit);
	const struct line_sum *most = NULL;
	double most_ns = OPERATOR_SHARE * (double)k->late_ns / units, most_others = 0;

	for (size_t i = 0; i < k->lines.count; i++) {
		const struct line_sum *at = &k->lines.rows[i];
		const double own = (double)at->ns / units;
		if (at->in != in || own <= most_ns)
			continue;
		const double others = others_median(f, rank, line_of, at);
		if (own - others <= most_ns)
			continue;
		most = at;
		most_ns = own - others;
		most_others = others;
	}
	if (most == NULL)
		return;
	xsp_finding_text(&f->finding, "line", "line", f->job->names.rows[most->line]);
	xsp_finding_ns(&f->finding, "line_ns", "its time there by unit",
		       (uint64_t)((double)most->ns / units));
	xsp_finding_ns(&f->finding, "line_others_ns", "median of the others there",
		       (uint64_t)most_others);
}

/* Fills in what both findings have: the rank, the amount, and a place to look at. `what`: an
 * operator or a collective. */
static void begin_finding(struct found *f, const struct rank *k, const struct lateness *l,
			  double part, const char *what)
{
	const int64_t at = l->most_at_ns - f->job->start_ns;
	struct xsp_rule_finding *g = &f->finding;

	*g = (struct xsp_rule_finding){.subject = f->subject,
				       .part.share = part < 1 ? part : 1,
				       .uncertain = doubt(f->job)};
	if (at > 0) {
		g->at_ns = at > l->most_ns ? (uint64_t)(at - l->most_ns) : 0;
		g->for_ns = (uint64_t)at - g->at_ns;
	}
	xsp_ranks_title(k, f->who, sizeof(f->who));
	/* Without the host, it is the same in every run of the job. */
	if (k->number >= 0)
		snprintf(f->subject, sizeof(f->subject), "rank %ld: %s", k->number, what);
	else
		snprintf(f->subject, sizeof(f->subject), "process %u: %s", k->display_pid, what);
	xsp_finding_text(g, "who", NULL, f->who);
	xsp_finding_figure(g, "rank", "rank", XSP_UNIT_COUNT, known(k->number >= 0, k->number));
	xsp_finding_figure(g, "host", "host", XSP_UNIT_TEXT,
			   xsp_cell_text(k->host[0] != '\0' ? k->host : NULL));
	xsp_finding_ns(g, "late_ns", "late by, in all", (uint64_t)k->late_ns);
	xsp_finding_text(g, "collective", "most at", f->job->names.rows[l->name]);
	xsp_finding_count(g, "late_times", "times last, as in the table of ranks", k->times_last);
	xsp_finding_count(g, "late_calls", "of", k->matched);
	xsp_finding_ns(g, "late_max_ns", "at most by", (uint64_t)l->most_ns);
}

static void report_straggler(struct found *f, const struct rank *k, const struct lateness *l,
			     const struct excess *e, double part)
{
	const char *name = f->job->names.rows[e->name];
	const bool more = e->calls > 1.1 * e->others_calls;
	struct xsp_rule_finding *g = &f->finding;

	begin_finding(f, k, l, part, name);
	xsp_finding_text(g, "operator", "operator", name);
	xsp_finding_ns(g, "operator_ns", "its self time by unit", (uint64_t)e->own);
	xsp_finding_ns(g, "others_ns", "median of the others", (uint64_t)e->others);
	xsp_finding_text(g, "unit", "unit", unit_names[f->unit]);
	xsp_finding_number(g, "calls", NULL, e->calls);
	xsp_finding_number(g, "others_calls", NULL, e->others_calls);
	xsp_finding_flag(g, "calls_more", more);
	xsp_finding_flag(g, "on_gpu", !more && e->gpu);
	xsp_finding_flag(g, "on_cpu", !more && !e->gpu);
	add_line(f, k, 1 + e->name);
	xsp_rule_found(&f->rules, g);
}

static void report_late(struct found *f, const struct rank *k, const struct lateness *l,
			double part)
{
	begin_finding(f, k, l, part, f->job->names.rows[l->name]);
	xsp_finding_ns(&f->finding, "late_mean_ns", NULL,
		       (uint64_t)(l->sum_ns / (int64_t)l->times));
	xsp_finding_text(&f->finding, "unit", NULL, unit_names[f->unit]);
	add_line(f, k, 0);
	xsp_rule_found(&f->rules, &f->finding);
}

static bool is_late(struct found *f, size_t rank, double *part)
{
	const struct rank *k = &f->job->ranks[rank];
	const int64_t time = f->job->end_ns - f->job->start_ns;
	uint64_t times = 0;
	size_t n = 0;

	for (size_t i = 0; i < k->late.count; i++)
		times += k->late.rows[i].times;
	for (size_t i = 0; i < f->job->count; i++)
		if (i != rank)
			f->scratch[n++] = f->job->ranks[i].late_ns;
	*part = time > 0 ? (double)k->late_ns / (double)time : 0;
	return times >= LATE_TIMES && *part >= f->rules.threshold &&
	       k->late_ns > LATE_FACTOR * xsp_ranks_median(f->scratch, n);
}

static void judge_rank(struct found *f, size_t rank)
{
	const struct rank *k = &f->job->ranks[rank];
	const struct lateness *worst = NULL;
	struct excess most = {.ns = 0}, on_gpu = {.ns = 0};
	/* Excess of threads and of GPUs: a call that waits for a kernel takes no extra time. */
	double explained[2] = {0, 0}, part;

	for (size_t i = 0; i < k->late.count; i++)
		if (worst == NULL || k->late.rows[i].sum_ns > worst->sum_ns)
			worst = &k->late.rows[i];
	if (worst == NULL || !is_late(f, rank, &part))
		return;
	for (size_t i = 0; i < k->sums.count; i++) {
		const struct excess e = excess_of(f, rank, &k->sums.rows[i]);
		explained[e.gpu] += e.ns > 0 ? e.ns : 0;
		if (e.ns > most.ns)
			most = e;
		if (e.gpu && e.ns > on_gpu.ns)
			on_gpu = e;
	}
	/* If calls take longer because they wait for a slow kernel, the kernel is to blame. */
	if (on_gpu.ns >= (most.waits ? OPERATOR_SHARE : KERNEL_SHARE) * most.ns)
		most = on_gpu;
	const double all = explained[0] > explained[1] ? explained[0] : explained[1];
	const bool one = most.ns >= OPERATOR_SHARE * (double)k->late_ns;
	if (f->in_operators && one)
		report_straggler(f, k, worst, &most, part);
	/* Nothing explains it, or many operators do, each a little. */
	if (!f->in_operators &&
	    (!one || (double)k->late_ns - all >= REST_SHARE * (double)k->late_ns))
		report_late(f, k, worst, part);
}

int xsp_ranks_report(struct xsp_ranks *j, struct xsp_report *report)
{
	struct found f = {.job = j, .report = report, .unit = unit_for(j)};

	f.scratch = calloc(j->count + 1, sizeof(*f.scratch));
	if (f.scratch == NULL)
		return -ENOMEM;
	report_job(&f);
	report_ranks(&f);
	report_steps(&f);
	report_collectives(&f);
	free(f.scratch);
	return xsp_report_failed(report) ? -ENOMEM : 0;
}

int xsp_ranks_find(struct xsp_ranks *j, const struct xsp_rule_context *c)
{
	struct found f = {
		.job = j,
		.unit = unit_for(j),
		.in_operators = strcmp(c->rule->key, XSP_RULE_STRAGGLER) == 0,
		.rules = {.rule = c->rule, .threshold = c->threshold, .report = c->report}};

	f.scratch = calloc(j->count + 1, sizeof(*f.scratch));
	if (f.scratch == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < j->count; i++)
		judge_rank(&f, i);
	free(f.scratch);
	return xsp_report_failed(c->report) ? -ENOMEM : 0;
}
