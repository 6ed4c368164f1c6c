/* SPDX-License-Identifier: BSD-2-Clause */
/* list.h - what would be traced; also what --dry-run shows. */
#ifndef XSP_CLI_LIST_H
#define XSP_CLI_LIST_H

#include <stdbool.h>

#include "cli/options.h"

/* Returns the exit status. `load`: also load the BPF programs and measure the prices. */
int xsp_list_run(const struct xsp_options *o, bool load);

#endif
