/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/names/steps_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define PROFILER_STEP "ProfilerStep#"
#define OPTIMIZER_STEP "Optimizer.step#"
#define MAX_TRACKS 65536U

int xsp_steps_new(struct xsp_timeline *t, struct xsp_steps **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = t;
	(*out)->least = UINT64_MAX;
	(*out)->want_first = UINT64_MAX;
	return 0;
}

void xsp_steps_mark(struct xsp_steps *s, const char *marker)
{
	s->marker = marker;
}

void xsp_steps_mark_guess(struct xsp_steps *s, const struct xsp_steps_guess *guess)
{
	s->guess = guess;
}

void xsp_steps_each(struct xsp_steps *s, int (*each)(void *ctx, const struct xsp_step *step),
		    void *ctx)
{
	s->each = each;
	s->each_ctx = ctx;
}

void xsp_steps_ended(struct xsp_steps *s,
		     int (*ended)(void *ctx, const struct xsp_step *step, bool first, bool by_ends),
		     void *ctx)
{
	s->ended_fn = ended;
	s->ended_ctx = ctx;
}

static void free_track(struct track *k)
{
	for (size_t i = 0; i < k->first_count; i++)
		free(k->first[i].shares);
	xsp_histogram_clear(&k->all);
	xsp_u64map_free(&k->entry_of);
	free(k->entries);
	free(k->touched);
	free(k);
}

void xsp_steps_free(struct xsp_steps *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->track_count; i++)
		free_track(s->tracks[i]);
	for (size_t i = 0; i < MARKS; i++) {
		struct figures *f = &s->figures[i];
		for (size_t k = 0; k < f->slowest_count; k++)
			free(f->slowest[k].shares);
		xsp_histogram_clear(&f->times);
		xsp_u64map_free(&f->processes);
	}
	xsp_u64map_free(&s->track_of);
	free(s->tracks);
	free(s->marks);
	free(s);
}

/* ---- names ---- */

/* Where the digits that a text ends in begin. */
static size_t digits_at(const char *text)
{
	size_t at = strlen(text);

	while (at > 0 && isdigit((unsigned char)text[at - 1]))
		at--;
	return at;
}

/* `name` is the marker, or the marker, perhaps something like '#' or a blank, and a number. */
static bool is_marker(const char *name, const char *marker)
{
	const size_t length = strlen(marker), digits = digits_at(name);
	size_t at = length;

	if (strncmp(name, marker, length) != 0)
		return false;
	while (at < digits && !isalnum((unsigned char)name[at]))
		at++;
	return name[length] == '\0' || (at == digits && name[digits] != '\0');
}

size_t xsp_steps_stem(const struct xsp_steps *s, const char *name)
{
	const size_t at = digits_at(name);

	if (at == 0 || name[at] == '\0')
		return 0;
	if (name[at - 1] == '#')
		return at;
	return s != NULL && s->marker != NULL && at >= strlen(s->marker) &&
			       is_marker(name, s->marker)
		       ? at
		       : 0;
}

static enum mark mark_of(const struct xsp_steps *s, const char *name)
{
	const bool ends = strncmp(name, OPTIMIZER_STEP, strlen(OPTIMIZER_STEP)) == 0;

	if (s->guess != NULL)
		return !is_marker(name, s->guess->name) ? MARK_NONE
		       : s->guess->is			? MARK_IS
							: MARK_ENDS;
	if (s->marker != NULL && !is_marker(name, s->marker))
		return MARK_NONE;
	if (ends)
		return MARK_ENDS;
	return s->marker != NULL || (strncmp(name, PROFILER_STEP, strlen(PROFILER_STEP)) == 0 &&
				     xsp_steps_stem(s, name) == strlen(PROFILER_STEP))
		       ? MARK_IS
		       : MARK_NONE;
}

/* Names come as the run goes. */
static int learn_names(struct xsp_steps *s)
{
	const size_t count = xsp_timeline_name_count(s->timeline);

	if (s->mark_count == count)
		return 0;
	if (xsp_grow(&s->marks, &s->mark_capacity, count) < 0)
		return -ENOMEM;
	for (; s->mark_count < count; s->mark_count++) {
		const char *name = xsp_timeline_name(s->timeline, (xsp_name_id)s->mark_count);
		const enum mark mark = mark_of(s, name);
		s->marks[s->mark_count] = (uint8_t)mark;
		s->names_that[mark]++;
	}
	return 0;
}

/* A guess is of names that only number, too; rows of tables are not. */
static size_t stem_of_step(const struct xsp_steps *s, const char *name)
{
	const size_t at = s->guess != NULL ? strlen(s->guess->name) : 0;

	return at > 0 && strlen(name) > at ? at : xsp_steps_stem(s, name);
}

