/* SPDX-License-Identifier: BSD-2-Clause */
/* list.c - `xsptrace list`: functions, libraries, sites, their classes and prices. */
#include "cli/verbs/list.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/broker.h"
#include "attach/plan.h"
#include "attach/planner.h"
#include "base/path.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/record/launch.h"
#include "cli/record/no_match.h"
#include "cli/record/session.h"
#include "target/process.h"

static int plan_process(struct xsp_plan *plan, const struct xsp_opener *o, pid_t pid,
			struct xsp_error *err)
{
	struct xsp_process *p;
	struct xsp_mapped_files *files;
	int rc = xsp_process_open(o, pid, &p, err);

	if (rc < 0)
		return rc;
	rc = xsp_process_mapped_files(p, &files, err);
	for (size_t i = 0; rc == 0 && i < files->count; i++) {
		struct xsp_planned_module *m;
		struct xsp_error unreadable = {0};
		if (xsp_plan_module(plan, p, &files->files[i], &m, NULL, &unreadable) < 0)
			xsp_say("%s is left out: %s", files->files[i].display_path,
				unreadable.text);
	}
	if (rc == 0)
		xsp_mapped_files_free(files);
	xsp_process_free(p);
	return rc;
}

/* "0x1234 emulated" for each site of a role, exits joined by commas. */
static void describe_exits(const struct xsp_placement *p, char *text, size_t size)
{
	text[0] = '\0';
	for (size_t i = 1; i < p->count; i++) {
		const struct xsp_site *s = &p->sites[i];
		xsp_join(text, size, ", ", "0x%" PRIx64 " %s%s%s", s->addr,
			 xsp_site_class_name(s->cls),
			 s->cond ? s->taken ? " taken" : " not taken" : "",
			 s->tail ? " tail call" : "");
	}
	if (p->count < 2)
		snprintf(text, size, "%s",
			 p->count == 1 && p->sites[0].role == XSP_ROLE_BOTH ? "(the same)"
									    : "none");
}

static const char *why_not_probed(const struct xsp_planned_probe *p)
{
	static const struct {
		int error;
		const char *text;
	} rows[] = {
		{-ENOENT, "where it ends is not known"},
		{-EILSEQ, "no instruction begins there that can be decoded"},
		{-EOPNOTSUPP, "no probe can be on any of its first instructions"},
		{-E2BIG, "it is too long"},
	};

	if (p->place.note != NULL)
		return p->place.note;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].error == p->error)
			return rows[i].text;
	return strerror(-p->error);
}

#define WIDE 160 /* columns of the table with short names */

/* With `table` one line for each in columns, else as many lines as a narrow terminal needs. */
static void print_text(const struct xsp_plan *plan, const struct xsp_planned_module *m,
		       const struct xsp_planned_probe *p, bool table)
{
	char exits[400], cost[XSP_UNITS_SIZE], name[1024], library[256];

	/* a target's names must not drive the user's terminal */
	xsp_printable(name, sizeof(name), p->probe.name, 0);
	xsp_printable(library, sizeof(library), xsp_base_name(m->display_path), 0);
	if (p->error < 0) {
		printf(table ? "%-48s %-28s not probed: %s\n" : "%s  %s\n    not probed: %s\n",
		       name, library, why_not_probed(p));
		return;
	}
	describe_exits(&p->place, exits, sizeof(exits));
	if (p->by_return)
		snprintf(exits, sizeof(exits), "return probe");
	printf(table ? "%-48s %-28s 0x%" PRIx64 " %-14s %-40s %s%s%s\n"
		     : "%s  %s\n    entry 0x%" PRIx64 " %s, exits %s, %s a call%s%s\n",
	       name, library, p->place.sites[0].addr, xsp_site_class_name(p->place.sites[0].cls),
	       exits, xsp_format_ns(cost, (uint64_t)xsp_planned_cost(plan, p)),
	       p->place.complete ? p->place.note == NULL ? "" : "  " : "  incomplete: ",
	       p->place.note == NULL ? "" : p->place.note);
}

