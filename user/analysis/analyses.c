/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/analyses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/ranks/ranks.h"
#include "analysis/report_head.h"
#include "analysis/rules/rules.h"
#include "analysis/summary_report.h"

/* In the order of their sections in the report. */
static const struct xsp_analysis *const analyses[] = {
	&xsp_analysis_account,
	&xsp_analysis_summary,
	&xsp_analysis_call_sites,
	&xsp_analysis_ranks,
	&xsp_analysis_gpu,
	&xsp_analysis_hot_code,
	NULL,
};
#define ANALYSES (sizeof(analyses) / sizeof(analyses[0]) - 1)

struct work {
	const struct xsp_analyze_options *o;
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	struct xsp_report *report;
	void *states[ANALYSES];
};

static int begin_all(void *ctx, struct xsp_capture_reader *r, struct xsp_timeline *t,
		     struct xsp_sinks *sinks, struct xsp_error *err)
{
	struct work *w = ctx;
	int rc = 0;

	(void)err;
	w->reader = r;
	w->timeline = t;
	for (size_t i = 0; i < ANALYSES && rc == 0; i++) {
		const struct xsp_analysis *a = analyses[i];
		rc = a->begin(t, r, &w->states[i]);
		if (rc < 0 || w->states[i] == NULL)
			continue;
		if (a->configure != NULL)
			a->configure(w->states[i], w->o);
		rc = xsp_sinks_add(sinks, a->sink(w->states[i]));
	}
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

static int report_all(void *ctx, struct xsp_timeline *t, struct xsp_error *err)
{
	struct work *w = ctx;
	struct xsp_report *report = w->report;
	struct xsp_rule_context rules = {
		.timeline = t,
		.reader = w->reader,
		.report = report,
		.recorded_ns = xsp_timeline_recorded_ns(t),
		.analyses = analyses,
		.states = w->states,
	};
	uint64_t end_ns;
	int rc = 0;

	(void)err;
	xsp_capture_window(w->reader, &rules.start_ns, &end_ns);
	xsp_report_head(t, w->reader, report);
	for (size_t i = 0; i < ANALYSES && rc == 0; i++)
		if (w->states[i] != NULL && analyses[i]->report != NULL)
			rc = analyses[i]->report(w->states[i], report);
	if (rc == 0)
		rc = xsp_rules_run(&rules, w->o->thresholds);
	if (rc == 0 && w->o->nearly != NULL)
		rc = find_nearly(w, &rules);
	return rc == 0 && xsp_report_failed(report) ? -ENOMEM : rc;
}

static void clear_all(void *ctx)
{
	struct work *w = ctx;

	for (size_t i = 0; i < ANALYSES; i++)
		if (w->states[i] != NULL)
			analyses[i]->end(w->states[i]);
}

int xsp_analyze(struct xsp_capture_reader *r, const struct xsp_analyze_options *o,
		struct xsp_report *report, struct xsp_error *err)
{
	struct work w = {.o = o, .report = report};
	const struct xsp_pass_listener listeners[] = {{&w, begin_all, report_all, clear_all},
						      o->beside};
	const int rc = xsp_pass_run(&(struct xsp_pass){r, o->cut, o->step, listeners, 2}, err);

	/* The callee may have put a reason into *err already: it stays there. */
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
		const struct xsp_rule_context c = {.rule = &xsp_rules[rule],
						   .threshold = thresholds != NULL
									? thresholds[rule]
									: xsp_rules[rule].threshold,
						   .report = report};
		rc = xsp_ranks_find(ranks, &c);
	}
	return rc;
}