/* "ProfilerStep#*" */
static void set_title(struct figures *f, const struct xsp_steps *s, const char *name)
{
	const size_t stem = stem_of_step(s, name), most = sizeof(f->title) - 2;

	if (f->title[0] != '\0')
		return;
	if (stem > 0)
		snprintf(f->title, sizeof(f->title), "%.*s*", (int)(stem < most ? stem : most),
			 name);
	else
		snprintf(f->title, sizeof(f->title), "%s", name);
}

/* ---- what is called in a step ---- */

/* The thread's, made if need be with `make`; *out NULL: there is none. */
static int track_of(struct xsp_steps *s, const struct xsp_span *span, enum mark mark, bool make,
		    struct track **out)
{
	const uint64_t key = xsp_u64_mix((uint64_t)span->pid << 32 | span->tid) + mark;
	struct track *k = s->last[mark];

	*out = k;
	if (k != NULL && k->tid == span->tid && k->pid == span->pid)
		return 0;
	const uint32_t *at = xsp_u64map_get(&s->track_of, key);
	*out = at != NULL ? s->tracks[*at] : NULL;
	if (at == NULL && make && s->track_count < MAX_TRACKS) {
		k = calloc(1, sizeof(*k));
		if (k == NULL || xsp_grow(&s->tracks, &s->track_capacity, s->track_count + 1) < 0 ||
		    xsp_u64map_set(&s->track_of, key, (uint32_t)s->track_count) < 0) {
			free(k);
			return -ENOMEM;
		}
		*k = (struct track){.pid = span->pid,
				    .tid = span->tid,
				    .mark = mark,
				    .index = (uint32_t)s->track_count};
		s->tracks[s->track_count++] = *out = k;
	}
	if (*out != NULL)
		s->last[mark] = *out;
	return 0;
}

static int entry_of(struct track *k, xsp_name_id name, uint32_t *out)
{
	const uint32_t *at = xsp_u64map_get(&k->entry_of, name);

	*out = at != NULL ? *at : (uint32_t)k->entry_count;
	if (at != NULL)
		return 0;
	if (xsp_grow(&k->entries, &k->entry_capacity, k->entry_count + 1) < 0 ||
	    xsp_u64map_set(&k->entry_of, name, *out) < 0)
		return -ENOMEM;
	k->entries[k->entry_count++] = (struct entry){.now.name = name};
	return 0;
}

static int tally(struct track *k, const struct xsp_span *span, xsp_name_id name)
{
	uint32_t at;
	int rc = span->left_out != 0 ? 0 : entry_of(k, name, &at);

	/* of what is beside the marker, with all that is in it; what is around it is around steps as well */
	if (span->depth == k->depth)
		k->probe_ns += span->probe_ns;

	if (rc < 0 || span->left_out != 0)
		return rc;
	struct xsp_step_share *now = &k->entries[at].now;
	if (now->calls == 0) {
		if (xsp_grow(&k->touched, &k->touched_capacity, k->touched_count + 1) < 0)
			return -ENOMEM;
		k->touched[k->touched_count++] = at;
	}
	now->calls++;
	now->self_ns += xsp_span_has_duration(span) ? span->self_ns : 0;
	return 0;
}

static void begin_anew(struct track *k)
{
	for (size_t i = 0; i < k->touched_count; i++)
		k->entries[k->touched[i]].now.calls = k->entries[k->touched[i]].now.self_ns = 0;
	k->touched_count = 0;
	k->probe_ns = 0;
}

/* ---- steps ---- */

static int copy_shares(const struct track *k, struct step *step)
{
	step->shares = calloc(k->touched_count + 1, sizeof(*step->shares));
	if (step->shares == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < k->touched_count; i++)
		step->shares[step->share_count++] = k->entries[k->touched[i]].now;
	return 0;
}

/* Keeps the slowest, slowest first; the step's shares become its own, or are freed. */
static int rank(struct figures *f, const struct track *k, struct step *step)
{
	size_t at = f->slowest_count;

	while (at > 0 && step_length(&f->slowest[at - 1]) < step_length(step))
		at--;
	if (at == XSP_STEPS_SLOWEST) {
		free(step->shares);
		return 0;
	}
	int rc = step->shares == NULL ? copy_shares(k, step) : 0;
	if (rc < 0)
		return rc;
	if (f->slowest_count == XSP_STEPS_SLOWEST)
		free(f->slowest[--f->slowest_count].shares);
	memmove(&f->slowest[at + 1], &f->slowest[at],
		(f->slowest_count - at) * sizeof(*f->slowest));
	f->slowest[at] = *step;
	f->slowest_count++;
	return 0;
}

