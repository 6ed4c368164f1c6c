/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_sync.c - who waits for the GPU, and for what of it. */
#include "analysis/rules_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/call_sites.h"
#include "analysis/summary_report.h"
#include "base/units.h"

#define SHOWN 3 /* of what the GPU did meanwhile */
#define PLACE_SHARE 4 /* a place with less than this part of all waiting is not told of */

/* "sgemm 3.20 s, copies 1.00 s"; "": nothing is known. 0 or -ENOMEM. */
static int waited_for(const struct xsp_call_sites *sites, const struct xsp_call_site *site,
		      char *out, size_t size)
{
	size_t count, used = 0;
	struct xsp_waited_for *list = xsp_call_sites_waited_for(sites, site, &count);
	char time[XSP_UNITS_SIZE];

	out[0] = '\0';
	for (size_t i = 0; list != NULL && i < count && i < SHOWN && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%.160s %s", i > 0 ? ", " : "",
					 list[i].name[0] != '\0' ? list[i].name
								 : "a kernel without a name",
					 xsp_format_ns(time, list[i].ns));
	free(list);
	return list == NULL ? -ENOMEM : 0;
}

static int find_place(const struct xsp_rule_context *c, const struct xsp_call_place *p,
		      double share, const char *of, uint64_t steps)
{
	const struct xsp_call_sites *sites = xsp_rule_state(c, "call_sites");
	const struct xsp_call_site *site = &p->site;
	char text[XSP_CALL_SITE_TEXT], title[XSP_CALL_SITE_TEXT + 200], gpu[640];
	char advice[XSP_CALL_SITE_TEXT + 1200], doubt[XSP_DOUBT_SIZE];
	int rc = waited_for(sites, site, gpu, sizeof(gpu));

	if (rc < 0)
		return rc;
	xsp_call_site_text(sites, site, text);
	snprintf(title, sizeof(title), "waiting for the GPU takes %.1f %% of %s: %s", 100 * share,
		 of, text);
	snprintf(advice, sizeof(advice),
		 "%s%s%s what %s wants of the GPU is wanted too early or too often: ask for it "
		 "later "
		 "or every so many steps (.item(), .cpu(), print, a copy without non_blocking), or "
		 "give the GPU less to do before it",
		 gpu[0] != '\0' ? "the wait is not the cause, what the GPU did meanwhile is: "
				: "what the GPU did meanwhile was not recorded (--gpu);",
		 gpu, gpu[0] != '\0' ? ". Else" : "", text);
	struct xsp_report_section *f = xsp_rule_found(
		c,
		(struct xsp_report_finding){
			.subject = text,
			.title = title,
			.advice = advice,
			.uncertain = xsp_rule_doubt(c, XSP_DOUBT_LOST | XSP_DOUBT_WINDOWS, doubt),
			.share = share,
			.from_ns = site->longest_start_ns,
			.to_ns = site->longest_start_ns + site->longest_ns},
		true);
	xsp_report_value(f, "total_ns", "waited", XSP_UNIT_NS, xsp_cell_integer(site->total_ns));
	xsp_report_value(f, "calls", "calls", XSP_UNIT_COUNT, xsp_cell_integer(site->calls));
	if (steps > 0)
		xsp_report_value(f, "calls_per_step", "calls a step", XSP_UNIT_COUNT,
				 xsp_cell_real((double)p->in_steps / (double)steps));
	xsp_report_value(f, "max_ns", "longest", XSP_UNIT_NS, xsp_cell_integer(site->longest_ns));
	if (gpu[0] != '\0')
		xsp_report_value(f, "waited_for", "meanwhile the GPU ran", XSP_UNIT_TEXT,
				 xsp_cell_text(gpu));
	return 0;
}

int xsp_rule_sync(const struct xsp_rule_context *c)
{
	const struct xsp_summary_analysis *a = xsp_rule_state(c, "summary");
	const struct xsp_call_sites *sites = xsp_rule_state(c, "call_sites");
	struct xsp_steps_figures steps;
	uint64_t all = 0;
	const char *of;
	const uint64_t time = xsp_rule_time(c, &of);
	size_t count;
	int rc = xsp_steps_figures(a->summary->steps, &steps);

	if (rc < 0 || !xsp_summary_gpu_called(a->summary->gpu))
		return rc < 0 ? rc : XSP_RULE_NO_DATA;
	struct xsp_call_place *places = xsp_call_sites_places(sites, 1U << XSP_CUDA_SYNC, &count);
	if (places == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		all += places[i].site.total_ns;
	if (all > 0 && (double)all >= c->threshold * (double)time)
		for (size_t i = 0; i < count && rc == 0; i++)
			if (places[i].site.total_ns >= all / PLACE_SHARE)
				rc = find_place(c, &places[i],
						xsp_rule_share(places[i].site.total_ns, time), of,
						steps.steps);
	free(places);
	return rc;
}
