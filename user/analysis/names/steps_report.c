/* SPDX-License-Identifier: BSD-2-Clause */
/* steps_report.c - steps in reports: their time, the slowest, and what took longer in them. */
#include "analysis/names/steps_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "model/health.h"
#include "report/list.h"

/* What took longer in a step than in the mean step. */
struct longer {
	struct xsp_step_share share; /* key NO_SPAN: all time outside spans */
	double mean_ns, mean_calls;
};
#define NO_SPAN UINT32_MAX
#define LONGER_SHOWN 3
#define SLOWEST_SHOWN 3
#define LONGER_SHARE 20 /* less than 1/20 of the step's excess is not shown */

static double more(const struct longer *l)
{
	return (double)l->share.ns - l->mean_ns;
}

static size_t put_in_order(struct longer *list, size_t count, const struct longer *new)
{
	size_t at = count;

	while (at > 0 && more(&list[at - 1]) < more(new))
		at--;
	if (at == LONGER_SHOWN)
		return count;
	count += count < LONGER_SHOWN;
	memmove(&list[at + 1], &list[at], (count - at - 1) * sizeof(*list));
	list[at] = *new;
	return count;
}

static const char *longer_name(const struct xsp_steps *s, const struct longer *l)
{
	return l->share.key == NO_SPAN ? "outside of traced calls"
				       : xsp_timeline_name(s->timeline, l->share.key);
}

static uint64_t sum_of_shares(const struct xsp_steps *s, uint32_t thread)
{
	const struct xsp_step_share *sums;
	const size_t count = xsp_step_shares_sums(s->shares, thread, &sums);
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += sums[i].ns;
	return sum;
}

/* Longest first; returns how many. */
static size_t find_longer(const struct xsp_steps *s, const struct step *step,
			  struct longer list[LONGER_SHOWN])
{
	const struct track *k = &s->tracks[step->track];
	const double steps = (double)k->steps, mean = (double)k->sum_ns / steps;
	const double least = ((double)step_length(step) - mean) / LONGER_SHARE;
	struct longer rest = {.share = {.key = NO_SPAN, .ns = step_length(step)},
			      .mean_ns = mean - (double)sum_of_shares(s, step->track) / steps};
	size_t count = 0;

	for (size_t i = 0; i < step->share_count; i++) {
		const struct xsp_step_share *share = &step->shares[i];
		const struct xsp_step_share *sum =
			xsp_step_shares_sum(s->shares, step->track, share->key);
		const struct longer l = {.share = *share,
					 .mean_ns = (double)sum->ns / steps,
					 .mean_calls = (double)sum->calls / steps};
		rest.share.ns -= share->ns <= rest.share.ns ? share->ns : rest.share.ns;
		if (more(&l) > 0 && more(&l) >= least)
			count = put_in_order(list, count, &l);
	}
	return more(&rest) > 0 && more(&rest) >= least ? put_in_order(list, count, &rest) : count;
}

bool xsp_steps_uncertain(const struct xsp_capture_reader *r)
{
	return xsp_health_of(r).events_lost > 0;
}

/* A smaller share lies within the estimate's own error. */
#define PROBES_TOLD 0.05

static bool have_probes(const struct xsp_steps *s)
{
	return s->steps > 0 && (double)s->probe_ns > PROBES_TOLD * (double)s->sum_ns;
}

static double deviation(const struct xsp_steps *s)
{
	return s->steps > 1 ? sqrt(s->squares / (double)(s->steps - 1)) : 0;
}

/* "python (4242)" */
static void thread_text(const struct xsp_steps *s, const struct track *k, char *out, size_t size)
{
	const struct xsp_timeline_thread *t = xsp_timeline_thread(s->timeline, k->tid);
	char name[64];

	xsp_printable(name, sizeof(name), t != NULL ? t->comm : "", 0);
	snprintf(out, size, "%s (%" PRIu32 ")", name, t != NULL ? t->ns_tid : k->tid);
}

/* ---- columns ---- */

/* What columns of steps and threads need besides their row. */
struct around {
	const struct xsp_steps *steps;
	uint64_t from_ns; /* beginning of the capture */
};

