/* SPDX-License-Identifier: BSD-2-Clause */
/* list.c - `xsptrace list`: functions, libraries, sites, their classes and prices. */
#include "cli/list.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/attach.h"
#include "attach/plan.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/no_match.h"
#include "target/process.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int plan_process(struct xsp_plan *plan, pid_t pid, struct xsp_error *err)
{
	struct xsp_process *p;
	struct xsp_mapped_files *files;
	int rc = xsp_process_open(pid, &p, err);

	if (rc < 0)
		return rc;
	rc = xsp_process_mapped_files(p, &files, err);
	for (size_t i = 0; rc == 0 && i < files->count; i++) {
		struct xsp_planned_module *m;
		struct xsp_error unreadable = {0};
		if (xsp_plan_module(plan, &files->files[i], &m, NULL, &unreadable) < 0)
			xsp_say("%s is left out: %s", files->files[i].shown, unreadable.text);
	}
	if (rc == 0)
		xsp_mapped_files_free(files);
	xsp_process_free(p);
	return rc;
}

/* "0x1234 emulated" for each site of a role, exits joined by commas. */
static void describe_exits(const struct xsp_placement *p, char *text, size_t size)
{
	size_t used = 0;

	snprintf(text, size, "%s",
		 p->count == 1 && p->sites[0].role == XSP_ROLE_BOTH ? "(the same)" : "none");
	for (size_t i = 1; i < p->count && used < size; i++) {
		const struct xsp_site *s = &p->sites[i];
		int n = snprintf(text + used, size - used, "%s0x%" PRIx64 " %s%s%s",
				 i > 1 ? ", " : "", s->addr, xsp_site_class_name(s->cls),
				 s->cond ? s->taken ? " taken" : " not taken" : "",
				 s->tail ? " tail call" : "");
		used += n > 0 ? (size_t)n : 0;
	}
}

static void print_text(const struct xsp_plan *plan, const struct xsp_planned_module *m,
		       const struct xsp_planned_probe *p)
{
	char exits[400], cost[XSP_UNITS_SIZE];

	if (p->error < 0) {
		printf("%-48s %-28s not probed: %s\n", p->probe.name, base_name(m->shown),
		       strerror(-p->error));
		return;
	}
	describe_exits(&p->place, exits, sizeof(exits));
	if (p->by_return)
		snprintf(exits, sizeof(exits), "return probe");
	printf("%-48s %-28s 0x%" PRIx64 " %-14s %-40s %s%s%s\n", p->probe.name, base_name(m->shown),
	       p->place.sites[0].addr, xsp_site_class_name(p->place.sites[0].cls), exits,
	       xsp_format_ns(cost, (uint64_t)xsp_planned_cost(plan, p)),
	       p->place.complete ? "" : "  incomplete: ",
	       p->place.complete || p->place.note == NULL ? "" : p->place.note);
}

static void print_plan(const struct xsp_plan *plan)
{
	double cost = 0;
	size_t functions = 0;
	char text[XSP_UNITS_SIZE];

	printf("%-48s %-28s %-25s %-40s %s\n", "FUNCTION", "LIBRARY", "ENTRY", "EXITS",
	       "COST A CALL");
	for (size_t i = 0; i < plan->count; i++) {
		const struct xsp_planned_module *m = plan->modules[i];
		for (size_t j = 0; j < m->count; j++) {
			if (!xsp_probe_is_wanted(&m->probes[j].probe))
				continue;
			print_text(plan, m, &m->probes[j]);
			cost += xsp_planned_cost(plan, &m->probes[j]);
			functions++;
		}
	}
	printf("%zu function%s, %zu sites (%zu nop5, %zu emulated, %zu single-stepped); a call "
	       "costs the target "
	       "%s on average\n",
	       functions, functions == 1 ? "" : "s", plan->sites,
	       plan->sites_by_class[XSP_SITE_NOP5], plan->sites_by_class[XSP_SITE_EMULATED],
	       plan->sites_by_class[XSP_SITE_SINGLESTEP],
	       xsp_format_ns(text, functions ? (uint64_t)(cost / (double)functions) : 0));
}

static size_t wanted(const struct xsp_plan *plan)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->count; i++)
		n += plan->modules[i]->wanted;
	return n;
}

/* A dry run also finds out whether the kernel would let us, and what a hit costs here. */
static int measure(const struct xsp_options *o, struct xsp_plan *plan, struct xsp_error *err)
{
	struct xsp_attach_options options = {.buffer_bytes = 1 << 20,
					     .method = o->method,
					     .force_plain = o->force_plain,
					     .verbose = o->verbose};
	struct xsp_attach *a;
	int rc = xsp_attach_new(&options, &a, err);

	if (rc < 0)
		return rc;
	xsp_attach_calibrate(a, &plan->costs);
	xsp_attach_free(a);
	return 0;
}

int xsp_list_run(const struct xsp_options *o, bool load)
{
	struct xsp_plan plan = {.selection = xsp_options_selection(o),
				.costs = xsp_site_costs_default()};
	struct xsp_launch *launch = NULL;
	struct xsp_error err = {0};
	pid_t pid = o->pid_count ? o->pids[0] : 0;
	int rc = 0;

	if (load || geteuid() == 0)
		rc = measure(o, &plan, load ? &err : NULL);
	if (!load)
		rc = 0; /* the list is right without it */
	if (rc == 0 && o->command != NULL) {
		rc = xsp_launch_start(o->command, &launch, &err);
		if (rc == 0) {
			pid = xsp_launch_pid(launch);
			while (xsp_launch_next(launch) == 1)
				rc = plan_process(&plan, pid,
						  &err); /* known ones are not looked at again */
			xsp_launch_signal(launch, SIGKILL);
		}
	}
	for (size_t i = 0; rc == 0 && i < o->pid_count; i++)
		rc = plan_process(&plan, o->pids[i], &err);
	if (rc == 0 && wanted(&plan) == 0)
		rc = xsp_no_match(&plan, pid, &err);
	if (rc == 0)
		print_plan(&plan);
	xsp_launch_free(launch);
	xsp_plan_clear(&plan);
	return rc < 0 ? xsp_say_error(&err) : XSP_STATUS_OK;
}

int xsp_cmd_list(int argc, char **argv)
{
	struct xsp_options o;
	struct xsp_error err = {0};
	int status;

	switch (xsp_options_parse(argc, argv, true, &o, &err)) {
	case XSP_OPTIONS_RUN:
		status = xsp_list_run(&o, false);
		break;
	case XSP_OPTIONS_DONE:
		status = XSP_STATUS_OK;
		break;
	default:
		status = xsp_say_error(&err);
	}
	xsp_options_clear(&o);
	return status;
}
