/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plan.h - what will be attached where: modules, their probes and sites. A recording has one plan; each module is read
 * once, however many processes map it.
 */
#ifndef XSP_ATTACH_PLAN_H
#define XSP_ATTACH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/broker.h"
#include "planner/plan.h"
#include "target/process.h"

/* Reports what is being done, followed by the file's name. */
void xsp_plan_progress(const struct xsp_plan *plan, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Asks the planners to look at all new files that the process maps, without waiting and before costs are known. Then
 * xsp_plan_module() need not read files that hold nothing. */
void xsp_plan_look_ahead(struct xsp_plan *plan, const struct xsp_process *p);
/* The file's module, or NULL: it has not been planned. */
struct xsp_planned_module *xsp_plan_find(const struct xsp_plan *plan,
					 const struct xsp_mapped_file *file);
/* The file was changed in place (-ESTALE): the next process that maps it has it read again. */
void xsp_plan_forget(struct xsp_plan *plan, const struct xsp_mapped_file *file);
/* Where a process maps many files, puts those first that matter most: the program, what a pattern names, then those of
 * whose code it has touched most (`p` NULL: mapped most). What cannot have breakpoints comes last. */
void xsp_plan_by_use(const struct xsp_plan *plan, const struct xsp_process *p,
		     struct xsp_mapped_files *files);
/* Is it too late to read another file? */
bool xsp_plan_is_late(const struct xsp_plan *plan);
/* Is the file neither planned nor being looked at? For xsp_mapped_files_open_ahead(); ctx: the plan. */
bool xsp_plan_is_new(const void *ctx, const struct xsp_mapped_file *file);
/* Does the pattern name a function of the plan? */
bool xsp_plan_matches(const struct xsp_plan *plan, const struct xsp_pattern *p);
void xsp_plan_clear(struct xsp_plan *plan);

/* Expected cost of one call of the probe in ns: its entry, one exit (of a range: its end), both. */
double xsp_planned_entry_cost(const struct xsp_plan *plan, const struct xsp_planned_probe *p);
double xsp_planned_exit_cost(const struct xsp_plan *plan, const struct xsp_planned_probe *p);
double xsp_planned_cost(const struct xsp_plan *plan, const struct xsp_planned_probe *p);

/* Gives the kernel the addresses of autograd's counters in this process, if the module has some. 0 or a negative
 * errno. */
int xsp_plan_sequence(const struct xsp_planned_module *m, struct xsp_broker *b, pid_t pid,
		      const struct xsp_mapped_file *file);

/* Pages of the module's code with sites, if all of them are attached but those of `spared` probes. */
size_t xsp_plan_pages(const struct xsp_planned_module *m, const uint8_t *spared);

/* What became of the sites of a module in a process. */
#define XSP_PLAN_NAMED 10
struct xsp_plan_attached {
	size_t refused; /* by the kernel */
	struct xsp_plan_unattached {
		size_t count; /* functions */
		char names[700]; /* of the first XSP_PLAN_NAMED */
	} changed, /* not attached: their code in memory is not the file's */
		/* not attached: the kernel put no breakpoint there, as the code is writable or shared */
		unprobed;
	/* code changed meanwhile, and without uprobe_multi all of the process's sites had to go */
	bool all_out;
	bool unverified; /* the code could not be compared: pages are not of 4 KiB */
	size_t repaired; /* breakpoints that a killed tracer had left */
};

/* Counts all functions of the module as unprobed: the kernel would put no breakpoint there. */
void xsp_plan_attach_none(const struct xsp_planned_module *m, struct xsp_plan_attached *done);

/*
 * How many functions of the module have lost their breakpoints in the process, which has dropped or replaced the page.
 * Only if all were there but those of `spared` probes. *first: index of the first one. Or a negative errno: nothing is
 * known (xsp_verify_sites).
 */
long xsp_plan_dropped(const struct xsp_planned_module *m, const uint8_t *spared,
		      struct xsp_broker *b, pid_t pid, size_t *first);

#endif
