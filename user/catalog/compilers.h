/* SPDX-License-Identifier: BSD-2-Clause */
/* compilers.h - code that a compiler in the process makes while it runs (JIT), and what names it; headers that are nobody's
 * own. */
#ifndef XSP_CATALOG_COMPILERS_H
#define XSP_CATALOG_COMPILERS_H

#include <stdbool.h>

/* What such code is called that nothing names. */
#define XSP_GENERATED "[generated code]"
/* Is that what it is called? */
bool xsp_is_generated(const char *name);
/* What a program of that file name, or interpreter, has to be told so that its perf map names its code; never NULL. */
const char *xsp_compiler_advice(const char *program);

/* Is that path, in debug information, one of a header that comes with the system or with the compiler? */
bool xsp_is_system_header(const char *path);

#endif
