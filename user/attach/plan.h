/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plan.h - what will be attached where: modules, the probes found in them, their sites.
 * One plan serves a whole recording; a module is looked at once, however many processes map it.
 */
#ifndef XSP_ATTACH_PLAN_H
#define XSP_ATTACH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/attach.h"
#include "base/error.h"
#include "placement/placement.h"
#include "probes/probe.h"
#include "target/process.h"

struct xsp_planned_probe {
	struct xsp_probe probe; /* strings owned by the module's list */
	uint32_t id; /* of the recording, dense from 0 */
	struct xsp_placement place;
	bool by_return; /* its exits are seen by a return probe */
	int error; /* negative errno: no site could be chosen; not attached */
};

struct xsp_planned_module {
	uint32_t id; /* of the recording, dense from 0 */
	uint64_t dev, inode;
	char *shown;
	uint8_t build_id[64];
	size_t build_id_length;
	struct xsp_planned_probe *probes;
	size_t count;
	struct xsp_probe_list list;
	size_t symbols; /* functions that the file names; 0: stripped */
	size_t wanted; /* probes the user asked for (internal marks left out) */
	bool is_static; /* executable without a loader */
	bool is_agent; /* GPU activity: attached in each process by itself */
	uint32_t capture_id; /* for the recorder: dense over the announced ones */
	bool announced; /* for the recorder: its definitions are in the capture */
	bool attached; /* for the recorder: links for all processes are there (--follow) */
	double read_ms, find_ms, place_ms;
};

struct xsp_plan {
	struct xsp_selection selection;
	struct xsp_site_costs costs;
	bool exit_by_return; /* --exit=return: return probes instead of exit sites */
	bool exit_by_site; /* --exit=site: no return probes, not even where they do no harm */
	struct xsp_planned_module **modules;
	size_t count;
	uint32_t probes; /* ids given out */
	size_t sites, sites_by_class[XSP_SITE_CLASSES];
	size_t unplaced; /* probes without a site */
};

/* Looks at a mapped file (once): reads, finds, places. A file that cannot be read as ELF becomes
 * a module without probes; its reason goes to err. *fresh (may be NULL): seen for the first time. */
int xsp_plan_module(struct xsp_plan *plan, const struct xsp_mapped_file *file,
		    struct xsp_planned_module **out, bool *fresh, struct xsp_error *err);
void xsp_plan_clear(struct xsp_plan *plan);

/* Expected price of one call of the probe, ns: entry plus one exit. */
double xsp_planned_cost(const struct xsp_plan *plan, const struct xsp_planned_probe *p);

/* Tells the kernel where the process that maps the file has autograd's counters, if the module has
 * such. 0 or a negative errno. */
int xsp_plan_sequence(const struct xsp_planned_module *m, struct xsp_attach *a, pid_t pid,
		      const struct xsp_mapped_file *file);

/* Attaches every placed probe of a module to a process. Refused sites are counted. */
int xsp_plan_attach(struct xsp_plan *plan, struct xsp_attach *a, struct xsp_planned_module *m,
		    pid_t pid, const char *open_path, size_t *refused, struct xsp_error *err);

#endif
