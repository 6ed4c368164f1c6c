/* SPDX-License-Identifier: BSD-2-Clause */
/* rule_support.c - what rules share: states of other analyses, shares, caveats. Findings:
 * rule_finding.c. */
#include "analysis/rules/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/account/account_report.h"
#include "analysis/gpu/gpu.h"
#include "analysis/calls/call_sites.h"
#include "analysis/summary_report.h"
#include "analysis/waits/summary_waits_private.h"
#include "base/text.h"
#include "base/units.h"
#include "model/health.h"
#include "timeline/samples.h"
#include "timeline/windows.h"

void *xsp_rule_state(const struct xsp_rule_context *c, const char *analysis)
{
	for (size_t i = 0; c->analyses[i] != NULL; i++)
		if (strcmp(c->analyses[i]->name, analysis) == 0)
			return c->states[i];
	return NULL;
}

#define READY_MOST 0.95
static double ready_share(const struct xsp_account *account)
{
	const struct xsp_account_family *f;

	if (account == NULL || xsp_account_families(account, &f) == 0 || f->all_ns == 0)
		return 0;
	const double share = (double)f->all_ready_ns / (double)f->all_ns;
	return share < READY_MOST ? share : READY_MOST;
}

void xsp_rules_prepare(struct xsp_rule_context *c)
{
	const struct xsp_summary_analysis *a = xsp_rule_state(c, "summary");
	const struct xsp_summary_row *rows;
	const size_t count = xsp_summary_rows(a->summary, &rows);
	uint64_t in_calls = 0;

	for (size_t i = 0; i < count; i++)
		in_calls += rows[i].self_ns;
	const bool more = in_calls > c->recorded_ns;
	c->time_ns = more ? in_calls : c->recorded_ns;
	c->time_of = more ? "the time that threads spent in calls" : "the recorded time";
	c->steps = xsp_steps_figures(a->summary->steps);
	c->ready = ready_share(xsp_account_of(xsp_rule_state(c, "account")));
}

struct xsp_rule_part xsp_rule_part(const struct xsp_rule_context *c, uint64_t ns,
				   uint64_t in_steps_ns)
{
	const struct xsp_rule_part whole = {xsp_rule_share(ns, c->time_ns), c->time_of};
	const struct xsp_rule_part inside = {xsp_rule_share(in_steps_ns, c->steps.sum_ns),
					     "the time of steps"};

	return inside.share > whole.share ? inside : whole;
}

#define MOST_OF_THE_TIME 0.9

bool xsp_rule_was_there(const struct xsp_rule_context *c, uint64_t there_ns)
{
	return (double)there_ns > MOST_OF_THE_TIME * (double)xsp_rule_waits_ns(c);
}

uint64_t xsp_rule_waits_ns(const struct xsp_rule_context *c)
{
	return xsp_timeline_watched_ns(c->timeline, xsp_timeline_waits_until_ns(c->timeline));
}

uint64_t xsp_rule_samples_ns(const struct xsp_rule_context *c)
{
	return xsp_timeline_watched_ns(c->timeline, xsp_timeline_samples_until_ns(c->timeline));
}

void xsp_rule_cpu_of(const struct xsp_rule_context *c, uint32_t pid, uint64_t *running_ns,
		     uint64_t *runnable_ns)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(c->timeline, &times);

	*running_ns = *runnable_ns = 0;
	for (size_t i = 0; i < count; i++) {
		if (times[i].thread->pid != pid)
			continue;
		*running_ns += times[i].running_ns;
		*runnable_ns += times[i].runnable_ns;
	}
}

/* ---- caveats ---- */

/* A library that loads during the recording gets its probes a little later. It is a caveat from
 * a hundredth of the time on. */
static void add_late(const struct xsp_rule_context *c, char *out)
{
	const char *ns = xsp_capture_info(c->reader, "libraries late ns");
	const uint64_t late = ns != NULL ? strtoull(ns, NULL, 10) : 0;
	char time[XSP_UNITS_SIZE];

	if (late > 0 && late >= c->recorded_ns / 100)
		xsp_join(
			out, XSP_DOUBT_SIZE, "; ",
			"probes came up to %s after their library was loaded: calls before that are not seen, and what they called is told without them",
			xsp_format_ns(time, late));
}

static void add_ended(const struct xsp_rule_context *c, char *out, const char *what,
		      uint64_t until_ns)
{
	const uint64_t first_ns = xsp_timeline_first_ns(c->timeline, until_ns);
	char time[XSP_UNITS_SIZE];

	if (first_ns > 0)
		xsp_join(out, XSP_DOUBT_SIZE, "; ", "%s were recorded in the first %s only", what,
			 xsp_format_ns(time, first_ns));
}

static void add_not_compared(const struct xsp_rule_context *c, char *out)
{
	const uint64_t n = xsp_call_sites_not_compared(xsp_rule_state(c, "call_sites"));
	char count[XSP_UNITS_SIZE];

	if (n > 0)
		xsp_join(
			out, XSP_DOUBT_SIZE, "; ",
			"what the GPU did meanwhile is a lower bound: %s calls and activities came too late, or with too many others, to be compared",
			xsp_format_count(count, n));
}

