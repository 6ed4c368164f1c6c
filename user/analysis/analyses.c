/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/analyses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/ranks/ranks.h"
#include "analysis/report_head.h"
#include "analysis/rules/rules.h"
#include "analysis/summary_report.h"

/* In the order of their sections. */
static const struct xsp_analysis *const analyses[] = {
	&xsp_analysis_summary, &xsp_analysis_call_sites, &xsp_analysis_ranks,
	&xsp_analysis_gpu,     &xsp_analysis_hot_code,	 NULL,
};
#define ANALYSES (sizeof(analyses) / sizeof(analyses[0]) - 1)

struct work {
	const struct xsp_analyze_options *o;
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	void *states[ANALYSES];
	struct xsp_timeline_sink sinks[ANALYSES + XSP_ANALYZE_BESIDE];
	size_t sink_count;
};

static int begin_all(struct work *w, struct xsp_error *err)
{
	const struct xsp_analyze_beside *beside = &w->o->beside;
	size_t count = 0;
	int rc = w->o->cut != NULL ? xsp_timeline_cut(w->timeline, w->o->cut) : 0;

	xsp_timeline_mark_steps(w->timeline, w->o->step);
	for (size_t i = 0; i < ANALYSES && rc == 0; i++) {
		const struct xsp_analysis *a = analyses[i];
		rc = a->begin(w->timeline, w->reader, &w->states[i]);
		if (rc < 0 || w->states[i] == NULL)
			continue;
		if (a->configure != NULL)
			a->configure(w->states[i], w->o);
		w->sinks[w->sink_count++] = a->sink(w->states[i]);
	}
	if (rc == 0 && beside->begin != NULL)
		rc = beside->begin(beside->ctx, w->timeline, &w->sinks[w->sink_count], &count, err);
	w->sink_count += count;
	return rc;
}

static int find_nearly(const struct work *w, struct xsp_rule_context *rules)
{
	double *halves = calloc(xsp_rule_count + 1, sizeof(*halves));

	if (halves == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < xsp_rule_count; i++)
		halves[i] =
			(w->o->thresholds != NULL ? w->o->thresholds[i] : xsp_rules[i].threshold) /
			2;
	rules->report = w->o->nearly;
	int rc = xsp_rules_run(rules, halves);
	free(halves);
	return rc == 0 && xsp_report_failed(w->o->nearly) ? -ENOMEM : rc;
}

static int report_all(struct work *w, struct xsp_report *report)
{
	struct xsp_rule_context rules = {
		.timeline = w->timeline,
		.reader = w->reader,
		.report = report,
		.recorded_ns = xsp_timeline_recorded_ns(w->timeline),
		.analyses = analyses,
		.states = w->states,
	};
	uint64_t end_ns;
	int rc = 0;

	xsp_capture_window(w->reader, &rules.start_ns, &end_ns);
	xsp_report_head(w->timeline, w->reader, report);
	for (size_t i = 0; i < ANALYSES && rc == 0; i++)
		if (w->states[i] != NULL)
			rc = analyses[i]->report(w->states[i], report);
	if (rc == 0)
		rc = xsp_rules_run(&rules, w->o->thresholds);
	if (rc == 0 && w->o->nearly != NULL)
		rc = find_nearly(w, &rules);
	return rc == 0 && xsp_report_failed(report) ? -ENOMEM : rc;
}

int xsp_analyze(struct xsp_capture_reader *r, const struct xsp_analyze_options *o,
		struct xsp_report *report, struct xsp_error *err)
{
	struct work w = {.o = o, .reader = r};
	int rc = xsp_timeline_new(r, &w.timeline, err);

	if (rc == 0)
		rc = begin_all(&w, err);
	if (rc == 0)
		rc = xsp_timeline_run(w.timeline, w.sinks, w.sink_count, err);
	if (rc == 0 && o->beside.end != NULL)
		rc = o->beside.end(o->beside.ctx, w.timeline, err);
	if (rc == 0)
		rc = report_all(&w, report);
	for (size_t i = 0; i < ANALYSES; i++)
		if (w.states[i] != NULL)
			analyses[i]->end(w.states[i]);
	xsp_timeline_free(w.timeline);
	/* keeps the reason, if one was given */
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_FAILED, "cannot analyse: %s",
				      strerror(-rc))
		      : 0;
}

int xsp_analyze_ranks(struct xsp_ranks *ranks, const double *thresholds, struct xsp_report *report)
{
	static const char *const rules[] = {XSP_RULE_STRAGGLER, XSP_RULE_LATE_RANK};
	int rc = xsp_ranks_report(ranks, report);

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]) && rc == 0; i++) {
		const long rule = xsp_rule_index(rules[i], strlen(rules[i]));
		rc = xsp_ranks_find(
			ranks, rules[i],
			thresholds != NULL ? thresholds[rule] : xsp_rules[rule].threshold, report);
	}
	return rc;
}