static void print_plan(const struct xsp_plan *plan, double budget)
{
	double cost = 0;
	size_t functions = 0;
	char text[XSP_UNITS_SIZE], expect[400];
	const int width = xsp_terminal_width(STDOUT_FILENO);
	const bool table = width == 0 || width >= WIDE;

	xsp_wrap_stdout();
	if (table)
		printf("%-48s %-28s %-25s %-40s %s\n", "FUNCTION", "LIBRARY", "ENTRY", "EXITS",
		       "COST A CALL");
	for (size_t i = 0; i < plan->count; i++) {
		const struct xsp_planned_module *m = plan->modules[i];
		for (size_t j = 0; j < m->count; j++) {
			if (!xsp_probe_is_wanted(&m->probes[j].probe))
				continue;
			print_text(plan, m, &m->probes[j], table);
			cost += xsp_planned_cost(plan, &m->probes[j]);
			functions++;
		}
	}
	printf("%zu function%s, %zu sites (%zu nop5, %zu emulated, %zu single-stepped); a call costs the target %s on average\n",
	       functions, functions == 1 ? "" : "s", plan->sites,
	       plan->sites_by_class[XSP_SITE_NOP5], plan->sites_by_class[XSP_SITE_EMULATED],
	       plan->sites_by_class[XSP_SITE_SINGLESTEP],
	       xsp_format_ns(text, functions ? (uint64_t)(cost / (double)functions) : 0));
	xsp_list_expect(plan, budget, expect, sizeof(expect));
	if (expect[0] != '\0')
		printf("%s\n", expect);
}

/* How many calls a thread that does nothing else may make: probes get budget / (1 + budget) of its
 * time. */
static double most_calls(double budget, double call_ns)
{
	return call_ns > 0 ? 1e9 * budget / (1 + budget) / call_ns : 0;
}

void xsp_list_expect(const struct xsp_plan *plan, double budget, char *text, size_t size)
{
	double sum[XSP_SITE_CLASSES] = {0};
	size_t functions[XSP_SITE_CLASSES] = {0};
	char cost[XSP_UNITS_SIZE], rate[XSP_UNITS_SIZE];

	for (size_t i = 0; i < plan->count; i++) {
		const struct xsp_planned_module *m = plan->modules[i];
		for (size_t j = 0; j < m->count; j++) {
			const struct xsp_planned_probe *p = &m->probes[j];
			if (!xsp_probe_is_wanted(&p->probe) || p->error < 0 || p->place.count == 0)
				continue;
			/* the dearest site of a call gives its class */
			enum xsp_site_class cls = p->place.sites[0].cls;
			for (size_t k = 1; k < p->place.count; k++)
				if (plan->costs.ns[p->place.sites[k].cls] > plan->costs.ns[cls])
					cls = p->place.sites[k].cls;
			sum[cls] += xsp_planned_cost(plan, p);
			functions[cls]++;
		}
	}
	text[0] = '\0';
	for (int i = 0; i < XSP_SITE_CLASSES; i++) {
		double ns = functions[i] ? sum[i] / (double)functions[i] : 0;
		if (functions[i] == 0)
			continue;
		xsp_join(text, size, "; ", "%s %s a call",
			 xsp_site_class_name((enum xsp_site_class)i),
			 xsp_format_ns(cost, (uint64_t)ns));
		if (budget > 0)
			xsp_join(text, size, ", ", "at most %s calls/s a thread within %.3g %%",
				 xsp_format_count(rate, (uint64_t)most_calls(budget, ns)),
				 100 * budget);
	}
}

static void name_recorded(const struct xsp_recording *r, char *text, size_t size)
{
	const struct xsp_feature_row *samples = &r->of[XSP_FEATURE_SAMPLES];

	text[0] = '\0';
	if (samples->on == XSP_ASKED)
		snprintf(text, size, "%" PRIu64 " samples a second of each CPU", samples->value);
	if (r->of[XSP_FEATURE_WAITS].on == XSP_ASKED)
		xsp_join(text, size, "; ", "when threads run, and what they wait for");
}

/* For a dry run: prints what else is recorded, if anything. */
static void print_recorded(const struct xsp_recording *r)
{
	char text[200];

	name_recorded(r, text, sizeof(text));
	printf("would record %s; resident memory of each process%s\n", text,
	       r->profile ? "; nothing is attached to code" : "");
}

/* As a recording: an error, or what it records instead. */
static int print_without_match(const struct xsp_options *o, const struct xsp_recording *what,
			       const struct xsp_plan *plan, struct xsp_broker *b, pid_t pid,
			       bool dry, struct xsp_error *err)
{
	struct xsp_error none = {0};

	if (dry && what->needs_no_probes) {
		print_recorded(what);
		return 0;
	}
	const int rc =
		xsp_no_match(what, plan, b, pid, o->rest_count > 0 ? o->rest[0] : NULL, &none);
	const struct xsp_recording instead =
		xsp_recording_decide(&o->wishes, &(struct xsp_facts){.nothing_found = true});
	if (dry && instead.profile) {
		xsp_say("%s; so this would be --profile", none.text);
		print_recorded(&instead);
		return 0;
	}
	*err = none;
	return rc;
}

