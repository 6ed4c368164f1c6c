/* SPDX-License-Identifier: BSD-2-Clause */
/* list.h - what would be traced; also what --dry-run shows. */
#ifndef XSP_CLI_LIST_H
#define XSP_CLI_LIST_H

#include <stdbool.h>

#include "attach/plan.h"
#include "cli/options/options.h"

/* What to expect: the price of a call by the classes that the plan has, and how many calls a second a
 * thread may make within the budget (0: off). One line without an end. */
void xsp_list_expect(const struct xsp_plan *plan, double budget, char *text, size_t size);
/* What was asked for that needs no probes. `clock`: what samples are taken by, or "". */
void xsp_list_recorded(const struct xsp_recording *r, const char *clock, char *text, size_t size);
/* Returns the exit status. `load`: also load the BPF programs and measure the prices. */
int xsp_list_run(const struct xsp_options *o, bool load);

#endif
