/* SPDX-License-Identifier: BSD-2-Clause */
/* steps.c - which span is a step, or ends one; which steps are whole, and which are warm-up. */
#include "timeline/steps.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/histogram.h"
#include "timeline/timeline_private.h"

#define PROFILER_STEP "ProfilerStep#"
#define OPTIMIZER_STEP "Optimizer.step#"
#define MAX_TRACKS 16384U

/* How a name marks steps. */
enum mark { MARK_NONE, MARK_IS, MARK_ENDS, MARKS };

/* The steps of a thread. */
struct track {
	uint32_t pid, tid, index;
	enum mark mark;
	xsp_name_id name; /* the last marker's; for MARK_ENDS no other name is a marker here */
	bool begun; /* for MARK_ENDS: the current step has a beginning */
	uint64_t begin_ns, markers;
	uint32_t depth; /* the last marker's */
	/* for MARK_ENDS: the time of probes in the current step, in spans beside its markers */
	uint64_t probe_ns;
	struct xsp_histogram all; /* lengths of its steps, with warm-up */
	struct xsp_step first[XSP_STEPS_FIRST];
	size_t first_count;
};

struct xsp_steps_of_timeline {
	const char *marker; /* --step, or NULL */
	uint8_t *marks; /* by name id */
	size_t mark_count, mark_capacity;
	size_t names_that[MARKS];
	struct track **tracks;
	size_t track_count, track_capacity;
	struct xsp_u64map track_of; /* thread and way of marking → index */
	struct track *last[MARKS];
	bool spans_are; /* a marker that is a step came: ends are no markers then */
};

static int begin(struct xsp_timeline *t)
{
	t->steps = calloc(1, sizeof(*t->steps));
	return t->steps != NULL ? 1 : -ENOMEM;
}

static void free_steps(struct xsp_timeline *t)
{
	struct xsp_steps_of_timeline *s = t->steps;

	if (s == NULL)
		return;
	for (size_t i = 0; i < s->track_count; i++) {
		xsp_histogram_clear(&s->tracks[i]->all);
		free(s->tracks[i]);
	}
	xsp_u64map_free(&s->track_of);
	free(s->tracks);
	free(s->marks);
	free(s);
}

void xsp_timeline_mark_steps(struct xsp_timeline *t, const char *marker)
{
	t->steps->marker = marker;
}

/* ---- names ---- */

/* The offset of the digits at a text's end. */
static size_t digits_at(const char *text)
{
	size_t at = strlen(text);

	while (at > 0 && isdigit((unsigned char)text[at - 1]))
		at--;
	return at;
}

/* Is `name` the marker, perhaps with '#' or a blank, and a number? */
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

static size_t stem_of(const char *marker, const char *name)
{
	const size_t at = digits_at(name);

	if (at == 0 || name[at] == '\0')
		return 0;
	if (name[at - 1] == '#')
		return at;
	return marker != NULL && at >= strlen(marker) && is_marker(name, marker) ? at : 0;
}

size_t xsp_timeline_step_stem(const struct xsp_timeline *t, const char *name)
{
	return stem_of(t->steps != NULL ? t->steps->marker : NULL, name);
}

static enum mark mark_of(const char *marker, const char *name)
{
	if (marker != NULL && !is_marker(name, marker))
		return MARK_NONE;
	if (strncmp(name, OPTIMIZER_STEP, strlen(OPTIMIZER_STEP)) == 0)
		return MARK_ENDS;
	return marker != NULL || (strncmp(name, PROFILER_STEP, strlen(PROFILER_STEP)) == 0 &&
				  stem_of(NULL, name) == strlen(PROFILER_STEP))
		       ? MARK_IS
		       : MARK_NONE;
}