#define SUM(name, value)                                                                           \
	XSP_REPORT_CELL(sum_##name, struct xsp_capture_reader, struct xsp_steps, value)
#define OF(member) XSP_FIELD(struct xsp_steps, member)
#define IF_ANY(member) XSP_FIELD_IF(struct xsp_steps, member, steps)

static struct xsp_cell real_if(bool known, double value)
{
	return known ? xsp_cell_real(value) : xsp_cell_absent();
}

SUM(marker, xsp_cell_text(row->title));
SUM(per_second, real_if(row->mean > 0, 1e9 / row->mean));
SUM(calls, real_if(row->steps > 0, (double)row->calls / (double)row->steps));
SUM(mean, real_if(row->steps > 0, row->mean));
SUM(std, real_if(row->steps > 1, deviation(row)));
SUM(p50, xsp_cell_if(row->steps > 0, xsp_steps_quantile(row, 0.5)));
SUM(p99, xsp_cell_if(row->steps > 0, xsp_steps_quantile(row, 0.99)));
SUM(probes, real_if(have_probes(row), (double)row->probe_ns / (double)row->steps));
SUM(warm_up, xsp_cell_integer(row->warm_up_count));
SUM(warm_up_time, xsp_cell_if(row->warm_up_count > 0, xsp_steps_figures(row).warm_up_ns));
SUM(left_out, xsp_cell_if(row->left_out > 0, row->left_out));
/* For JSON: whole nanoseconds. */
SUM(mean_whole, xsp_cell_if(row->steps > 0, (uint64_t)llround(row->mean)));
SUM(std_whole, xsp_cell_if(row->steps > 1, (uint64_t)llround(deviation(row))));
SUM(probes_whole, xsp_cell_if(row->steps > 0, row->steps > 0 ? row->probe_ns / row->steps : 0));
SUM(uncertain, xsp_cell_bool(xsp_steps_uncertain(of)));

static const struct xsp_report_column sum_columns[] = {
	{"marker", "marked by", XSP_UNIT_TEXT, false, XSP_BY(sum_marker)},
	{"steps", "steps", XSP_UNIT_COUNT, false, OF(steps)},
	{"steps_per_second", "steps a second, a thread", XSP_UNIT_PER_SECOND, false,
	 XSP_BY(sum_per_second)},
	{"calls_per_step", "calls a step", XSP_UNIT_COUNT, false, XSP_BY(sum_calls)},
	{"mean_ns", "mean", XSP_UNIT_NS, false, XSP_BY(sum_mean)},
	{"std_ns", "std", XSP_UNIT_NS, false, XSP_BY(sum_std)},
	{"min_ns", "min", XSP_UNIT_NS, false, IF_ANY(min_ns)},
	{"p50_ns", "p50", XSP_UNIT_NS, false, XSP_BY(sum_p50)},
	{"p99_ns", "p99", XSP_UNIT_NS, false, XSP_BY(sum_p99)},
	{"max_ns", "max", XSP_UNIT_NS, false, IF_ANY(max_ns)},
	{"probe_ns", "of it in probes, estimated, in the mean", XSP_UNIT_NS, false,
	 XSP_BY(sum_probes)},
	{"warm_up", "left out as warm-up", XSP_UNIT_COUNT, false, XSP_BY(sum_warm_up)},
	{"warm_up_ns", "... which took", XSP_UNIT_NS, false, XSP_BY(sum_warm_up_time)},
	{"not_whole", "left out as not recorded from beginning to end", XSP_UNIT_COUNT, false,
	 OF(not_whole)},
	{"left_out", "left out as of more threads than are followed", XSP_UNIT_COUNT, false,
	 XSP_BY(sum_left_out)},
};
static const struct xsp_report_column more_sums[] = {
	{"calls", "calls", XSP_UNIT_COUNT, false, OF(calls)},
	{"mean_ns", "mean", XSP_UNIT_NS, false, XSP_BY(sum_mean_whole)},
	{"std_ns", "std", XSP_UNIT_NS, false, XSP_BY(sum_std_whole)},
	{"probe_ns", "of it in probes", XSP_UNIT_NS, false, XSP_BY(sum_probes_whole)},
	{"uncertain", "uncertain", XSP_UNIT_NUMBER, false, XSP_BY(sum_uncertain)},
};
static const struct xsp_list sum_list = {
	XSP_LIST_COLUMNS(sum_columns),
	XSP_LIST_MORE(more_sums),
	.known = true,
	.json = "steps",
	.keys = "marker steps calls not_whole left_out? mean_ns? std_ns? min_ns? p50_ns? p99_ns? max_ns? probe_ns? uncertain",
};

static const struct xsp_timeline_thread *thread_of(const struct around *a, const struct track *k)
{
	return xsp_timeline_thread(a->steps->timeline, k->tid);
}

static struct xsp_cell tid_of(const struct around *a, const struct track *k)
{
	const struct xsp_timeline_thread *t = thread_of(a, k);

	return xsp_cell_integer(t != NULL ? t->ns_tid : k->tid);
}

static struct xsp_cell thread_cell(struct xsp_report_at *at, const struct track *k)
{
	thread_text(((const struct around *)at->of)->steps, k, at->text, 128);
	return xsp_cell_text(at->text);
}

#define STEP(name, value) XSP_REPORT_CELL(step_##name, struct around, struct step, value)
STEP(time, xsp_cell_integer(step_length(row)));
STEP(start, xsp_cell_integer(row->start_ns > of->from_ns ? row->start_ns - of->from_ns : 0));
STEP(thread, thread_cell(at, &of->steps->tracks[row->track]));
STEP(tid, tid_of(of, &of->steps->tracks[row->track]));

/* "aten::mm +1.20 ms, outside of traced calls +300 us" */
static struct xsp_cell step_longer(struct xsp_report_at *at)
{
	const struct xsp_steps *s = ((const struct around *)at->of)->steps;
	struct longer list[LONGER_SHOWN + 1];
	const size_t count = find_longer(s, at->row, list);
	char time[XSP_UNITS_SIZE];

	at->text[0] = '\0';
	for (size_t i = 0; i < count; i++)
		xsp_join(at->text, sizeof(at->text), ", ", "%.1200s +%s", longer_name(s, &list[i]),
			 xsp_format_ns(time, (uint64_t)more(&list[i])));
	return xsp_cell_text(at->text);
}

static const struct xsp_report_column step_columns[] = {
	{"step", "step", XSP_UNIT_NUMBER, true, XSP_FIELD(struct step, number)},
	{"time_ns", "time", XSP_UNIT_NS, false, XSP_BY(step_time)},
	{"start_ns", "begins at", XSP_UNIT_TIME, false, XSP_BY(step_start)},
	{"calls", "calls", XSP_UNIT_COUNT, false, XSP_FIELD(struct step, calls)},
	{"thread", "thread", XSP_UNIT_TEXT, false, XSP_BY(step_thread)},
	{"longer", "what took longer than in the mean", XSP_UNIT_TEXT, false, XSP_BY(step_longer)},
};
XSP_REPORT_SHAPE(analyze, slowest_shape, "steps", "slowest", "the slowest steps", step_columns);
static const struct xsp_report_column more_of_steps[] = {
	{"number", "step", XSP_UNIT_NUMBER, true, XSP_FIELD(struct step, number)},
	{"tid", "tid", XSP_UNIT_NUMBER, false, XSP_BY(step_tid)},
};
#define STEPS(path, ...)                                                                           \
	{                                                                                          \
		XSP_LIST_COLUMNS(step_columns), XSP_LIST_MORE(more_of_steps),                      \
			.json = (path), .keys = "number tid start_ns time_ns calls", __VA_ARGS__   \
	}
static const struct xsp_list slowest_list = STEPS("steps.slowest", .full = &slowest_shape);
static const struct xsp_list warm_up_list = STEPS("steps.warm_up", .full = NULL);

#define LONGER(name, value) XSP_REPORT_CELL(longer_##name, struct xsp_steps, struct longer, value)
LONGER(span, xsp_cell_text(row->share.key != NO_SPAN ? longer_name(of, row) : NULL));
LONGER(mean, xsp_cell_integer((uint64_t)llround(row->mean_ns)));
LONGER(calls, xsp_cell_if(row->share.key != NO_SPAN, row->share.calls));

static const struct xsp_report_column longer_columns[] = {
	{"name", "name", XSP_UNIT_TEXT, true, XSP_BY(longer_span)},
	{"self_ns", "self", XSP_UNIT_NS, false, XSP_FIELD(struct longer, share.ns)},
	{"mean_self_ns", "in the mean", XSP_UNIT_NS, false, XSP_BY(longer_mean)},
	{"calls", "calls", XSP_UNIT_COUNT, false, XSP_BY(longer_calls)},
};
static const struct xsp_list longer_list = {XSP_LIST_COLUMNS(longer_columns), .json = "longer",
					    .keys = "name self_ns mean_self_ns calls?"};

#define TRACK(name, value) XSP_REPORT_CELL(track_##name, struct around, struct track, value)
TRACK(thread, thread_cell(at, row));
TRACK(mean, xsp_cell_integer(row->sum_ns / row->steps));
TRACK(calls, xsp_cell_real((double)row->calls / (double)row->steps));
TRACK(name, xsp_cell_text(thread_of(of, row) != NULL ? thread_of(of, row)->comm : ""));
TRACK(pid, xsp_cell_integer(thread_of(of, row) != NULL ? thread_of(of, row)->ns_pid : row->pid));
TRACK(tid, tid_of(of, row));

static const struct xsp_report_column track_columns[] = {
	{"thread", "thread", XSP_UNIT_TEXT, true, XSP_BY(track_thread)},
	{"steps", "steps", XSP_UNIT_COUNT, false, XSP_FIELD(struct track, steps)},
	{"mean_ns", "mean", XSP_UNIT_NS, false, XSP_BY(track_mean)},
	{"max_ns", "max", XSP_UNIT_NS, false, XSP_FIELD(struct track, max_ns)},
	{"calls_per_step", "calls a step", XSP_UNIT_COUNT, false, XSP_BY(track_calls)},
};
XSP_REPORT_SHAPE(analyze, threads_shape, "steps", "threads", "steps by thread", track_columns);
static const struct xsp_report_column more_of_tracks[] = {
	{"name", "thread", XSP_UNIT_TEXT, true, XSP_BY(track_name)},
	{"pid", "pid", XSP_UNIT_NUMBER, true, XSP_BY(track_pid)},
	{"tid", "tid", XSP_UNIT_NUMBER, true, XSP_BY(track_tid)},
	{"calls", "calls", XSP_UNIT_COUNT, false, XSP_FIELD(struct track, calls)},
};
static const struct xsp_list track_list = {
	XSP_LIST_COLUMNS(track_columns),
	XSP_LIST_MORE(more_of_tracks),
	.full = &threads_shape,
	.json = "steps.threads",
	.keys = "name pid tid steps calls mean_ns max_ns",
};

XSP_REPORT_CELL(share_name, struct xsp_steps, struct xsp_step_share,
		xsp_cell_text(xsp_timeline_name(of->timeline, row->key)));
static const struct xsp_report_column share_columns[] = {
	{"name", "name", XSP_UNIT_TEXT, true, XSP_BY(share_name)},
	{"calls", "calls", XSP_UNIT_COUNT, false, XSP_FIELD(struct xsp_step_share, calls)},
	{"self_ns", "self", XSP_UNIT_NS, false, XSP_FIELD(struct xsp_step_share, ns)},
};
static const struct xsp_list share_list = {XSP_LIST_COLUMNS(share_columns), .json = "names",
					   .keys = "name calls self_ns"};

/* ---- text ---- */

static void print_figures(const struct xsp_steps *s, FILE *out)
{
	const struct {
		const char *what;
		uint64_t ns;
	} times[] = {
		{"mean", (uint64_t)llround(s->mean)},
		{"std", (uint64_t)llround(deviation(s))},
		{"min", s->min_ns},
		{"p50", xsp_steps_quantile(s, 0.5)},
		{"p99", xsp_steps_quantile(s, 0.99)},
		{"max", s->max_ns},
	};
	char title[sizeof(s->title) + 4], text[XSP_UNITS_SIZE];

	xsp_printable(title, sizeof(title), s->title, 0);
	fprintf(out, "steps (%s): %s", title, xsp_format_count(text, s->steps));
	for (size_t i = 0; s->steps > 0 && i < sizeof(times) / sizeof(times[0]); i++)
		fprintf(out, ", %s %s", times[i].what,
			s->steps == 1 && i == 1 ? "-" : xsp_format_ns(text, times[i].ns));
	if (s->steps > 0)
		fprintf(out, "; calls a step: %.4g", (double)s->calls / (double)s->steps);
	if (have_probes(s))
		fprintf(out, "; estimated %s a step of it in probes",
			xsp_format_ns(text, s->probe_ns / s->steps));
	fputc('\n', out);
}

static void print_longer(const struct xsp_steps *s, const struct longer *l, FILE *f)
{
	char name[96], text[XSP_UNITS_SIZE], calls[XSP_UNITS_SIZE];

	xsp_printable(name, sizeof(name), longer_name(s, l), 48);
	fprintf(f, "%s +%s", name, xsp_format_ns(text, (uint64_t)more(l)));
	if (l->share.key != NO_SPAN && fabs((double)l->share.calls - l->mean_calls) >= 0.5)
		fprintf(f, " (%s calls, in the mean %.4g)", xsp_format_count(calls, l->share.calls),
			l->mean_calls);
}

static void print_slowest(const struct xsp_steps *s, FILE *out)
{
	struct longer list[LONGER_SHOWN + 1];
	char time[XSP_UNITS_SIZE], over[XSP_UNITS_SIZE], thread[128] = "";

	for (size_t i = 0; i < s->slowest_count && i < SLOWEST_SHOWN; i++) {
		const struct step *step = &s->slowest[i];
		const struct track *k = &s->tracks[step->track];
		const double mean = (double)k->sum_ns / (double)k->steps;
		if ((double)step_length(step) <= mean)
			return;
		const size_t count = find_longer(s, step, list);
		if (s->track_count > 1)
			thread_text(s, k, thread, sizeof(thread));
		fprintf(out, "      %s: step %" PRIu64 "%s%s, %s, %s over the mean: ",
			i == 0 ? "slowest" : "   then", step->number, thread[0] ? " of " : "",
			thread, xsp_format_ns(time, step_length(step)),
			xsp_format_ns(over, (uint64_t)((double)step_length(step) - mean)));
		for (size_t l = 0; l < count; l++) {
			fputs(l > 0 ? ", " : "", out);
			print_longer(s, &list[l], out);
		}
		fputs(count == 0 ? "a little of everything\n" : "\n", out);
	}
}

/* Threads of other processes are other ranks, so no single one stands for all. */
static void print_threads(const struct xsp_steps *s, FILE *f)
{
	const struct track *slow = NULL, *fast = NULL;
	char name[128], time[XSP_UNITS_SIZE];
	size_t count = 0;

	for (size_t i = 0; i < s->track_count; i++) {
		const struct track *k = &s->tracks[i];
		if (k->steps == 0)
			continue;
		count++;
		if (slow == NULL || k->sum_ns / k->steps > slow->sum_ns / slow->steps)
			slow = k;
		if (fast == NULL || k->sum_ns / k->steps < fast->sum_ns / fast->steps)
			fast = k;
	}
	if (count < 2)
		return;
	thread_text(s, slow, name, sizeof(name));
	fprintf(f, "      of %zu threads; the slowest, %s, takes %s in the mean", count, name,
		xsp_format_ns(time, slow->sum_ns / slow->steps));
	thread_text(s, fast, name, sizeof(name));
	fprintf(f, ", the fastest, %s, %s\n", name,
		xsp_format_ns(time, fast->sum_ns / fast->steps));
}

static void print_left_out(const struct xsp_steps *s, FILE *out)
{
	char text[XSP_UNITS_SIZE];

	for (size_t i = 0; i < s->warm_up_count && i < SLOWEST_SHOWN; i++)
		fprintf(out, "%sstep %" PRIu64 " (%s)",
			i == 0 ? "      left out as warm-up: " : ", ", s->warm_up[i].number,
			xsp_format_ns(text, step_length(&s->warm_up[i])));
	if (s->warm_up_count > SLOWEST_SHOWN)
		fprintf(out, " and %zu more", s->warm_up_count - SLOWEST_SHOWN);
	if (s->warm_up_count > 0)
		fputs(": more than twice the median\n", out);
	if (s->not_whole > 0)
		fprintf(out, "      left out as not recorded from beginning to end: %s step%s\n",
			xsp_format_count(text, s->not_whole), s->not_whole == 1 ? "" : "s");
	if (s->left_out > 0)
		fprintf(out, "      left out as of more threads than are followed: %s step%s\n",
			xsp_format_count(text, s->left_out), s->left_out == 1 ? "" : "s");
}

/* ---- the whole report ---- */

static void put_slowest(const struct around *a, struct xsp_report_section *section)
{
	const struct xsp_steps *s = a->steps;
	struct xsp_report_table *t = xsp_list_table(section, &slowest_list), *in;
	struct longer list[LONGER_SHOWN + 1];

	for (size_t i = 0; i < s->slowest_count; i++) {
		xsp_report_add(t, a, &s->slowest[i]);
		if ((in = xsp_list_in_row(t, &longer_list)) != NULL)
			xsp_report_rows(in, s, list, sizeof(*list),
					find_longer(s, &s->slowest[i], list));
	}
	xsp_report_rows(xsp_list_table(section, &warm_up_list), a, s->warm_up, sizeof(*s->warm_up),
			s->warm_up_count);
}

static void put_threads(const struct around *a, struct xsp_report_section *section)
{
	const struct xsp_steps *s = a->steps;
	struct xsp_report_table *t = xsp_list_table(section, &track_list), *in;
	const struct xsp_step_share *sums;

	for (uint32_t i = 0; i < s->track_count; i++) {
		const size_t count = xsp_step_shares_sums(s->shares, i, &sums);
		if (s->tracks[i].steps == 0)
			continue;
		xsp_report_add(t, a, &s->tracks[i]);
		in = xsp_list_in_row(t, &share_list);
		for (size_t n = 0; n < count; n++)
			if (sums[n].calls > 0)
				xsp_report_add(in, s, &sums[n]);
	}
}

#define UNCERTAIN "uncertain: events were lost, calls a step are lower bounds"
#define BY_ENDS ", and two steps may have been taken for one"

static void print_lines(const struct xsp_steps *s, bool uncertain, FILE *f)
{
	print_figures(s, f);
	print_slowest(s, f);
	print_threads(s, f);
	print_left_out(s, f);
	if (uncertain)
		fprintf(f, "      %s\n", s->by_ends ? UNCERTAIN BY_ENDS : UNCERTAIN);
}

void xsp_steps_report(const struct xsp_steps *s, const struct xsp_capture_reader *r,
		      struct xsp_report *report)
{
	const bool uncertain = xsp_steps_uncertain(r);
	struct around around = {.steps = s};
	uint64_t end;

	if (s->whole + s->not_whole == 0) {
		char text[256];
		xsp_timeline_no_steps(s->timeline, text, sizeof(text));
		void (*put)(struct xsp_report_section *, const char *) =
			xsp_timeline_step_asked(s->timeline) ? xsp_report_caveat : xsp_report_note;
		put(xsp_report_section(report, "steps", "Steps"), text);
		return;
	}
	struct xsp_report_section *section = xsp_report_section(report, "steps", "Steps");
	xsp_capture_window(r, &around.from_ns, &end);
	xsp_list_values(section, &sum_list, r, s);
	if (uncertain)
		xsp_report_note(section, s->by_ends ? UNCERTAIN BY_ENDS : UNCERTAIN);
	if (xsp_report_form(report) == XSP_FORM_TEXT) {
		print_lines(s, uncertain, xsp_list_lines(report));
		return;
	}
	put_slowest(&around, section);
	put_threads(&around, section);
}
