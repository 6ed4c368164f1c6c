/* SPDX-License-Identifier: BSD-2-Clause */
/* debug_info.h - the debug information of a module, by libdw (elfutils). It is the target's, so
 * only the planner reads it. */
#ifndef XSP_TARGET_DEBUG_INFO_H
#define XSP_TARGET_DEBUG_INFO_H

#include <elfutils/libdw.h>

#include "target/module.h"

/* Calls `look` with the debug information in the file, or else in the separate debug file of its
 * build id. Not if there is none, or more than may be read. */
void xsp_module_debug_info(struct xsp_module *m, void (*look)(void *ctx, Dwarf *dwarf), void *ctx);

/* The line from which an inlined function was called, by its entry; libdw owns the path. */
bool xsp_line_of_call(Dwarf_Die *unit, Dwarf_Die *inlined, const char **path, int *line);

/* The CPU time of this thread, for work with a time limit. */
uint64_t xsp_thread_cpu_ns(void);

#endif