static struct xsp_step public_step(const struct track *k, const struct step *step)
{
	return (struct xsp_step){.pid = k->pid,
				 .tid = k->tid,
				 .warm_up = step->warm_up,
				 .number = step->number,
				 .start_ns = step->start_ns,
				 .end_ns = step->end_ns,
				 .probe_ns = step->probe_ns,
				 .shares = step->shares,
				 .share_count = step->share_count};
}

/* Its shares are taken for that, if need be. */
static int report_each(const struct xsp_steps *s, const struct track *k, struct step *step)
{
	int rc = s->each != NULL && step->shares == NULL ? copy_shares(k, step) : 0;

	if (s->each == NULL || rc < 0)
		return rc;
	const struct xsp_step reported = public_step(k, step);
	return s->each(s->each_ctx, &reported);
}

/* A step that counts. */
static int count_step(struct figures *f, struct track *k, const struct step *step)
{
	const uint64_t ns = step_length(step);
	const double away = (double)ns - f->mean;

	if (f->steps == 0 || ns < f->min_ns)
		f->min_ns = ns;
	if (ns > f->max_ns)
		f->max_ns = ns;
	if (ns > k->max_ns)
		k->max_ns = ns;
	f->steps++;
	f->sum_ns += ns;
	f->probe_ns += step->probe_ns;
	f->calls += step->calls;
	f->mean += away / (double)f->steps;
	f->squares += away * ((double)ns - f->mean);
	k->steps++;
	k->sum_ns += ns;
	k->calls += step->calls;
	return xsp_histogram_add(&f->times, ns);
}

static void note_wanted(struct xsp_steps *s, const struct step *step)
{
	if (step->number < s->least)
		s->least = step->number;
	if (step->number > s->most)
		s->most = step->number;
	if (step->number < s->want_first || step->number > s->want_last)
		return;
	if (s->want_end_ns == 0 || step->start_ns < s->want_start_ns)
		s->want_start_ns = step->start_ns;
	if (step->end_ns > s->want_end_ns)
		s->want_end_ns = step->end_ns;
}

/* The step at hand was recorded from its beginning to its end. */
static int end_step(struct xsp_steps *s, struct track *k, struct step *step)
{
	struct figures *f = &s->figures[k->mark];
	const bool first = k->first_count < XSP_STEPS_FIRST;
	const struct xsp_step reported = public_step(k, step);
	int rc = xsp_histogram_add(&k->all, step_length(step));

	f->whole++;
	if (f->whole == 1)
		xsp_timeline_window(s->timeline, &f->over_time.start_ns, &(uint64_t){0});
	if (rc == 0 && k->all.count == 1)
		rc = xsp_u64map_set(&f->processes, k->pid, 0);
	xsp_growth_step(&f->over_time, step->start_ns, step->end_ns);
	if (rc == 0 && s->ended_fn != NULL)
		rc = s->ended_fn(s->ended_ctx, &reported, first, k->mark == MARK_ENDS);
	for (size_t i = 0; i < k->touched_count; i++)
		step->calls += k->entries[k->touched[i]].now.calls;
	if (rc == 0 && first) { /* decided at the end */
		rc = copy_shares(k, step);
		if (rc == 0)
			k->first[k->first_count++] = *step;
		return rc;
	}
	for (size_t i = 0; i < k->touched_count; i++) {
		struct entry *e = &k->entries[k->touched[i]];
		e->calls += e->now.calls;
		e->self_ns += e->now.self_ns;
	}
	if (rc == 0)
		rc = count_step(f, k, step);
	if (rc == 0)
		rc = report_each(s, k, step);
	if (rc < 0) {
		free(step->shares);
		return rc;
	}
	return rank(f, k, step);
}

static uint64_t number_of(const struct xsp_steps *s, const struct track *k, const char *name)
{
	const size_t stem = stem_of_step(s, name);
	const bool own = stem > 0 && (s->marker == NULL || stem >= strlen(s->marker));
	const uint64_t number =
		k->mark == MARK_IS && own ? strtoull(name + stem, NULL, 10) : k->markers;

	return number <= INT64_MAX ? number : k->markers; /* no program counts so far */
}

