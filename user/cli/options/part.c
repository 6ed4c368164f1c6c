/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/options/part.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "cli/cli.h"
#include "model/pass.h"
#include "probes/probe.h"

int xsp_cut_refuse_several(const struct xsp_cut_options *o, const char *verb, struct xsp_error *err)
{
	if (!o->given)
		return 0;
	return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
			     "%.400s: cuts one capture, not several: see xsptrace %s --help",
			     o->text, verb);
}

void xsp_cut_clear(struct xsp_cut_options *o)
{
	for (size_t i = 0; i < o->cut.pattern_count; i++)
		xsp_pattern_clear(&o->patterns[i].pattern);
	free(o->patterns);
	free(o->comms);
	free(o->tids);
	free(o->text);
	*o = (struct xsp_cut_options){0};
}

/* ---- times ---- */

struct limits {
	uint64_t start_ns, end_ns; /* the recording's */
};

static int outside(struct xsp_error *err, const char *option, const char *value,
		   const struct limits *l)
{
	char length[XSP_UNITS_SIZE];

	return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
			     "%s %.100s is not in the recording, which is %s long", option, value,
			     xsp_format_ns(length, l->end_ns - l->start_ns));
}

/* CLOCK_MONOTONIC at the moment when the real-time clock showed that. */
static uint64_t monotonic(const struct xsp_capture_reader *r, const struct limits *l,
			  uint64_t realtime_ns)
{
	uint64_t low = l->start_ns, high = l->end_ns;

	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		if (xsp_capture_realtime(r, middle) < realtime_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* "14:03:20.5" on the day when the recording began or the next one, or with a date before it. */
static int wall_clock(const struct xsp_capture_reader *r, const struct limits *l,
		      const char *option, const char *value, uint64_t *ns, struct xsp_error *err)
{
	static const char *const forms[] = {"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S",
					    "%Y-%m-%d %H:%M", "%H:%M:%S", "%H:%M"};
	const uint64_t first = xsp_capture_realtime(r, l->start_ns);
	const uint64_t last = xsp_capture_realtime(r, l->end_ns);
	const time_t begun = (time_t)(first / 1000000000);
	const char *end = NULL;
	struct tm tm;

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && end == NULL; i++) {
		localtime_r(&begun, &tm);
		tm.tm_sec = 0;
		tm.tm_isdst = -1;
		end = strptime(value, forms[i], &tm);
		if (end != NULL && *end != '\0' && *end != '.')
			end = NULL;
	}
	char *rest = NULL;
	const double fraction = end != NULL && *end == '.' ? strtod(end, &rest) : 0;
	if (end == NULL || (*end == '.' && *rest != '\0'))
		return xsp_wrong_value(
			err, option, value,
			"seconds (2.5, 800ms), a share (30%), a time (14:03:20, 2026-11-22T14:03:20) or a step (step:10)");
	uint64_t at = (uint64_t)mktime(&tm) * 1000000000 + (uint64_t)(fraction * 1e9);
	if (at < first && strchr(value, '-') == NULL) { /* past midnight */
		tm.tm_mday++;
		const uint64_t next =
			(uint64_t)mktime(&tm) * 1000000000 + (uint64_t)(fraction * 1e9);
		at = next <= last ? next : at;
	}
	if (at < first || at > last)
		return outside(err, option, value, l);
	*ns = monotonic(r, l, at);
	return 0;
}

static int parse_time(const struct xsp_capture_reader *r, const struct limits *l,
		      const char *option, const char *value, uint64_t *ns, struct xsp_error *err)
{
	const uint64_t all = l->end_ns - l->start_ns;
	uint64_t after;
	char *end;
	const double percent = strtod(value, &end);

	if (end != value && strcmp(end, "%") == 0) {
		if (!(percent >= 0 && percent <= 100))
			return xsp_wrong_value(err, option, value, "a share from 0% to 100%");
		*ns = l->start_ns + (uint64_t)llround((double)all * percent / 100);
		return 0;
	}
	if (xsp_parse_duration(value, 1e9, &after) < 0)
		return wall_clock(r, l, option, value, ns, err);
	if (after > all)
		return outside(err, option, value, l);
	*ns = l->start_ns + after;
	return 0;
}

/* ---- steps ---- */

/* "step:10" or "step:10..20" */
static bool is_steps(const char *value, uint64_t *first, uint64_t *last, bool *both)
{
	char *end;

	if (value == NULL || strncmp(value, "step:", 5) != 0 || value[5] < '0' || value[5] > '9')
		return false;
	*first = *last = strtoull(value + 5, &end, 10);
	*both = strncmp(end, "..", 2) == 0 && end[2] >= '0' && end[2] <= '9';
	if (*both)
		*last = strtoull(end + 2, &end, 10);
	return *end == '\0' && *first <= *last;
}

/* Says why the step does not exist. */
static int no_step(const struct xsp_cut_options *o, struct xsp_timeline *t, const char *option,
		   const char *value, struct xsp_error *err)
{
	char none[256];

	xsp_timeline_no_steps(t, none, sizeof(none));
	if (o->step != NULL && !xsp_timeline_steps_expected(t))
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE, "%s %.100s: %s", option, value,
				     none);
	return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
			     "%s %.100s: the capture has no whole step%s%.100s", option, value,
			     o->step != NULL ? " of " : "; --step NAME says what one is",
			     o->step != NULL ? o->step : "");
}

