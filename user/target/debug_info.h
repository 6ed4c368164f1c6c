/* SPDX-License-Identifier: BSD-2-Clause */
/* debug_info.h - the debug information of a module, by libdw (elfutils): it is the target's, so in the planner only. */
#ifndef XSP_TARGET_DEBUG_INFO_H
#define XSP_TARGET_DEBUG_INFO_H

#include <elfutils/libdw.h>

#include "target/module.h"

/* Calls `look` with what is in the file, or else in the separate debug file of its build id; not where there is none, or more
 * than can be read. */
void xsp_module_debug_info(struct xsp_module *m, void (*look)(void *ctx, Dwarf *dwarf), void *ctx);

/* Where the function was called that an entry says was inlined there; the path is libdw's. */
bool xsp_line_of_call(Dwarf_Die *unit, Dwarf_Die *inlined, const char **path, int *line);

/* What this thread has had of a processor, for those who may look for so long only. */
uint64_t xsp_thread_cpu_ns(void);

#endif
