/* SPDX-License-Identifier: BSD-2-Clause */
/* say.c - what a recording says when it begins. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/verbs/list.h"
#include "cli/record/no_match.h"
#include "cli/record/private.h"

void xsp_record_note(void *ctx, const char *text)
{
	const struct recording *r = ctx;

	if (r->o.quiet)
		return;
	if (r->view != NULL)
		r->view->note(r->view->ctx, text);
	else
		xsp_say("%s", text);
}

void xsp_record_say_unmatched(struct recording *r)
{
	xsp_status_line_end(&r->starting);
	xsp_say_unmatched(xsp_recorder_plan(r->recorder), r->broker, xsp_record_named_providers(r),
			  xsp_record_note, r);
}

void xsp_record_say_busy(struct recording *r, const char *of, const char *instead)
{
	xsp_status_line_end(&r->starting);
	if (!r->o.quiet)
		xsp_say("each processor of this machine changes threads %.0f times a second, of which %s would slow each: %s",
			r->facts.switches, of, instead);
}

/* A process that looks idle may be waiting for its children. */
void xsp_record_say_children(struct recording *r)
{
	const size_t count = r->o.follow || r->o.quiet || r->view != NULL
				     ? 0
				     : xsp_recorder_children(r->recorder);

	if (count > 0)
		xsp_say("%zu child process%s of the target %s not recorded: -f records them, too",
			count, count == 1 ? "" : "es", count == 1 ? "is" : "are");
}

static void say_profile(const struct recording *r)
{
	char text[200];

	xsp_list_recorded(&r->what,
			  xsp_broker_samples_cycles(r->broker) ? ", by its cycles"
							       : ", by its clock",
			  text, sizeof(text));
	fprintf(stderr, "recording %s%s\n", text,
		r->what.profile ? "; nothing is attached to code; Ctrl-C stops" : "");
}

static bool reads_python(const struct xsp_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		for (size_t j = 0; j < plan->modules[i]->count; j++)
			if (plan->modules[i]->probes[j].probe.detail.entry &
			    1U << XSP_SECTION_PYTHON)
				return true;
	return false;
}

/* Mentions lines of Python only if there may be some. */
static void say_defaults(const struct recording *r)
{
	static const enum xsp_feature all[] = {XSP_FEATURE_WAITS, XSP_FEATURE_SAMPLES,
					       XSP_FEATURE_PYTHON};
	const char *before = "by default also ";

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (r->what.of[all[i]].on != XSP_BY_DEFAULT ||
		    (all[i] == XSP_FEATURE_PYTHON && !reads_python(xsp_recorder_plan(r->recorder))))
			continue;
		fprintf(stderr, "%s%s", before, xsp_feature_option(all[i]));
		before = ", ";
	}
	if (before[0] == ',')
		fputs(" (each =off: not)\n", stderr);
}

static void say_functions(const struct recording *r)
{
	const struct xsp_plan *plan = xsp_recorder_plan(r->recorder);
	const size_t wanted = xsp_recorder_wanted(r->recorder), functions = wanted - plan->unplaced;
	const char *stops = r->o.duration_ns ? "Ctrl-C stops early" : "Ctrl-C stops";
	const char *more = r->launch != NULL ? " so far, more as libraries come" : "";

	if (wanted == 0)
		fprintf(stderr, "tracing 0 functions%s: nothing is attached to code; %s\n", more,
			stops);
	else
		fprintf(stderr,
			"tracing %zu function%s%s (%zu sites: %zu nop5, %zu emulated, %zu single-stepped); %s\n",
			functions, functions == 1 ? "" : "s", more, plan->sites,
			plan->sites_by_class[XSP_SITE_NOP5],
			plan->sites_by_class[XSP_SITE_EMULATED],
			plan->sites_by_class[XSP_SITE_SINGLESTEP], stops);
}

static void say_plan(const struct recording *r)
{
	const struct xsp_plan *plan = xsp_recorder_plan(r->recorder);
	char expect[400];

	xsp_list_expect(plan, r->o.max_overhead, expect, sizeof(expect));
	if (!r->what.profile)
		say_functions(r);
	if (r->what.needs_no_probes)
		say_profile(r);
	say_defaults(r);
	if (expect[0] != '\0')
		fprintf(stderr, "%s\n", expect);
	if (xsp_broker_method(r->broker) == XSP_ATTACH_PERF_EVENT && plan->sites > 100)
		xsp_say("this kernel takes probes out one by one, 20 ms and more each: the end will take %zu s or so for %zu sites; a narrower -e is quicker",
			plan->sites / 50, plan->sites);
	if (plan->unplaced > 0)
		xsp_say("%zu matching function%s cannot be probed and %s left out: xsptrace list says why",
			plan->unplaced, plan->unplaced == 1 ? "" : "s",
			plan->unplaced == 1 ? "is" : "are");
}

void xsp_record_say_start(const struct recording *r)
{
	const struct xsp_recorder_times *t = xsp_recorder_times(r->recorder);
	const struct xsp_plan *plan = xsp_recorder_plan(r->recorder);
	char costs[128];

	if (!r->o.quiet)
		say_plan(r);
	if (!r->o.verbose)
		return;
	fprintf(stderr,
		"load %.1f ms, calibrate %.1f ms, read libraries %.1f ms, find %.1f ms, place %.1f ms, attach %.1f ms\n",
		t->load_ms, t->calibrate_ms, t->read_ms, t->find_ms, t->place_ms, t->attach_ms);
	xsp_site_costs_text(&plan->costs, costs, sizeof(costs));
	fprintf(stderr,
		"attach method %s; a hit costs %s; a name %.0f ns more, sections %.0f, cold caches %.0f\n",
		xsp_attach_method_name(xsp_broker_method(r->broker)), costs, plan->costs.named_ns,
		plan->costs.detail_ns, plan->costs.cold_ns);
}
