/* SPDX-License-Identifier: BSD-2-Clause */
/* debug_info.h - the debug information of a module, by libdw (elfutils). It is the target's, so
 * only the planner reads it. */
#ifndef XSP_TARGET_DEBUG_INFO_H
#define XSP_TARGET_DEBUG_INFO_H

#include <elfutils/libdw.h>

#include "target/module.h"

/* Calls `look` with the debug information in the file, or else in the separate debug file of its
 * build id. 0; -ENOENT: it has none that can be read; -EFBIG: more than may be read. */
int xsp_module_debug_info(struct xsp_module *m, void (*look)(void *ctx, Dwarf *dwarf), void *ctx);

/* The line from which an inlined function was called, by its entry; libdw owns the path. */
bool xsp_line_of_call(Dwarf_Die *unit, Dwarf_Die *inlined, const char **path, int *line);

/* Moves to the next entry beside it. A file may claim that this comes before it: then there is none. */
bool xsp_die_next(Dwarf_Die *die);

/* The mangled name of a function, also of one that it refers to; NULL: it has none. */
const char *xsp_die_linkage(Dwarf_Die *die);
/* The name of a function as that of its symbol would be shown (xsp_code_name()). If it has no mangled
 * name, it is made of the scopes around it; end_ns 0: without these. "": it has no name. False:
 * this thread's CPU time came to end_ns before all scopes were found. */
bool xsp_die_name(Dwarf_Die *die, uint64_t end_ns, char *text, size_t size);

/* The CPU time of this thread, for work with a time limit. */
uint64_t xsp_thread_cpu_ns(void);

#endif
