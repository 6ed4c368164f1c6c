/* SPDX-License-Identifier: BSD-2-Clause */
/* list.h - shows what would be traced; also for --dry-run. */
#ifndef XSP_CLI_LIST_H
#define XSP_CLI_LIST_H

#include <stdbool.h>

#include "attach/plan.h"
#include "cli/options/options.h"

/* What to expect: the price of a call for the plan's classes, and how many calls a second a thread
 * may make within the budget (0: off). One line without a newline. */
void xsp_list_expect(const struct xsp_plan *plan, double budget, char *text, size_t size);
/* `load`: also loads the BPF programs and measures the prices. Returns the exit status. */
int xsp_list_run(const struct xsp_options *o, bool load);

#endif
