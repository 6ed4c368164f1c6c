/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_sync.c - who waits for the GPU, and for which of its work. */
#include "analysis/rules/rules_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/calls/call_sites.h"
#include "base/text.h"
#include "base/units.h"
#include "catalog/gpu/kernels.h"

#define ACTIVITIES_SHOWN 3 /* of the GPU's work meanwhile */
#define PLACE_SHARE 4 /* a place with less than 1/4 of all waiting is not shown */

/* "sgemm 3.20 s, copies 1.00 s"; "": nothing is known. *ranks: the first is a collective's
 * kernel. 0 or -ENOMEM. */
static int waited_for(const struct xsp_call_sites *sites, const struct xsp_call_site *site,
		      char *out, size_t size, bool *ranks)
{
	size_t count;
	struct xsp_waited_for *list = xsp_call_sites_waited_for(sites, site, &count);
	char time[XSP_UNITS_SIZE];

	out[0] = '\0';
	*ranks = list != NULL && count > 0 && xsp_kernel_communicates(list[0].name);
	for (size_t i = 0; list != NULL && i < count && i < ACTIVITIES_SHOWN; i++)
		xsp_join(out, size, ", ", "%.160s %s",
			 list[i].name[0] != '\0' ? list[i].name : "a kernel without a name",
			 xsp_format_ns(time, list[i].ns));
	free(list);
	return list == NULL ? -ENOMEM : 0;
}

static int find_place(const struct xsp_rule_context *c, const struct xsp_call_place *p,
		      struct xsp_rule_part part)
{
	const struct xsp_call_sites *sites = xsp_rule_state(c, "call_sites");
	const struct xsp_call_site *site = &p->site;
	const struct xsp_gpu_counts *counts = xsp_timeline_gpu(c->timeline);
	const bool recorded = counts != NULL && counts->records > 0;
	char text[XSP_CALL_SITE_TEXT], gpu[640];
	struct xsp_rule_finding f = {.subject = text,
				     .part = part,
				     .at_ns = site->longest_start_ns,
				     .for_ns = site->longest_ns};
	bool ranks;
	int rc = waited_for(sites, site, gpu, sizeof(gpu), &ranks);

	if (rc < 0)
		return rc;
	xsp_call_site_text(sites, site, text);
	xsp_finding_ns(&f, "total_ns", "waited", site->total_ns);
	xsp_finding_count(&f, "calls", "calls", site->calls);
	if (c->steps.steps > 0)
		xsp_finding_figure(&f, "calls_per_step", "calls a step", XSP_UNIT_COUNT,
				   xsp_cell_real((double)p->in_steps / (double)c->steps.steps));
	xsp_finding_ns(&f, "max_ns", "longest", site->longest_ns);
	xsp_finding_text(&f, "waited_for", "meanwhile the GPU ran", gpu[0] != '\0' ? gpu : NULL);
	xsp_finding_flag(&f, "idle", gpu[0] == '\0' && recorded);
	xsp_finding_flag(&f, "not_recorded", gpu[0] == '\0' && !recorded);
	xsp_finding_flag(&f, "ranks", ranks);
	xsp_rule_found(c, &f);
	return 0;
}

int xsp_rule_sync(const struct xsp_rule_context *c)
{
	struct xsp_call_place all = {.in_steps = 0};
	size_t count;
	int rc = 0;

	if (!xsp_summary_gpu_called(xsp_rule_summary(c)->gpu))
		return XSP_RULE_NO_DATA;
	struct xsp_call_place *places =
		xsp_call_sites_places(xsp_rule_state(c, "call_sites"), 1U << XSP_CUDA_SYNC, &count);
	if (places == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		xsp_call_place_add(&all, &places[i]);
	const struct xsp_rule_part whole = xsp_rule_part(c, all.site.total_ns, all.in_steps_ns);
	for (size_t i = 0; i < count && rc == 0 && whole.share > 0; i++) {
		const struct xsp_rule_part part =
			xsp_rule_part(c, places[i].site.total_ns, places[i].in_steps_ns);
		if (whole.share >= c->threshold && PLACE_SHARE * part.share >= whole.share)
			rc = find_place(c, &places[i], part);
	}
	free(places);
	return rc;
}
