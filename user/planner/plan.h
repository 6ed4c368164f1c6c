/* SPDX-License-Identifier: BSD-2-Clause */
/* plan.h - what will be attached where, and how the planner reads a file for it. */
#ifndef XSP_PLANNER_PLAN_H
#define XSP_PLANNER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/site_costs.h"
#include "base/rows/u64map.h"
#include "placement/placement.h"
#include "probes/probe.h"
#include "target/python/python.h"

struct xsp_planned_probe {
	struct xsp_probe probe; /* the module's list owns its strings */
	uint32_t id; /* of the recording, dense from 0 */
	struct xsp_placement place;
	bool by_return; /* a return probe sees its exits */
	int error; /* a negative errno: it has no site, and is not attached */
	/* place.note points to it if another process has sent it; else NULL */
	char *note;
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
	bool unread, late; /* it could not be read; it was not, as it was too late */
	char *why; /* why not; may be NULL */
	size_t symbols; /* 0: the file is stripped */
	enum xsp_lacks lacks;
	size_t wanted; /* probes that the user asked for, without internal marks */
	bool is_static; /* executable without a loader */
	bool is_agent; /* it is xsptrace's agent */
	struct xsp_python_runtime python; /* --python: the interpreter that it is or contains */
	uint32_t capture_id; /* the recorder's number for it, dense over the announced modules */
	bool announced; /* the recorder has written its definitions to the capture */
	uint32_t handle; /* the broker's number for the file */
	double read_ms, find_ms, place_ms;
};

struct xsp_planner;

struct xsp_plan {
	struct xsp_planner *planner; /* reads modules */
	/* Called with one line about what is being done, as it may take seconds. May be NULL. */
	void (*progress)(void *ctx, const char *text);
	void *progress_ctx;
	struct xsp_selection selection;
	struct xsp_site_costs costs;
	bool exit_by_return; /* --exit=return: use return probes instead of exit sites */
	bool exit_by_site; /* --exit=site: use no return probe, even where it is harmless */
	uint32_t part, parts; /* choose sites for this part of so many; parts 0: for all */
	struct xsp_planned_module **modules;
	size_t count;
	struct xsp_u64map by_file; /* xsp_file_key() → index in modules */
	uint32_t probes; /* the next free id */
	size_t sites, sites_by_class[XSP_SITE_CLASSES];
	size_t unplaced; /* wanted probes without a site */
	uint64_t read_by_ns; /* when no further file is read (CLOCK_MONOTONIC); 0: all are */
};

static inline bool is_span(const struct xsp_probe *p)
{
	return p->action == XSP_ACTION_SPAN || p->action == XSP_ACTION_NAMED_SPAN;
}

/* Does it also have sites at its exits? */
static inline bool has_exits(const struct xsp_probe *p)
{
	return is_span(p) || (p->action == XSP_ACTION_HEAP && p->detail.exit != 0);
}

/* Can a return probe find the return address: where the stack pointer points, or in the link register before the first
 * instruction? */
bool xsp_plan_allows_return_probe(const struct xsp_planned_probe *p);

/* Where part number `part` begins, if `count` probes are divided into equal parts; part == parts: the end. */
size_t xsp_plan_part(size_t count, uint32_t part, uint32_t parts);
/* Reads the file at `fd`, which it takes over, and fills all of pm but ids and sites. The caller frees *m (it may be
 * NULL), which xsp_plan_place() needs. */
int xsp_plan_look(const struct xsp_plan *plan, const struct xsp_opener *o, int fd,
		  struct xsp_planned_module *pm, struct xsp_module **m, struct xsp_error *err);
/* Chooses the sites. */
int xsp_plan_place(const struct xsp_plan *plan, struct xsp_module *m, struct xsp_planned_module *pm,
		   struct xsp_error *err);
void xsp_planned_module_empty(struct xsp_planned_module *m); /* frees its probes */
void xsp_planned_module_clear(struct xsp_planned_module *m); /* frees what m owns */

#endif
