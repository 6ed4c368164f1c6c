/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plan.h - what will be attached where, and how a file is read for it: without rights, in the planner.
 */
#ifndef XSP_PLANNER_PLAN_H
#define XSP_PLANNER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/site_costs.h"
#include "base/u64map.h"
#include "placement/placement.h"
#include "probes/probe.h"
#include "target/python/python.h"

struct xsp_planned_probe {
	struct xsp_probe probe; /* strings owned by the module's list */
	uint32_t id; /* of the recording, dense from 0 */
	struct xsp_placement place;
	bool by_return; /* its exits are seen by a return probe */
	int error; /* negative errno: no site could be chosen; not attached */
	char *note; /* what place.note points to, if the planner's process told it; else NULL */
};

struct xsp_planned_module {
	uint32_t id; /* of the recording, dense from 0 */
	uint64_t dev, inode;
	char *display_path;
	uint8_t build_id[64];
	size_t build_id_length;
	struct xsp_planned_probe *probes;
	size_t count;
	struct xsp_probe_list list;
	bool unread; /* why was told when it was planned */
	size_t symbols; /* 0: the file names no functions, it is stripped */
	size_t wanted; /* probes the user asked for (internal marks left out) */
	bool is_static; /* executable without a loader */
	bool is_agent; /* GPU activity */
	struct xsp_python_runtime python; /* --python: the interpreter that it is, or has */
	uint32_t capture_id; /* for the recorder: dense over the announced ones */
	bool announced; /* for the recorder: its definitions are in the capture */
	uint32_t handle; /* by which the broker knows the file */
	double read_ms, find_ms, place_ms;
};

struct xsp_planner;

struct xsp_plan {
	struct xsp_planner *planner; /* reads modules */
	/* Told what is being done, as it may take seconds: one line. May be NULL */
	void (*progress)(void *ctx, const char *text);
	void *progress_ctx;
	struct xsp_selection selection;
	struct xsp_site_costs costs;
	bool exit_by_return; /* --exit=return: return probes instead of exit sites */
	bool exit_by_site; /* --exit=site: no return probes, not even where they do no harm */
	uint32_t part, parts; /* sites are chosen for part + 1 of so many; parts 0: for all */
	struct xsp_planned_module **modules;
	size_t count;
	struct xsp_u64map by_file; /* xsp_file_key() → index in modules */
	uint32_t probes; /* ids given out */
	size_t sites, sites_by_class[XSP_SITE_CLASSES];
	size_t unplaced; /* wanted probes without a site */
};

static inline bool is_span(const struct xsp_probe *p)
{
	return p->action == XSP_ACTION_SPAN || p->action == XSP_ACTION_NAMED_SPAN;
}

/* Are its exits sites, too? */
static inline bool has_exits(const struct xsp_probe *p)
{
	return is_span(p) || (p->action == XSP_ACTION_HEAP && p->detail.exit != 0);
}

/* A return probe finds the return address where the stack pointer points, or in the link register
 * that a function's first instruction still has. */
bool xsp_plan_allows_return_probe(const struct xsp_planned_probe *p);

/* Of plan->parts equal parts of `count` probes the one that begins here; part == parts: the end. */
size_t xsp_plan_part(size_t count, uint32_t part, uint32_t parts);
/* The part of it that reads the file at `fd`, which it takes over: fills everything of pm but ids and sites. *m, which
 * the caller frees (it may be NULL), is what sites are chosen in. */
int xsp_plan_look(const struct xsp_plan *plan, const struct xsp_opener *o, int fd,
		  struct xsp_planned_module *pm, struct xsp_module **m, struct xsp_error *err);
/* ... and chooses sites. */
int xsp_plan_place(const struct xsp_plan *plan, struct xsp_module *m, struct xsp_planned_module *pm,
		   struct xsp_error *err);
void xsp_planned_module_empty(struct xsp_planned_module *m); /* of probes */
void xsp_planned_module_clear(struct xsp_planned_module *m); /* not m itself */

#endif