static int add_marker(struct xsp_steps *s, struct track *k, const struct xsp_span *span)
{
	const char *name = xsp_timeline_name(s->timeline, span->name);
	const bool ended = xsp_span_has_duration(span) && !(span->flags & XSP_SPAN_CUT),
		   ends = k->mark == MARK_ENDS;
	struct step step = {.number = number_of(s, k, name),
			    .start_ns = ends ? k->begin_ns : span->start_ns,
			    .end_ns = span->end_ns,
			    .track = k->index};
	step.probe_ns = ends ? k->probe_ns : span->probe_ns;
	if (step.probe_ns > step_length(&step)) /* it is an estimate */
		step.probe_ns = step_length(&step);
	const bool whole =
		ended && (!ends || (k->begun && xsp_timeline_recorded(s->timeline, step.start_ns,
								      step.end_ns)));
	uint64_t from, to;
	int rc = 0;

	xsp_timeline_window(s->timeline, &from, &to);
	set_title(&s->figures[k->mark], s, name);
	/* in the cut, if there is one: whole, in part, or not at all */
	const bool inside = from <= step.start_ns && step.end_ns <= to;
	s->figures[k->mark].not_whole +=
		!(whole && inside) && step.start_ns < to && step.end_ns > from;
	if (whole)
		note_wanted(s, &step);
	if (whole && inside)
		rc = end_step(s, k, &step);
	begin_anew(k);
	k->begun = ended;
	k->depth = span->depth;
	k->begin_ns = span->end_ns;
	k->markers++;
	return rc;
}

/* A guess is about outermost spans of the threads that repeat them: others of that name mark nothing. */
static bool may_mark(const struct xsp_steps *s, const struct xsp_span *span)
{
	uint32_t depth;

	return s->guess == NULL ||
	       (span->row == 0 && xsp_steps_guess_depth(s->guess, span->pid, span->tid, &depth) &&
		span->depth == depth);
}

static bool is_inside(const struct xsp_steps *s, const struct xsp_span *span)
{
	uint32_t depth;

	if (s->guess != NULL)
		return span->row == 0 &&
		       xsp_steps_guess_depth(s->guess, span->pid, span->tid, &depth) &&
		       span->depth > depth && s->marks[span->ancestors[depth]] == MARK_IS;
	for (uint32_t i = 0; i < span->depth; i++)
		if (s->marks[span->ancestors[i]] == MARK_IS)
			return true;
	return false;
}

/* Steps that are a span: what is called in them has it among its ancestors. */
static int add_in_span(struct xsp_steps *s, const struct xsp_span *span, xsp_name_id name)
{
	const bool inside = is_inside(s, span),
		   marker = s->marks[span->name] == MARK_IS && may_mark(s, span);
	struct track *k;

	if (!inside && !marker)
		return 0;
	int rc = track_of(s, span, MARK_IS, true, &k);
	s->figures[MARK_IS].left_out += rc == 0 && k == NULL && !inside;
	if (rc < 0 || k == NULL)
		return rc;
	if (!inside)
		return add_marker(s, k, span);
	/* of a stack that was given up, told behind the step's end */
	return span->start_ns >= k->begin_ns ? tally(k, span, name) : 0;
}

/* Steps that a span ends: what is called in them comes behind the end of the one before. */
static int add_between(struct xsp_steps *s, const struct xsp_span *span, xsp_name_id name)
{
	const bool marker = s->marks[span->name] == MARK_ENDS && may_mark(s, span);
	struct track *k;
	int rc = track_of(s, span, MARK_ENDS, marker, &k);

	s->figures[MARK_ENDS].left_out += rc == 0 && k == NULL && marker;
	if (rc < 0 || k == NULL)
		return rc;
	if (k->begun && span->start_ns >= k->begin_ns)
		rc = tally(k, span, name);
	if (rc < 0 || !marker || (s->guess == NULL && k->markers > 0 && k->name != span->name))
		return rc;
	k->name = span->name;
	return add_marker(s, k, span);
}

bool xsp_steps_marked_by(struct xsp_steps *s, xsp_name_id name)
{
	return learn_names(s) == 0 && name < s->mark_count && s->marks[name] != MARK_NONE;
}

bool xsp_steps_are(struct xsp_steps *s, xsp_name_id name)
{
	return s->guess == NULL && xsp_steps_marked_by(s, name);
}

bool xsp_steps_expected(struct xsp_steps *s)
{
	return s->guess != NULL || learn_names(s) < 0 ||
	       s->names_that[MARK_IS] + s->names_that[MARK_ENDS] > 0;
}