/* From the first thread's beginning of these steps to the last thread's end. */
struct step_range {
	uint64_t first, last; /* the numbers that are wanted */
	uint64_t start_ns, end_ns; /* end_ns 0: none of them was found */
	uint64_t least, most; /* the numbers that exist; least > most: there is no whole step */
};

/* The one pass over the capture that looks for the steps. */
struct looking {
	const struct xsp_cut_options *o;
	const char *option, *value;
	struct step_range *range;
};

static int note_step(void *ctx, const struct xsp_step *step)
{
	struct step_range *r = ((struct looking *)ctx)->range;

	if (step->news == XSP_STEP_FORGET)
		*r = (struct step_range){.first = r->first, .last = r->last, .least = UINT64_MAX};
	if (step->news != XSP_STEP_ENDED)
		return 0;
	r->least = step->number < r->least ? step->number : r->least;
	r->most = step->number > r->most ? step->number : r->most;
	if (step->number < r->first || step->number > r->last)
		return 0;
	if (r->end_ns == 0 || step->start_ns < r->start_ns)
		r->start_ns = step->start_ns;
	r->end_ns = step->end_ns > r->end_ns ? step->end_ns : r->end_ns;
	return 0;
}

static int begin_looking(void *ctx, struct xsp_capture_reader *r, struct xsp_timeline *t,
			 struct xsp_sinks *sinks, struct xsp_error *err)
{
	(void)r;
	(void)t;
	(void)err;
	return xsp_sinks_add(sinks, (struct xsp_timeline_sink){.ctx = ctx, .step = note_step});
}

static int end_looking(void *ctx, struct xsp_timeline *t, struct xsp_error *err)
{
	const struct looking *l = ctx;
	const struct step_range *range = l->range;

	if (range->least > range->most)
		return no_step(l->o, t, l->option, l->value, err);
	if (range->end_ns > 0)
		return 0;
	return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
			     "%s %.100s: the capture has steps %" PRIu64 " to %" PRIu64, l->option,
			     l->value, range->least, range->most);
}

static int find_steps_of(struct xsp_cut_options *o, const struct xsp_cut *threads,
			 struct xsp_capture_reader *r, const char *option, const char *value,
			 struct step_range *range, struct xsp_error *err)
{
	struct looking looking = {.o = o, .option = option, .value = value, .range = range};
	const struct xsp_pass_listener listener = {&looking, begin_looking, end_looking, NULL};

	*range = (struct step_range){
		.first = range->first, .last = range->last, .least = UINT64_MAX};
	return xsp_pass_run(&(struct xsp_pass){r, threads, o->step, &listener, 1}, err);
}

/* Finds the steps of the chosen threads, by the numbers that outputs of these threads show. If
 * these threads have no steps, it takes those of all threads. */