/* New names come during the run. */
static int learn_names(struct xsp_timeline *t)
{
	struct xsp_steps_of_timeline *s = t->steps;
	const size_t count = xsp_timeline_name_count(t);

	if (s->mark_count == count)
		return 0;
	if (xsp_grow(&s->marks, &s->mark_capacity, count) < 0)
		return -ENOMEM;
	for (; s->mark_count < count; s->mark_count++) {
		const char *name = xsp_timeline_name(t, (xsp_name_id)s->mark_count);
		const enum mark mark = mark_of(s->marker, name);
		s->marks[s->mark_count] = (uint8_t)mark;
		s->names_that[mark]++;
	}
	return 0;
}

bool xsp_timeline_steps_expected(struct xsp_timeline *t)
{
	return t->steps != NULL &&
	       (learn_names(t) < 0 ||
		t->steps->names_that[MARK_IS] + t->steps->names_that[MARK_ENDS] > 0);
}

bool xsp_timeline_steps_are_ends(const struct xsp_timeline *t)
{
	return t->steps->names_that[MARK_IS] == 0 && t->steps->names_that[MARK_ENDS] > 0;
}

bool xsp_timeline_is_step(struct xsp_timeline *t, xsp_name_id name)
{
	return t->steps_wanted && learn_names(t) == 0 && name < t->steps->mark_count &&
	       t->steps->marks[name] == MARK_IS;
}

bool xsp_timeline_marks_steps(struct xsp_timeline *t, xsp_name_id name)
{
	return t->steps != NULL && learn_names(t) == 0 && name < t->steps->mark_count &&
	       t->steps->marks[name] != MARK_NONE;
}

bool xsp_timeline_step_asked(const struct xsp_timeline *t)
{
	return t->steps != NULL && t->steps->marker != NULL;
}

void xsp_timeline_no_steps(struct xsp_timeline *t, char *out, size_t size)
{
	static const char *const without[MARKS] = {
		[MARK_NONE] = "",
		[MARK_IS] = "; without --step " PROFILER_STEP "N are steps",
		[MARK_ENDS] = "; without --step the calls of " OPTIMIZER_STEP "... end them"};
	const char *marker = xsp_timeline_step_asked(t) ? t->steps->marker : NULL;
	const size_t count = xsp_timeline_name_count(t);
	enum mark found = MARK_NONE;

	if (marker == NULL) {
		snprintf(out, size, "no span marks steps: --step NAME says what one is");
		return;
	}
	for (size_t i = 0; i < count && found != MARK_IS; i++) {
		const enum mark mark = mark_of(NULL, xsp_timeline_name(t, (xsp_name_id)i));
		found = mark != MARK_NONE ? mark : found;
	}
	snprintf(out, size, "--step: no span is called %.100s, or that and a number%s", marker,
		 without[found]);
}

/* ---- steps ---- */

/* The thread's track, made with `make` if needed; *out NULL: there is none. */
static int track_of(struct xsp_steps_of_timeline *s, const struct xsp_span *span, enum mark mark,
		    bool make, struct track **out)
{
	const uint64_t key = xsp_u64_mix(xsp_u64_pair(span->pid, span->tid)) + mark;
	struct track *k = s->last[mark];

	*out = k;
	if (k != NULL && k->tid == span->tid && k->pid == span->pid)
		return 0;
	const uint32_t *at = xsp_u64map_get(&s->track_of, key);
	*out = at != NULL ? s->tracks[*at] : NULL;
	if (at == NULL && make && s->track_count < MAX_TRACKS) {
		const uint32_t index = (uint32_t)s->track_count;
		k = XSP_APPEND_ZEROED(s->tracks, s->track_capacity, s->track_count);
		if (k == NULL || xsp_u64map_set(&s->track_of, key, index) < 0)
			return -ENOMEM;
		*k = (struct track){
			.pid = span->pid, .tid = span->tid, .index = index, .mark = mark};
		*out = k;
	}
	if (*out != NULL)
		s->last[mark] = *out;
	return 0;
}