static void add_locks(const struct xsp_rule_context *c, char *out)
{
	const struct xsp_summary_analysis *a = xsp_rule_state(c, "summary");
	const struct xsp_summary_waits *w = a->summary->waits;
	char text[XSP_WAITS_LEFT_OUT];

	if (w != NULL && xsp_waits_left_out(w, text))
		xsp_join(out, XSP_DOUBT_SIZE, "; ", "%s: those that came last are missing", text);
}

/* A smaller share was launched before the recording began. */
#define UNLAUNCHED_LEAST 0.01

/* A caveat about GPU records replaces all others: a missing record looks like idle time. */
static void add_gpu(const struct xsp_rule_context *c, char *out)
{
	const struct xsp_gpu_counts *n = xsp_timeline_gpu(c->timeline);
	const struct xsp_gpu_analysis *g = xsp_rule_state(c, "gpu");
	char count[XSP_UNITS_SIZE];

	if (n->lost + n->dropped > 0)
		xsp_join(out, XSP_DOUBT_SIZE, "; ",
			 "%s GPU records were lost: work that is not known looks idle",
			 xsp_format_count(count, n->lost + n->dropped));
	else if (xsp_gpu_bad_count(n) > 0)
		xsp_join(
			out, XSP_DOUBT_SIZE, "; ",
			"the times of %s GPU records cannot be true: work that is not known looks idle",
			xsp_format_count(count, xsp_gpu_bad_count(n)));
	else if ((double)g->unlaunched > UNLAUNCHED_LEAST * (double)n->records)
		xsp_join(out, XSP_DOUBT_SIZE, "; ", "the launches of %s activities are not known",
			 xsp_format_count(count, g->unlaunched));
}

const char *xsp_rule_doubt(const struct xsp_rule_context *c, unsigned about,
			   char out[XSP_DOUBT_SIZE])
{
	const struct xsp_timeline_counts *counts = xsp_timeline_counts(c->timeline);
	const struct xsp_capture_window *windows;
	const struct xsp_health health = xsp_health_of(c->reader);
	const uint64_t filtered = counts->filtered + health.left_out;
	char count[XSP_UNITS_SIZE], text[XSP_HEALTH_TEXT];
	uint64_t start, end;

	out[0] = '\0';
	if (about & XSP_DOUBT_GPU)
		add_gpu(c, out);
	if (out[0] != '\0')
		return out;
	xsp_timeline_window(c->timeline, &start, &end);
	if ((about & XSP_DOUBT_LOST) && xsp_health_text(&health, text) != NULL)
		xsp_join(
			out, XSP_DOUBT_SIZE, "; ",
			"%s: counts are lower bounds, and a call whose end was lost may be taken for a longer one",
			text);
	if ((about & XSP_DOUBT_ENDS) && counts->exit_lost > 0)
		xsp_join(out, XSP_DOUBT_SIZE, "; ",
			 "ends of %s calls were not seen: their time is in what called them",
			 xsp_format_count(count, counts->exit_lost));
	if ((about & XSP_DOUBT_WINDOWS) && xsp_capture_windows(c->reader, &windows) > 0 &&
	    c->recorded_ns < end - start)
		xsp_join(out, XSP_DOUBT_SIZE, "; ", "only %.3g %% of the time was recorded (%s)",
			 100.0 * (double)c->recorded_ns / (double)(end - start),
			 xsp_capture_windows_option(c->reader));
	if ((about & XSP_DOUBT_FILTERED) && filtered > 0)
		xsp_join(out, XSP_DOUBT_SIZE, "; ",
			 "%s calls were held back by filters: their time is in what called them",
			 xsp_format_count(count, filtered));
	if ((about & XSP_DOUBT_FILTERED) && xsp_timeline_cut_hides(c->timeline))
		xsp_join(out, XSP_DOUBT_SIZE, "; ",
			 "the cut leaves out calls: their time is in what called them");
	if ((about & XSP_DOUBT_SITES) && xsp_call_sites_overflowed(xsp_rule_state(c, "call_sites")))
		xsp_join(
			out, XSP_DOUBT_SIZE, "; ",
			"there are more places that call than were followed: those that came last are missing");
	if (about & XSP_DOUBT_MEANWHILE)
		add_not_compared(c, out);
	if (about & XSP_DOUBT_LOCKS)
		add_locks(c, out);
	if (about & XSP_DOUBT_LATE)
		add_late(c, out);
	if (about & XSP_DOUBT_WAITS)
		add_ended(c, out, "waits", xsp_timeline_waits_until_ns(c->timeline));
	if (about & XSP_DOUBT_SAMPLES)
		add_ended(c, out, "samples", xsp_timeline_samples_until_ns(c->timeline));
	return out[0] != '\0' ? out : NULL;
}
