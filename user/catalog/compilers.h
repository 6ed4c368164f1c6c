/* SPDX-License-Identifier: BSD-2-Clause */
/* compilers.h - code that a compiler inside the process makes at run time (JIT), and what names it;
 * headers that belong to no project. */
#ifndef XSP_CATALOG_COMPILERS_H
#define XSP_CATALOG_COMPILERS_H

#include <stdbool.h>

/* The name of such code if nothing names it. */
#define XSP_GENERATED "[generated code]"
/* Is this that name, or one of unnamed memory? */
bool xsp_is_generated(const char *name);
/* What the user has to pass to a program of that file name, or interpreter, so that it writes a
 * perf map. Never NULL. */
const char *xsp_compiler_advice(const char *program);

/* Is this path in debug information a header of the system or of the compiler? */
bool xsp_is_system_header(const char *path);

#endif