static int find_steps(struct xsp_cut_options *o, struct xsp_capture_reader *r, const char *option,
		      const char *value, struct step_range *range, struct xsp_error *err)
{
	const struct xsp_cut all = {.to_ns = UINT64_MAX};
	const struct xsp_cut chosen = {.to_ns = UINT64_MAX,
				       .tids = o->tids,
				       .tid_count = o->cut.tid_count,
				       .comms = o->comms,
				       .comm_count = o->cut.comm_count};

	int rc = find_steps_of(o, &chosen, r, option, value, range, err);
	if (range->least <= range->most || chosen.tid_count + chosen.comm_count == 0)
		return rc;
	*err = (struct xsp_error){0};
	return find_steps_of(o, &all, r, option, value, range, err);
}

static int resolve_from(struct xsp_cut_options *o, struct xsp_capture_reader *r,
			const struct limits *l, struct xsp_error *err)
{
	struct step_range range;
	bool both;

	if (!is_steps(o->from, &range.first, &range.last, &both))
		return parse_time(r, l, "--from", o->from, &o->cut.from_ns, err);
	if (both && o->to != NULL)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "--from %.100s says where it ends: leave out --to", o->from);
	int rc = find_steps(o, r, "--from", o->from, &range, err);
	if (rc < 0)
		return rc;
	o->cut.from_ns = range.start_ns;
	if (both)
		o->cut.to_ns = range.end_ns;
	return 0;
}

static int resolve_to(struct xsp_cut_options *o, struct xsp_capture_reader *r,
		      const struct limits *l, struct xsp_error *err)
{
	struct step_range range;
	bool both;

	if (!is_steps(o->to, &range.first, &range.last, &both))
		return parse_time(r, l, "--to", o->to, &o->cut.to_ns, err);
	if (both)
		return xsp_wrong_value(err, "--to", o->to, "one step (step:20)");
	int rc = find_steps(o, r, "--to", o->to, &range, err);
	if (rc == 0)
		o->cut.to_ns = range.end_ns;
	return rc;
}

/* ---- what is left ---- */

static int count_wait(void *ctx, const struct xsp_wait *wait)
{
	((struct xsp_cut_left *)ctx)->waits += !(wait->flags & XSP_WAIT_SHORT);
	return 0;
}

static int count_sample(void *ctx, const struct xsp_sample *sample)
{
	(void)sample;
	((struct xsp_cut_left *)ctx)->samples++;
	return 0;
}

static int count_activity(void *ctx, const struct xsp_gpu_activity *activity)
{
	(void)activity;
	((struct xsp_cut_left *)ctx)->activities++;
	return 0;
}

static int count_memory(void *ctx, const struct xsp_memory_event *event)
{
	(void)event;
	((struct xsp_cut_left *)ctx)->memory++;
	return 0;
}

struct xsp_timeline_sink xsp_cut_left_sink(struct xsp_cut_left *left)
{
	return (struct xsp_timeline_sink){.ctx = left,
					  .gpu = count_activity,
					  .memory = count_memory,
					  .wait = count_wait,
					  .sample = count_sample};
}

int xsp_cut_check_left(const struct xsp_cut_options *o, const struct xsp_timeline_counts *counts,
		       const struct xsp_cut_left *left, struct xsp_error *err)
{
	const bool of_spans = o->cut.pattern_count > 0 || o->cut.min_duration_ns > 0;
	const bool others = left->waits + left->samples + left->activities + left->memory > 0;

	if (!o->given || counts->spans + counts->values > 0 || (others && !of_spans))
		return 0;
	return xsp_error_set(err, -ENOENT, XSP_STATUS_NO_MATCH,
			     "%.400s: no span of the capture is left", o->text);
}

int xsp_cut_resolve(struct xsp_cut_options *o, struct xsp_capture_reader *r, struct xsp_error *err)
{
	struct limits l;
	int rc = 0;

	xsp_capture_window(r, &l.start_ns, &l.end_ns);
	o->cut.from_ns = 0;
	o->cut.to_ns = UINT64_MAX;
	o->cut.tids = o->tids;
	o->cut.comms = o->comms;
	o->cut.patterns = o->patterns;
	o->cut.text = o->text;
	if (o->from != NULL)
		rc = resolve_from(o, r, &l, err);
	if (rc == 0 && o->to != NULL)
		rc = resolve_to(o, r, &l, err);
	if (rc == 0 && o->cut.from_ns >= o->cut.to_ns)
		rc = xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				   "--to %.100s does not come behind --from %.100s",
				   o->to != NULL ? o->to : "", o->from != NULL ? o->from : "0");
	return rc;
}
