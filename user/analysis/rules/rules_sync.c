/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_sync.c - who waits for the GPU, and for what of it. */
#include "analysis/rules/rules_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/calls/call_sites.h"
#include "analysis/summary_report.h"
#include "base/units.h"
#include "catalog/gpu/kernels.h"

#define ACTIVITIES_SHOWN 3 /* of what the GPU did meanwhile */
#define PLACE_SHARE 4 /* a place with less than this part of all waiting is not told of */

/* "sgemm 3.20 s, copies 1.00 s"; "": nothing is known. *ranks: first of all for a collective's kernel. 0 or -ENOMEM. */
static int waited_for(const struct xsp_call_sites *sites, const struct xsp_call_site *site,
		      char *out, size_t size, bool *ranks)
{
	size_t count, used = 0;
	struct xsp_waited_for *list = xsp_call_sites_waited_for(sites, site, &count);
	char time[XSP_UNITS_SIZE];

	out[0] = '\0';
	*ranks = list != NULL && count > 0 && xsp_kernel_communicates(list[0].name);
	for (size_t i = 0; list != NULL && i < count && i < ACTIVITIES_SHOWN && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%.160s %s", i > 0 ? ", " : "",
					 list[i].name[0] != '\0' ? list[i].name
								 : "a kernel without a name",
					 xsp_format_ns(time, list[i].ns));
	free(list);
	return list == NULL ? -ENOMEM : 0;
}

static int find_place(const struct xsp_rule_context *c, const struct xsp_call_place *p,
		      struct xsp_rule_part part)
{
	const struct xsp_call_sites *sites = xsp_rule_state(c, "call_sites");
	const struct xsp_call_site *site = &p->site;
	char text[XSP_CALL_SITE_TEXT], title[XSP_CALL_SITE_TEXT + 200], gpu[640];
	char advice[XSP_CALL_SITE_TEXT + 1200], doubt[XSP_DOUBT_SIZE];
	const struct xsp_gpu_counts *counts = xsp_timeline_gpu(c->timeline);
	const bool recorded = counts != NULL && counts->records > 0;
	bool ranks;
	int rc = waited_for(sites, site, gpu, sizeof(gpu), &ranks);

	if (rc < 0)
		return rc;
	xsp_call_site_text(sites, site, text);
	snprintf(title, sizeof(title), "waiting for the GPU takes %.1f %% of %s: %s",
		 100 * part.share, part.of, text);
	snprintf(advice, sizeof(advice),
		 "%s%s. What %s wants of the GPU may be wanted too early or too often: ask for it "
		 "later or every so many steps (.item(), .cpu(), print, a copy without "
		 "non_blocking), or give the GPU less to do before it%s",
		 gpu[0] != '\0' ? "the wait is not the cause, what the GPU did meanwhile is: "
		 : recorded	? "the GPU is not known to have run anything meanwhile"
				: "what the GPU did meanwhile was not recorded",
		 gpu, text,
		 ranks ? ". A collective's kernel waits for the other ranks: analyze of the "
			 "captures "
			 "of all ranks says which one comes late"
		       : "");
	struct xsp_report_section *f = xsp_rule_found(
		c,
		(struct xsp_report_finding){
			.subject = text,
			.title = title,
			.advice = advice,
			.uncertain = xsp_rule_doubt(c,
						    XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS |
							    XSP_DOUBT_SITES | XSP_DOUBT_LATE |
							    XSP_DOUBT_MEANWHILE,
						    doubt),
			.share = part.share,
			.from_ns = site->longest_start_ns,
			.to_ns = site->longest_start_ns + site->longest_ns},
		true);
	xsp_report_value(f, "total_ns", "waited", XSP_UNIT_NS, xsp_cell_integer(site->total_ns));
	xsp_report_value(f, "calls", "calls", XSP_UNIT_COUNT, xsp_cell_integer(site->calls));
	if (c->steps.steps > 0)
		xsp_report_value(f, "calls_per_step", "calls a step", XSP_UNIT_COUNT,
				 xsp_cell_real((double)p->in_steps / (double)c->steps.steps));
	xsp_report_value(f, "max_ns", "longest", XSP_UNIT_NS, xsp_cell_integer(site->longest_ns));
	if (gpu[0] != '\0')
		xsp_report_value(f, "waited_for", "meanwhile the GPU ran", XSP_UNIT_TEXT,
				 xsp_cell_text(gpu));
	return 0;
}

int xsp_rule_sync(const struct xsp_rule_context *c)
{
	const struct xsp_summary_analysis *a = xsp_rule_state(c, "summary");
	struct xsp_call_place all = {.in_steps = 0};
	size_t count;
	int rc = 0;

	if (!xsp_summary_gpu_called(a->summary->gpu))
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