void xsp_steps_none(const struct xsp_steps *s, char *out, size_t size)
{
	static const struct xsp_steps usual = {.marker = NULL};
	static const char *const without[MARKS] = {
		[MARK_NONE] = "",
		[MARK_IS] = "; without --step " PROFILER_STEP "N are steps",
		[MARK_ENDS] = "; without --step the calls of " OPTIMIZER_STEP "... end them"};
	const size_t count = xsp_timeline_name_count(s->timeline);
	enum mark found = MARK_NONE;

	if (s->marker == NULL) {
		snprintf(out, size, "no span marks steps: --step NAME says what one is");
		return;
	}
	for (size_t i = 0; i < count && found != MARK_IS; i++) {
		const enum mark mark =
			mark_of(&usual, xsp_timeline_name(s->timeline, (xsp_name_id)i));
		found = mark != MARK_NONE ? mark : found;
	}
	snprintf(out, size, "--step: no span is called %.100s, or that and a number%s", s->marker,
		 without[found]);
}

int xsp_steps_span(struct xsp_steps *s, const struct xsp_span *span, xsp_name_id name)
{
	int rc = learn_names(s);

	if (rc == 0 && s->names_that[MARK_IS] > 0)
		rc = add_in_span(s, span, name);
	else if (rc == 0 && s->names_that[MARK_ENDS] > 0)
		rc = add_between(s, span, name);
	return rc;
}

static int on_span(void *ctx, const struct xsp_span *span)
{
	return xsp_steps_span(ctx, span, span->name);
}

struct xsp_timeline_sink xsp_steps_sink(struct xsp_steps *s)
{
	return (struct xsp_timeline_sink){.ctx = s, .every = on_span};
}

/* ---- the end ---- */

enum mark xsp_steps_how(const struct xsp_steps *s)
{
	const struct figures *is = &s->figures[MARK_IS];

	return is->whole + is->not_whole > 0 ? MARK_IS : MARK_ENDS;
}

const struct xsp_growth_steps *xsp_steps_over_time(const struct xsp_steps *s)
{
	const struct figures *f = &s->figures[xsp_steps_how(s)];

	return f->whole > 0 ? &f->over_time : NULL;
}

size_t xsp_steps_processes(const struct xsp_steps *s)
{
	const size_t count = s->figures[xsp_steps_how(s)].processes.count;

	return count > 0 ? count : 1;
}

static int fold_first(struct track *k, const struct step *step)
{
	for (size_t i = 0; i < step->share_count; i++) {
		const struct xsp_step_share *share = &step->shares[i];
		uint32_t at;
		int rc = entry_of(k, share->name, &at);
		if (rc < 0)
			return rc;
		k->entries[at].calls += share->calls;
		k->entries[at].self_ns += share->self_ns;
	}
	return 0;
}

/* Of a thread's first steps those that took more than twice the median of its own, one behind the other from the first one
 * on, are warm-up. */
static int end_track(struct xsp_steps *s, struct figures *f, struct track *k)
{
	const uint64_t median = xsp_histogram_quantile(&k->all, 0.5);
	bool warm_up = k->all.count >= 3;
	int rc = 0;

	for (size_t i = 0; i < k->first_count && rc == 0; i++) {
		struct step *step = &k->first[i];
		warm_up = warm_up && step_length(step) / 2 > median;
		step->warm_up = warm_up;
		rc = report_each(s, k, step);
		if (warm_up)
			continue;
		if (rc == 0)
			rc = fold_first(k, step);
		if (rc == 0)
			rc = count_step(f, k, step);
		if (rc < 0)
			return rc;
		rc = rank(f, k, step);
		step->shares = NULL; /* they are where they were wanted */
	}
	return rc;
}

int xsp_steps_end(struct xsp_steps *s)
{
	int rc = 0;

	if (s->ended)
		return 0;
	s->ended = true;
	for (size_t i = 0; i < s->track_count && rc == 0; i++) {
		struct track *k = s->tracks[i];
		struct figures *f = &s->figures[k->mark];
		uint64_t from, to;
		xsp_timeline_window(s->timeline, &from, &to);
		/* what came behind the last one was not seen to end */
		f->not_whole += k->mark == MARK_ENDS && k->begun && k->begin_ns < to;
		rc = end_track(s, f, k);
	}
	return rc;
}

void xsp_steps_want(struct xsp_steps *s, uint64_t first, uint64_t last)
{
	s->want_first = first;
	s->want_last = last;
}

bool xsp_steps_wanted(const struct xsp_steps *s, uint64_t *start_ns, uint64_t *end_ns,
		      uint64_t *least, uint64_t *most)
{
	*start_ns = s->want_start_ns;
	*end_ns = s->want_end_ns;
	*least = s->least;
	*most = s->most;
	return s->want_end_ns > 0;
}
