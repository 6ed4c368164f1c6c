/* SPDX-License-Identifier: BSD-2-Clause */
/* steps_print.c - steps as lines below the summary's table, and as JSON. */
#include "analysis/names/steps_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "model/health.h"

#define SLOWEST_SHOWN 3
#define LONGER_SHARE 20 /* less than this part of what a step took more is left out */

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

static uint64_t sum_of_shares(const struct xsp_steps *s, uint32_t thread)
{
	const struct xsp_step_share *sums;
	const size_t count = xsp_step_shares_sums(s->shares, thread, &sums);
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += sums[i].ns;
	return sum;
}

size_t xsp_steps_longer(const struct xsp_steps *s, const struct step *step,
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

/* Less is in the estimate's own error. */
#define PROBES_TOLD 0.05

bool xsp_steps_have_probes(const struct xsp_steps *s)
{
	return s->steps > 0 && (double)s->probe_ns > PROBES_TOLD * (double)s->sum_ns;
}

double xsp_steps_deviation(const struct xsp_steps *s)
{
	return s->steps > 1 ? sqrt(s->squares / (double)(s->steps - 1)) : 0;
}

uint64_t xsp_steps_quantile(const struct xsp_steps *s, double share)
{
	const uint64_t ns = xsp_histogram_quantile(&s->times, share);

	return ns < s->min_ns ? s->min_ns : ns > s->max_ns ? s->max_ns : ns;
}

/* ---- text ---- */

void xsp_steps_thread(const struct xsp_steps *s, const struct track *k, char *out, size_t size)
{
	const struct xsp_timeline_thread *t = xsp_timeline_thread(s->timeline, k->tid);
	char name[64];

	xsp_printable(name, sizeof(name), t != NULL ? t->comm : "", 0);
	snprintf(out, size, "%s (%" PRIu32 ")", name, t != NULL ? t->ns_tid : k->tid);
}

static void print_figures(const struct xsp_steps *s, FILE *out)
{
	const struct {
		const char *what;
		uint64_t ns;
	} times[] = {
		{"mean", (uint64_t)llround(s->mean)},
		{"std", (uint64_t)llround(xsp_steps_deviation(s))},
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
	if (xsp_steps_have_probes(s))
		fprintf(out, "; estimated %s a step of it in probes",
			xsp_format_ns(text, s->probe_ns / s->steps));
	fputc('\n', out);
}

static void print_longer(const struct xsp_steps *s, const struct longer *l, FILE *f)
{
	char name[96], text[XSP_UNITS_SIZE], calls[XSP_UNITS_SIZE];

	if (l->share.key == NO_SPAN) {
		fprintf(f, "outside of traced calls +%s", xsp_format_ns(text, (uint64_t)more(l)));
		return;
	}
	xsp_printable(name, sizeof(name), xsp_timeline_name(s->timeline, l->share.key), 48);
	fprintf(f, "%s +%s", name, xsp_format_ns(text, (uint64_t)more(l)));
	if (fabs((double)l->share.calls - l->mean_calls) >= 0.5)
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
		const size_t count = xsp_steps_longer(s, step, list);
		if (s->track_count > 1)
			xsp_steps_thread(s, k, thread, sizeof(thread));
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

/* Threads of other processes are other ranks: one of them does not stand for all. */
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
	xsp_steps_thread(s, slow, name, sizeof(name));
	fprintf(f, "      of %zu threads; the slowest, %s, takes %s in the mean", count, name,
		xsp_format_ns(time, slow->sum_ns / slow->steps));
	xsp_steps_thread(s, fast, name, sizeof(name));
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

void xsp_steps_write(const struct xsp_steps *s, const struct xsp_capture_reader *r, FILE *out)
{
	if (s->whole + s->not_whole == 0)
		return;
	print_figures(s, out);
	print_slowest(s, out);
	print_threads(s, out);
	print_left_out(s, out);
	if (xsp_steps_uncertain(r))
		fprintf(out, "      uncertain: events were lost, calls a step are lower bounds%s\n",
			s->by_ends ? ", and two steps may have been taken for one" : "");
}

/* ---- JSON ---- */

static void put_longer(const struct xsp_steps *s, const struct step *step,
		       struct xsp_json_writer *j)
{
	struct longer list[LONGER_SHOWN + 1];
	const size_t count = xsp_steps_longer(s, step, list);

	xsp_json_begin(j, "longer", '[');
	for (size_t i = 0; i < count; i++) {
		const struct longer *l = &list[i];
		const bool span = l->share.key != NO_SPAN;
		xsp_json_begin(j, NULL, '{');
		xsp_json_text(j, "name",
			      span ? xsp_timeline_name(s->timeline, l->share.key) : NULL);
		xsp_json_number(j, "self_ns", l->share.ns);
		xsp_json_number(j, "mean_self_ns", (uint64_t)llround(l->mean_ns));
		if (span)
			xsp_json_number(j, "calls", l->share.calls);
		xsp_json_end(j, '{');
	}
	xsp_json_end(j, '[');
}

static void put_step(const struct xsp_steps *s, const struct step *step, uint64_t from_ns,
		     bool warm_up, struct xsp_json_writer *j)
{
	const struct track *k = &s->tracks[step->track];
	const struct xsp_timeline_thread *t = xsp_timeline_thread(s->timeline, k->tid);

	xsp_json_begin(j, NULL, '{');
	xsp_json_number(j, "number", step->number);
	xsp_json_number(j, "tid", t != NULL ? t->ns_tid : k->tid);
	xsp_json_number(j, "start_ns", step->start_ns - from_ns);
	xsp_json_number(j, "time_ns", step_length(step));
	xsp_json_number(j, "calls", step->calls);
	if (!warm_up)
		put_longer(s, step, j);
	xsp_json_end(j, '{');
}

static void put_threads(const struct xsp_steps *s, struct xsp_json_writer *j)
{
	xsp_json_begin(j, "threads", '[');
	for (uint32_t i = 0; i < s->track_count; i++) {
		const struct track *k = &s->tracks[i];
		const struct xsp_timeline_thread *t = xsp_timeline_thread(s->timeline, k->tid);
		const struct xsp_step_share *sums;
		const size_t count = xsp_step_shares_sums(s->shares, i, &sums);
		if (k->steps == 0)
			continue;
		xsp_json_begin(j, NULL, '{');
		xsp_json_text(j, "name", t != NULL ? t->comm : "");
		xsp_json_number(j, "pid", t != NULL ? t->ns_pid : k->pid);
		xsp_json_number(j, "tid", t != NULL ? t->ns_tid : k->tid);
		xsp_json_number(j, "steps", k->steps);
		xsp_json_number(j, "calls", k->calls);
		xsp_json_number(j, "mean_ns", k->sum_ns / k->steps);
		xsp_json_number(j, "max_ns", k->max_ns);
		xsp_json_begin(j, "names", '[');
		for (size_t n = 0; n < count; n++) {
			if (sums[n].calls == 0)
				continue;
			xsp_json_begin(j, NULL, '{');
			xsp_json_text(j, "name", xsp_timeline_name(s->timeline, sums[n].key));
			xsp_json_number(j, "calls", sums[n].calls);
			xsp_json_number(j, "self_ns", sums[n].ns);
			xsp_json_end(j, '{');
		}
		xsp_json_end(j, '[');
		xsp_json_end(j, '{');
	}
	xsp_json_end(j, '[');
}

void xsp_steps_json(const struct xsp_steps *s, const struct xsp_capture_reader *r,
		    struct xsp_json_writer *j)
{
	const struct {
		const char *key;
		bool known;
		uint64_t value;
	} pairs[] = {
		{"steps", true, s->steps},
		{"calls", true, s->calls},
		{"not_whole", true, s->not_whole},
		{"left_out", s->left_out > 0, s->left_out},
		{"mean_ns", s->steps > 0, (uint64_t)llround(s->mean)},
		{"std_ns", s->steps > 1, (uint64_t)llround(xsp_steps_deviation(s))},
		{"min_ns", s->steps > 0, s->min_ns},
		{"p50_ns", s->steps > 0, xsp_steps_quantile(s, 0.5)},
		{"p99_ns", s->steps > 0, xsp_steps_quantile(s, 0.99)},
		{"max_ns", s->steps > 0, s->max_ns},
		{"probe_ns", s->steps > 0, s->steps > 0 ? s->probe_ns / s->steps : 0},
	};
	uint64_t start, end;

	if (s->whole + s->not_whole == 0)
		return;
	xsp_capture_window(r, &start, &end);
	xsp_json_begin(j, "steps", '{');
	xsp_json_text(j, "marker", s->title);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (pairs[i].known)
			xsp_json_number(j, pairs[i].key, pairs[i].value);
	xsp_json_bool(j, "uncertain", xsp_steps_uncertain(r));
	xsp_json_begin(j, "slowest", '[');
	for (size_t i = 0; i < s->slowest_count; i++)
		put_step(s, &s->slowest[i], start, false, j);
	xsp_json_end(j, '[');
	xsp_json_begin(j, "warm_up", '[');
	for (size_t i = 0; i < s->warm_up_count; i++)
		put_step(s, &s->warm_up[i], start, true, j);
	xsp_json_end(j, '[');
	put_threads(s, j);
	xsp_json_end(j, '{');
}
