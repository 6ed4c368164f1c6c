/* SPDX-License-Identifier: BSD-2-Clause */
/* steps_print.c - steps as lines behind the summary's table, and as JSON. */
#include "analysis/names/steps_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "model/health.h"

#define SLOWEST_SHOWN 3
#define LONGER_SHARE 20 /* less than this part of what a step took more is not told */

static double more(const struct longer *l)
{
	return (double)l->share.self_ns - l->mean_ns;
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

static uint64_t sum_of_entries(const struct track *k)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < k->entry_count; i++)
		sum += k->entries[i].self_ns;
	return sum;
}

size_t xsp_steps_longer(const struct xsp_steps *s, const struct step *step,
			struct longer list[LONGER_SHOWN])
{
	const struct track *k = s->tracks[step->track];
	const double steps = (double)k->steps, mean = (double)k->sum_ns / steps;
	const double least = ((double)step_length(step) - mean) / LONGER_SHARE;
	struct longer rest = {.share = {.name = NO_SPAN, .self_ns = step_length(step)},
			      .mean_ns = mean - (double)sum_of_entries(k) / steps};
	size_t count = 0;

	for (size_t i = 0; i < step->share_count; i++) {
		const struct xsp_step_share *share = &step->shares[i];
		const uint32_t *at = xsp_u64map_get(&k->entry_of, share->name);
		const struct entry *e = &k->entries[at != NULL ? *at : 0];
		const struct longer l = {.share = *share,
					 .mean_ns = (double)e->self_ns / steps,
					 .mean_calls = (double)e->calls / steps};
		rest.share.self_ns -=
			share->self_ns <= rest.share.self_ns ? share->self_ns : rest.share.self_ns;
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

bool xsp_steps_have_probes(const struct figures *f)
{
	return f->steps > 0 && (double)f->probe_ns > PROBES_TOLD * (double)f->sum_ns;
}

double xsp_steps_deviation(const struct figures *f)
{
	return f->steps > 1 ? sqrt(f->squares / (double)(f->steps - 1)) : 0;
}

uint64_t xsp_steps_quantile(const struct figures *f, double share)
{
	const uint64_t ns = xsp_histogram_quantile(&f->times, share);

	return ns < f->min_ns ? f->min_ns : ns > f->max_ns ? f->max_ns : ns;
}

/* ---- text ---- */

void xsp_steps_thread(const struct xsp_steps *s, const struct track *k, char *out, size_t size)
{
	const struct xsp_timeline_thread *t = xsp_timeline_thread(s->timeline, k->tid);
	char name[64];

	xsp_printable(name, sizeof(name), t != NULL ? t->comm : "", 0);
	snprintf(out, size, "%s (%" PRIu32 ")", name, t != NULL ? t->ns_tid : k->tid);
}

static void print_figures(const struct xsp_steps_guess *guess, const struct figures *f, FILE *out)
{
	const struct {
		const char *what;
		uint64_t ns;
	} times[] = {
		{"mean", (uint64_t)llround(f->mean)},
		{"std", (uint64_t)llround(xsp_steps_deviation(f))},
		{"min", f->min_ns},
		{"p50", xsp_steps_quantile(f, 0.5)},
		{"p99", xsp_steps_quantile(f, 0.99)},
		{"max", f->max_ns},
	};
	char title[sizeof(f->title) + 4], text[XSP_UNITS_SIZE];

	xsp_printable(title, sizeof(title), f->title, 0);
	fprintf(out, "steps (%s%s): %s",
		guess == NULL ? ""
		: guess->is   ? "guessed: "
			      : "guessed, each up to the end of ",
		title, xsp_format_count(text, f->steps));
	for (size_t i = 0; f->steps > 0 && i < sizeof(times) / sizeof(times[0]); i++)
		fprintf(out, ", %s %s", times[i].what,
			f->steps == 1 && i == 1 ? "-" : xsp_format_ns(text, times[i].ns));
	if (f->steps > 0)
		fprintf(out, "; calls a step: %.4g", (double)f->calls / (double)f->steps);
	if (xsp_steps_have_probes(f))
		fprintf(out, "; estimated %s a step of it in probes",
			xsp_format_ns(text, f->probe_ns / f->steps));
	fputc('\n', out);
}

static void print_longer(const struct xsp_steps *s, const struct longer *l, FILE *f)
{
	char name[96], text[XSP_UNITS_SIZE], calls[XSP_UNITS_SIZE];

	if (l->share.name == NO_SPAN) {
		fprintf(f, "outside of traced calls +%s", xsp_format_ns(text, (uint64_t)more(l)));
		return;
	}
	xsp_printable(name, sizeof(name), xsp_timeline_name(s->timeline, l->share.name), 48);
	fprintf(f, "%s +%s", name, xsp_format_ns(text, (uint64_t)more(l)));
	if (fabs((double)l->share.calls - l->mean_calls) >= 0.5)
		fprintf(f, " (%s calls, in the mean %.4g)", xsp_format_count(calls, l->share.calls),
			l->mean_calls);
}

static void print_slowest(const struct xsp_steps *s, const struct figures *f, FILE *out)
{
	struct longer list[LONGER_SHOWN + 1];
	char time[XSP_UNITS_SIZE], over[XSP_UNITS_SIZE], thread[128] = "";

	for (size_t i = 0; i < f->slowest_count && i < SLOWEST_SHOWN; i++) {
		const struct step *step = &f->slowest[i];
		const struct track *k = s->tracks[step->track];
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
		const struct track *k = s->tracks[i];
		if (k->mark != xsp_steps_how(s) || k->steps == 0)
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

static void print_left_out(const struct xsp_steps *s, const struct figures *f, FILE *out)
{
	char text[XSP_UNITS_SIZE];
	size_t warm_up = 0;

	for (size_t i = 0; i < s->track_count; i++)
		for (size_t n = 0; n < s->tracks[i]->first_count; n++) {
			const struct step *step = &s->tracks[i]->first[n];
			if (!step->warm_up || s->tracks[i]->mark != xsp_steps_how(s))
				continue;
			warm_up++;
			if (warm_up > SLOWEST_SHOWN)
				continue;
			fprintf(out, "%sstep %" PRIu64 " (%s)",
				warm_up == 1 ? "      left out as warm-up: " : ", ", step->number,
				xsp_format_ns(text, step_length(step)));
		}
	if (warm_up > SLOWEST_SHOWN)
		fprintf(out, " and %zu more", warm_up - SLOWEST_SHOWN);
	if (warm_up > 0)
		fputs(": more than twice the median\n", out);
	if (f->not_whole > 0)
		fprintf(out, "      left out as not recorded from beginning to end: %s step%s\n",
			xsp_format_count(text, f->not_whole), f->not_whole == 1 ? "" : "s");
	if (f->left_out > 0)
		fprintf(out, "      left out as of more threads than are followed: %s step%s\n",
			xsp_format_count(text, f->left_out), f->left_out == 1 ? "" : "s");
}

int xsp_steps_write(struct xsp_steps *s, const struct xsp_capture_reader *r, FILE *out)
{
	int rc = xsp_steps_end(s);
	const enum mark how = xsp_steps_how(s);
	const struct figures *f = &s->figures[how];

	if (rc < 0 || f->whole + f->not_whole == 0)
		return rc;
	print_figures(s->guess, f, out);
	print_slowest(s, f, out);
	print_threads(s, out);
	print_left_out(s, f, out);
	if (xsp_steps_uncertain(r))
		fprintf(out, "      uncertain: events were lost, calls a step are lower bounds%s\n",
			how == MARK_ENDS ? ", and two steps may have been taken for one" : "");
	return 0;
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
		const bool span = l->share.name != NO_SPAN;
		xsp_json_begin(j, NULL, '{');
		xsp_json_text(j, "name",
			      span ? xsp_timeline_name(s->timeline, l->share.name) : NULL);
		xsp_json_number(j, "self_ns", l->share.self_ns);
		xsp_json_number(j, "mean_self_ns", (uint64_t)llround(l->mean_ns));
		if (span)
			xsp_json_number(j, "calls", l->share.calls);
		xsp_json_end(j, '{');
	}
	xsp_json_end(j, '[');
}

static void put_step(const struct xsp_steps *s, const struct step *step, uint64_t from_ns,
		     struct xsp_json_writer *j)
{
	const struct track *k = s->tracks[step->track];
	const struct xsp_timeline_thread *t = xsp_timeline_thread(s->timeline, k->tid);

	xsp_json_begin(j, NULL, '{');
	xsp_json_number(j, "number", step->number);
	xsp_json_number(j, "tid", t != NULL ? t->ns_tid : k->tid);
	xsp_json_number(j, "start_ns", step->start_ns - from_ns);
	xsp_json_number(j, "time_ns", step_length(step));
	xsp_json_number(j, "calls", step->calls);
	if (!step->warm_up)
		put_longer(s, step, j);
	xsp_json_end(j, '{');
}

static void put_warm_up(const struct xsp_steps *s, uint64_t from_ns, struct xsp_json_writer *j)
{
	xsp_json_begin(j, "warm_up", '[');
	for (size_t i = 0; i < s->track_count; i++)
		for (size_t n = 0; n < s->tracks[i]->first_count; n++)
			if (s->tracks[i]->first[n].warm_up &&
			    s->tracks[i]->mark == xsp_steps_how(s))
				put_step(s, &s->tracks[i]->first[n], from_ns, j);
	xsp_json_end(j, '[');
}

static void put_threads(const struct xsp_steps *s, struct xsp_json_writer *j)
{
	xsp_json_begin(j, "threads", '[');
	for (size_t i = 0; i < s->track_count; i++) {
		const struct track *k = s->tracks[i];
		const struct xsp_timeline_thread *t = xsp_timeline_thread(s->timeline, k->tid);
		if (k->mark != xsp_steps_how(s) || k->steps == 0)
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
		for (size_t n = 0; n < k->entry_count; n++) {
			const struct entry *e = &k->entries[n];
			if (e->calls == 0)
				continue;
			xsp_json_begin(j, NULL, '{');
			xsp_json_text(j, "name", xsp_timeline_name(s->timeline, e->now.name));
			xsp_json_number(j, "calls", e->calls);
			xsp_json_number(j, "self_ns", e->self_ns);
			xsp_json_end(j, '{');
		}
		xsp_json_end(j, '[');
		xsp_json_end(j, '{');
	}
	xsp_json_end(j, '[');
}

int xsp_steps_json(struct xsp_steps *s, const struct xsp_capture_reader *r,
		   struct xsp_json_writer *j)
{
	int rc = xsp_steps_end(s);
	const struct figures *f = &s->figures[xsp_steps_how(s)];
	const struct {
		const char *key;
		bool known;
		uint64_t value;
	} pairs[] = {
		{"steps", true, f->steps},
		{"calls", true, f->calls},
		{"not_whole", true, f->not_whole},
		{"left_out", f->left_out > 0, f->left_out},
		{"mean_ns", f->steps > 0, (uint64_t)llround(f->mean)},
		{"std_ns", f->steps > 1, (uint64_t)llround(xsp_steps_deviation(f))},
		{"min_ns", f->steps > 0, f->min_ns},
		{"p50_ns", f->steps > 0, xsp_steps_quantile(f, 0.5)},
		{"p99_ns", f->steps > 0, xsp_steps_quantile(f, 0.99)},
		{"max_ns", f->steps > 0, f->max_ns},
		{"probe_ns", f->steps > 0, f->steps > 0 ? f->probe_ns / f->steps : 0},
	};
	uint64_t start, end;

	if (rc < 0 || f->whole + f->not_whole == 0)
		return rc;
	xsp_capture_window(r, &start, &end);
	xsp_json_begin(j, "steps", '{');
	xsp_json_text(j, "marker", f->title);
	xsp_json_bool(j, "guessed", s->guess != NULL);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (pairs[i].known)
			xsp_json_number(j, pairs[i].key, pairs[i].value);
	xsp_json_bool(j, "uncertain", xsp_steps_uncertain(r));
	xsp_json_begin(j, "slowest", '[');
	for (size_t i = 0; i < f->slowest_count; i++)
		put_step(s, &f->slowest[i], start, j);
	xsp_json_end(j, '[');
	put_warm_up(s, start, j);
	put_threads(s, j);
	xsp_json_end(j, '{');
	return 0;
}