static int end_step(struct xsp_timeline *t, struct track *k, struct xsp_step *step)
{
	int rc = xsp_histogram_add(&k->all, step->end_ns - step->start_ns);

	step->first = k->first_count < XSP_STEPS_FIRST;
	if (step->first)
		k->first[k->first_count++] = *step;
	if (rc == 0)
		rc = xsp_notify_step(t, step);
	if (rc < 0 || step->first)
		return rc;
	step->news = XSP_STEP_COUNTS;
	return xsp_notify_step(t, step);
}

static uint64_t number_of(const struct xsp_steps_of_timeline *s, const struct track *k,
			  const char *name)
{
	const size_t stem = stem_of(s->marker, name);
	const bool own = stem > 0 && (s->marker == NULL || stem >= strlen(s->marker));
	const uint64_t number =
		k->mark == MARK_IS && own ? strtoull(name + stem, NULL, 10) : k->markers;

	return number <= INT64_MAX ? number : k->markers; /* no program counts so far */
}

static struct xsp_step step_of(const struct xsp_timeline *t, const struct track *k,
			       const struct xsp_span *span)
{
	const bool ends = k->mark == MARK_ENDS;
	struct xsp_step step = {.pid = k->pid,
				.tid = k->tid,
				.thread = k->index,
				.name = span->name,
				.number = number_of(t->steps, k, xsp_timeline_name(t, span->name)),
				.start_ns = ends ? k->begin_ns : span->start_ns,
				.end_ns = span->end_ns,
				.probe_ns = ends ? k->probe_ns : span->probe_ns,
				.by_ends = ends};

	if (step.probe_ns > step.end_ns - step.start_ns) /* it is an estimate */
		step.probe_ns = step.end_ns - step.start_ns;
	return step;
}

static int add_marker(struct xsp_timeline *t, struct track *k, const struct xsp_span *span)
{
	const bool ended = xsp_span_has_duration(span) && !(span->flags & XSP_SPAN_CUT);
	struct xsp_step step = step_of(t, k, span);
	const bool whole =
		ended && (!step.by_ends ||
			  (k->begun && xsp_timeline_recorded(t, step.start_ns, step.end_ns)));
	uint64_t from, to;

	xsp_timeline_window(t, &from, &to);
	const bool inside = t->live || (from <= step.start_ns && step.end_ns <= to);
	step.news = whole && inside			       ? XSP_STEP_ENDED
		    : step.start_ns < to && step.end_ns > from ? XSP_STEP_PARTIAL
							       : XSP_STEP_OUTSIDE;
	int rc = step.news == XSP_STEP_ENDED ? end_step(t, k, &step) : xsp_notify_step(t, &step);
	k->probe_ns = 0;
	k->begun = ended;
	k->depth = span->depth;
	k->begin_ns = span->end_ns;
	k->name = span->name;
	k->markers++;
	return rc;
}

static int report_unfollowed(struct xsp_timeline *t, const struct xsp_span *span)
{
	return xsp_notify_step(t, &(struct xsp_step){.news = XSP_STEP_UNFOLLOWED,
						     .pid = span->pid,
						     .tid = span->tid,
						     .name = span->name});
}

static bool is_inside(const struct xsp_steps_of_timeline *s, const struct xsp_span *span)
{
	for (uint32_t i = 0; i < span->depth; i++)
		if (s->marks[span->ancestors[i]] == MARK_IS)
			return true;
	return false;
}

/* Adds to a step that is a span: it is an ancestor of the calls in it. */
static int add_in_span(struct xsp_timeline *t, const struct xsp_span *span)
{
	const bool inside = is_inside(t->steps, span);
	struct track *k;

	if (!inside && t->steps->marks[span->name] != MARK_IS)
		return 0;
	int rc = track_of(t->steps, span, MARK_IS, true, &k);
	if (rc == 0 && !t->steps->spans_are && t->steps->last[MARK_ENDS] != NULL)
		rc = xsp_notify_step(t, &(struct xsp_step){.news = XSP_STEP_FORGET});
	t->steps->spans_are = true;
	t->steps_end = false;
	if (rc < 0)
		return rc;
	if (!inside)
		return k != NULL ? add_marker(t, k, span) : report_unfollowed(t, span);
	/* a call on a dropped stack may close after the step's end */
	return k != NULL && span->start_ns >= k->begin_ns ? xsp_notify_in_step(t, span, k->index)
							  : 0;
}

