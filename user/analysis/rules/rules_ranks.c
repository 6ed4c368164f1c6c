/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_ranks.c - ranks of a job in one capture (several -p, --follow), as an analysis and as
 * rules. Several captures: cli/job.h. */
#include <errno.h>

#include "analysis/analyses.h"
#include "analysis/ranks/ranks.h"
#include "analysis/rules/rules_private.h"
#include "catalog/collectives.h"
#include "catalog/providers.h"

/* Are there gloo's collectives, or calls whose kernels show them? */
static bool has_collectives(const struct xsp_timeline *t, const struct xsp_capture_reader *r)
{
	const struct xsp_capture_probe *probes = NULL;
	const size_t count = xsp_capture_probes(r, &probes);

	for (size_t i = 0; i < count; i++) {
		if (!(xsp_provider_traits(probes[i].provider) & XSP_PROVIDER_COLLECTIVES))
			continue;
		const enum xsp_collective_role role = xsp_collective_of(probes[i].symbol).role;
		if (role == XSP_COLLECTIVE_QUEUE ||
		    (role == XSP_COLLECTIVE_CALL && xsp_timeline_has_gpu(t)))
			return true;
	}
	return false;
}

static int begin(struct xsp_timeline *t, struct xsp_capture_reader *r, void **state)
{
	struct xsp_ranks *j = NULL;
	int rc = has_collectives(t, r) ? xsp_ranks_new(&j) : 0;

	if (j != NULL)
		rc = xsp_ranks_begin(j, r, t, "", NULL);
	if (rc < 0) {
		xsp_ranks_free(j);
		j = NULL;
	}
	*state = j;
	return rc;
}

static void configure(void *state, const struct xsp_analyze_options *options)
{
	xsp_ranks_mark_steps(state, options->step);
}

static struct xsp_timeline_sink sink(void *state)
{
	return xsp_ranks_sink(state);
}

/* A program may have other processes as well (a DataLoader's workers). In a job at least one
 * process says that it is a rank. */
static bool is_job(const struct xsp_ranks *j)
{
	bool any = false;

	for (size_t i = 0; i < xsp_ranks_count(j); i++)
		any = any || xsp_ranks_at(j, i).rank >= 0;
	return any && xsp_ranks_count(j) > 1;
}

static int report(void *state, struct xsp_report *out)
{
	int rc = xsp_ranks_end(state);

	if (rc == 0)
		rc = xsp_ranks_match(state);
	return rc == 0 && is_job(state) ? xsp_ranks_report(state, out) : rc;
}

static void end(void *state)
{
	xsp_ranks_free(state);
}

const struct xsp_analysis xsp_analysis_ranks = {
	.name = "ranks",
	.begin = begin,
	.sink = sink,
	.report = report,
	.end = end,
	.configure = configure,
};

int xsp_rule_ranks(const struct xsp_rule_context *c)
{
	struct xsp_ranks *j = xsp_rule_state(c, xsp_analysis_ranks.name);

	return j != NULL && is_job(j) ? xsp_ranks_find(j, c) : XSP_RULE_NO_DATA;
}
