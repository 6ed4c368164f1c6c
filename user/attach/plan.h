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

#include "attach/broker.h"
#include "planner/plan.h"
#include "target/process.h"

/* Says what is being done; the file's name is put behind it. */
void xsp_plan_progress(const struct xsp_plan *plan, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Asks what the files hold that the process maps and that are not known, all at once and without waiting: for before
 * the costs are known. Of those that hold nothing xsp_plan_module() has nothing left to do. */
void xsp_plan_look_ahead(struct xsp_plan *plan, const struct xsp_process *p);
/* Its file was changed in place (-ESTALE): the next one that maps it is looked at anew. */
void xsp_plan_forget(struct xsp_plan *plan, const struct xsp_mapped_file *file);
/* Has nobody been asked to look at it yet? For xsp_mapped_files_open_ahead(); ctx: the plan. */
bool xsp_plan_is_new(const void *ctx, const struct xsp_mapped_file *file);
/* Does the pattern name a function of it? */
bool xsp_plan_matches(const struct xsp_plan *plan, const struct xsp_pattern *p);
void xsp_plan_clear(struct xsp_plan *plan);

/* Expected price of one call of the probe, ns: its entry, one exit of it (of a range: its end), both. */
double xsp_planned_entry_cost(const struct xsp_plan *plan, const struct xsp_planned_probe *p);
double xsp_planned_exit_cost(const struct xsp_plan *plan, const struct xsp_planned_probe *p);
double xsp_planned_cost(const struct xsp_plan *plan, const struct xsp_planned_probe *p);

/* Tells the kernel where the process that maps the file has autograd's counters, if the module has
 * such. 0 or a negative errno. */
int xsp_plan_sequence(const struct xsp_planned_module *m, struct xsp_broker *b, pid_t pid,
		      const struct xsp_mapped_file *file);

/* Pages of the module's code that sites are in, where all are attached. */
size_t xsp_plan_pages(const struct xsp_planned_module *m);

/* What became of the sites of a module in a process. */
#define XSP_PLAN_NAMED 10
struct xsp_plan_attached {
	size_t refused; /* by the kernel */
	struct xsp_plan_unattached {
		size_t count; /* functions */
		char names[700]; /* of the first XSP_PLAN_NAMED */
	} changed, /* their code in memory is not the file's */
		unprobed; /* the kernel has put no breakpoint there: the code can be written, or is shared */
	bool all_out; /* one was changed meanwhile, and this kernel only takes out all that the process has */
	bool unverified; /* nothing is known of it: pages are not of 4 KiB */
	size_t repaired; /* breakpoints that a killed tracer had left */
};

/*
 * Functions of the module whose breakpoints are gone from the process, all of which were there: it has dropped or replaced
 * the page. *first: index of the first. Or a negative errno: nothing is known (xsp_verify_sites).
 */
long xsp_plan_dropped(const struct xsp_planned_module *m, struct xsp_broker *b, pid_t pid,
		      size_t *first);

#endif