/* Adds to a step that a span ends: its calls come after the end of the step before. */
static int add_between(struct xsp_timeline *t, const struct xsp_span *span)
{
	const bool marker = t->steps->marks[span->name] == MARK_ENDS;
	struct track *k;
	int rc = track_of(t->steps, span, MARK_ENDS, marker, &k);

	if (rc < 0 || k == NULL)
		return rc < 0 || !marker ? rc : report_unfollowed(t, span);
	if (k->begun && span->start_ns >= k->begin_ns) {
		/* counts spans beside the marker, with all inside them; spans around the marker are
		 * around steps, too */
		if (span->depth == k->depth)
			k->probe_ns += span->probe_ns;
		rc = xsp_notify_in_step(t, span, k->index);
	}
	return rc < 0 || !marker || (k->markers > 0 && k->name != span->name)
		       ? rc
		       : add_marker(t, k, span);
}

static int note(struct xsp_timeline *t, const struct row *row, struct xsp_span *span)
{
	struct xsp_span whole;
	int rc;

	(void)row;
	if (!t->steps_wanted || (span->left_out & XSP_LEFT_OUT_THREAD))
		return 0;
	rc = learn_names(t);
	if (rc == 0 && t->probe_left_out != NULL) { /* dropped markers mark as well */
		whole = *span;
		rc = xsp_cut_ancestors(t, &whole, false);
		span = &whole;
	}
	if (rc == 0 && t->steps->names_that[MARK_IS] > 0)
		return add_in_span(t, span);
	return rc == 0 && t->steps->names_that[MARK_ENDS] > 0 ? add_between(t, span) : rc;
}

/* ---- the end ---- */

/* Warm-up: the first steps of a thread, without interruption from its first one on, that took more
 * than twice the thread's median. */
static int judge_first(struct xsp_timeline *t, struct track *k)
{
	const uint64_t median = xsp_histogram_quantile(&k->all, 0.5);
	bool warm_up = k->all.count >= 3;
	int rc = 0;

	for (size_t i = 0; i < k->first_count && rc == 0; i++) {
		struct xsp_step *step = &k->first[i];
		warm_up = warm_up && (step->end_ns - step->start_ns) / 2 > median;
		step->news = warm_up ? XSP_STEP_WARM_UP : XSP_STEP_COUNTS;
		rc = xsp_notify_step(t, step);
	}
	return rc;
}

static int end(struct xsp_timeline *t)
{
	const struct xsp_steps_of_timeline *s = t->steps;
	uint64_t from, to;
	int rc = 0;

	xsp_timeline_window(t, &from, &to);
	for (size_t i = 0; i < s->track_count && rc == 0; i++) {
		struct track *k = s->tracks[i];
		if (s->spans_are && k->mark == MARK_ENDS)
			continue;
		/* the end of what came after the last one was not seen */
		if (k->mark == MARK_ENDS && k->begun && k->begin_ns < to)
			rc = xsp_notify_step(t, &(struct xsp_step){.news = XSP_STEP_PARTIAL,
								   .pid = k->pid,
								   .tid = k->tid,
								   .thread = k->index,
								   .name = k->name,
								   .start_ns = k->begin_ns,
								   .end_ns = to,
								   .by_ends = true});
		if (rc == 0)
			rc = judge_first(t, k);
	}
	return rc;
}

const struct xsp_listener xsp_listener_steps = {
	.name = "steps",
	.live = true,
	.begin = begin,
	.note = note,
	.end = end,
	.free = free_steps,
};