static size_t wanted(const struct xsp_plan *plan)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->count; i++)
		n += plan->modules[i]->wanted;
	return n;
}

static int plan_launched(struct xsp_plan *plan, struct xsp_launch *launch,
			 const struct xsp_opener *o, struct xsp_error *err)
{
	int rc = 0;

	while (xsp_launch_next(launch, o) == 1)
		rc = plan_process(plan, o, xsp_launch_pid(launch),
				  err); /* modules that are known are not read again */
	xsp_launch_signal(launch, SIGKILL);
	return rc;
}

static int plan_all(const struct xsp_options *o, const struct xsp_recording *what,
		    struct xsp_plan *plan, struct xsp_broker *b, struct xsp_launch *launch,
		    bool dry, struct xsp_error *err)
{
	const struct xsp_opener *opener = xsp_broker_opener(b);
	pid_t pid = launch != NULL ? xsp_launch_pid(launch) : o->pids[0];
	int rc = 0;

	if (xsp_planner_new(plan, opener, &plan->planner) < 0)
		return xsp_out_of_memory(err);
	if (launch != NULL)
		rc = plan_launched(plan, launch, opener, err);
	for (size_t i = 0; rc == 0 && i < o->pid_count; i++)
		rc = plan_process(plan, opener, o->pids[i], err);
	if (rc < 0)
		return rc;
	if (wanted(plan) == 0)
		return print_without_match(o, what, plan, b, pid, dry, err);
	print_plan(plan, o->max_overhead);
	if (dry && what->needs_no_probes)
		print_recorded(what);
	return 0;
}

int xsp_list_run(const struct xsp_options *o, bool load)
{
	const struct xsp_recording what =
		xsp_recording_decide(&o->wishes, &(struct xsp_facts){.nothing_found = false});
	struct xsp_plan plan = {.selection = xsp_options_selection(o, &what),
				.costs = xsp_site_costs_default()};
	struct xsp_attach_options attach = {.buffer_bytes = 1 << 20,
					    .method = (enum xsp_attach_method)o->method,
					    .ranges = xsp_selection_has_ranges(&plan.selection),
					    .verbose = o->verbose};
	struct xsp_user user = xsp_session_user(o);
	struct xsp_launch *launch = NULL;
	struct xsp_broker *broker = NULL;
	struct xsp_error err = {0};
	int rc = 0;

	if (o->rest_count > 0)
		rc = xsp_launch_start(o->rest, user.uid, user.gid, &launch, &err);
	pid_t launched = launch != NULL ? xsp_launch_pid(launch) : 0;
	struct xsp_session session = {.options = o,
				      .attach = &attach,
				      .pids = launch != NULL ? &launched : o->pids,
				      .pid_count = launch != NULL ? 1 : o->pid_count};
	const bool root = geteuid() == 0;
	if (rc == 0)
		rc = xsp_session_start(&session, &broker, &err);
	/* a dry run also asks whether the kernel permits it and measures a hit here; the list is
	 * right without that */
	if (rc == 0 && (load || root)) {
		rc = xsp_broker_load(broker, false, load ? &err : NULL);
		if (rc == 0)
			xsp_broker_calibrate(broker, &plan.costs);
		if (rc == 0 && o->pid_count > 0) /* there are no sites yet, so it cannot fail */
			xsp_plan_process(&plan, broker, o->pids[0], NULL);
		rc = load ? rc : 0;
	}
	if (rc == 0)
		rc = plan_all(o, &what, &plan, broker, launch, load, &err);
	xsp_planner_free(plan.planner);
	xsp_broker_free(broker, 1000);
	xsp_launch_free(launch);
	xsp_plan_clear(&plan);
	return rc < 0 ? xsp_say_error(&err) : XSP_STATUS_OK;
}

int xsp_cmd_list(int argc, char **argv)
{
	struct xsp_options o;
	int status;

	if (xsp_options_take(argc, argv, XSP_VERB_LIST, &o, &status))
		status = xsp_list_run(&o, false);
	xsp_options_clear(&o);
	return status;
}
