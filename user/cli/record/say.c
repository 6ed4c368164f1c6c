/* SPDX-License-Identifier: BSD-2-Clause */
/* say.c - what a recording says when it begins. */
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "base/units.h"
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

/* ---- what is recorded ---- */

#define WHOSE 16 /* of which functions are traced: so many are told apart */
#define MANY 20 /* ... and named, if one of so many functions is theirs */

/* What the user calls them: the file of functions that -e names, else what the provider is about. */
static size_t whose(const struct xsp_planned_module *m, const struct xsp_probe *p,
		    const char **name)
{
	const int row = xsp_provider_index(p->provider);
	const char *help = row >= 0 ? xsp_providers[row]->help : "";
	const size_t length = strcspn(help, ":");

	*name = help;
	if (row >= 0 && !xsp_providers[row]->internal && help[length] == ':')
		return length;
	*name = row >= 0 && !xsp_providers[row]->internal ? p->provider
							  : xsp_base_name(m->display_path);
	return strlen(*name);
}

struct whose {
	const char *name;
	size_t length, functions;
};

static void count_function(struct whose *w, size_t *count, const struct xsp_planned_module *m,
			   const struct xsp_probe *p)
{
	struct whose one = {.functions = 1};
	size_t k = 0;

	one.length = whose(m, p, &one.name);
	while (k < *count &&
	       (w[k].length != one.length || strncmp(w[k].name, one.name, one.length) != 0))
		k++;
	if (k < *count)
		w[k].functions++;
	else if (k < WHOSE)
		w[(*count)++] = one;
}

/* " of PyTorch and CUDA": those that have many of the functions. */
static void name_functions(const struct xsp_plan *plan, size_t functions, char *text, size_t size)
{
	struct whose w[WHOSE];
	size_t count = 0;

	for (size_t i = 0; i < plan->count; i++)
		for (size_t j = 0; j < plan->modules[i]->count; j++)
			if (xsp_probe_is_wanted(&plan->modules[i]->probes[j].probe))
				count_function(w, &count, plan->modules[i],
					       &plan->modules[i]->probes[j].probe);
	text[0] = '\0';
	for (size_t k = 0; k < count; k++)
		if (MANY * w[k].functions >= functions)
			xsp_join(text, size, "", "%s%.*s", text[0] != '\0' ? ", " : " of ",
				 (int)w[k].length, w[k].name);
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

/* "waits, samples and Python lines"; lines of Python only if there may be some. "": none. */
static void name_features(const struct recording *r, char text[64])
{
	const bool on[] = {xsp_records(&r->what, XSP_FEATURE_WAITS),
			   xsp_records(&r->what, XSP_FEATURE_SAMPLES),
			   xsp_records(&r->what, XSP_FEATURE_PYTHON) &&
				   reads_python(xsp_recorder_plan(r->recorder))};
	static const char *const names[] = {"waits", "samples", "Python lines"};
	const size_t count = (size_t)on[0] + on[1] + on[2];

	text[0] = '\0';
	for (size_t i = 0, n = 0; i < sizeof(on) / sizeof(on[0]); i++)
		if (on[i]) {
			strcat(text, n == 0 ? "" : n + 1 < count ? ", " : " and ");
			strcat(text, names[i]);
			n++;
		}
}

/* No function is traced, and none is waited for. */
static bool profiles(const struct recording *r)
{
	return r->what.profile || (xsp_recorder_wanted(r->recorder) == 0 && r->launch == NULL &&
				   !r->o.inject && xsp_record_named_providers(r) == 0);
}

/* One line: what is recorded. */
static void say_what(const struct recording *r)
{
	const struct xsp_plan *plan = xsp_recorder_plan(r->recorder);
	const size_t functions = xsp_recorder_wanted(r->recorder) - plan->unplaced;
	const bool hint = r->o.wishes.bare && !r->o.wishes.profile; /* nothing was chosen */
	char also[64], of[400], names[600], count[XSP_UNITS_SIZE];

	name_features(r, also);
	name_functions(plan, functions, of, sizeof(of));
	xsp_printable(names, sizeof(names), of, 0);
	if (profiles(r))
		fprintf(stderr, "profiling: %s; nothing is attached to code%s%s%s\n",
			strcmp(also, "waits and samples") == 0 ? "samples and waits" : also,
			hint ? " (-e '" : "", hint ? xsp_plan_program(plan, "PROGRAM") : "",
			hint ? ":*' traces functions)" : "");
	else
		fprintf(stderr, "tracing %s function%s%s%s%s%s%s\n",
			xsp_format_count(count, functions), functions == 1 ? "" : "s", names,
			r->launch != NULL ? " so far" : "", also[0] != '\0' ? "; " : "", also,
			also[0] != '\0' ? " too" : "");
}

static void say_plan(const struct recording *r)
{
	const struct xsp_plan *plan = xsp_recorder_plan(r->recorder);

	say_what(r);
	if (xsp_broker_method(r->broker) == XSP_ATTACH_PERF_EVENT && plan->sites > 100)
		xsp_say("this kernel takes probes out one by one, 20 ms and more each: the end will take %zu s or so for %zu sites; a narrower -e is quicker",
			plan->sites / 50, plan->sites);
	if (plan->unplaced > 0)
		xsp_say("%zu matching function%s cannot be probed and %s left out: xsptrace list says why",
			plan->unplaced, plan->unplaced == 1 ? "" : "s",
			plan->unplaced == 1 ? "is" : "are");
}

static void say_cost(const struct recording *r)
{
	const struct xsp_recorder_times *t = xsp_recorder_times(r->recorder);
	const struct xsp_plan *plan = xsp_recorder_plan(r->recorder);
	char costs[128], expect[400];

	fprintf(stderr,
		"load %.1f ms, calibrate %.1f ms, read libraries %.1f ms, find %.1f ms, place %.1f ms, attach %.1f ms\n",
		t->load_ms, t->calibrate_ms, t->read_ms, t->find_ms, t->place_ms, t->attach_ms);
	xsp_site_costs_text(&plan->costs, costs, sizeof(costs));
	fprintf(stderr,
		"attach method %s; a hit costs %s; a name %.0f ns more, sections %.0f, cold caches %.0f\n",
		xsp_attach_method_name(xsp_broker_method(r->broker)), costs, plan->costs.named_ns,
		plan->costs.detail_ns, plan->costs.cold_ns);
	xsp_list_expect(plan, r->o.max_overhead, expect, sizeof(expect));
	fprintf(stderr, "%zu sites: %zu nop5, %zu emulated, %zu single-stepped%s%s\n", plan->sites,
		plan->sites_by_class[XSP_SITE_NOP5], plan->sites_by_class[XSP_SITE_EMULATED],
		plan->sites_by_class[XSP_SITE_SINGLESTEP], expect[0] != '\0' ? "; " : "", expect);
}

void xsp_record_say_start(const struct recording *r)
{
	if (!r->o.quiet)
		say_plan(r);
	if (r->o.verbose)
		say_cost(r);
}

void xsp_record_say_goes_on(const struct recording *r)
{
	if (r->launch != NULL && xsp_launch_has_run(r->launch) &&
	    !xsp_launch_ended(r->launch, NULL) && !r->o.quiet)
		fprintf(stderr, "%s goes on as process %d\n", r->o.rest[0],
			(int)xsp_launch_pid(r->launch));
}
