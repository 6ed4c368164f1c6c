/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.h - makes names fit for the line-based formats.
 *
 * stackcollapse-perf.pl, flamegraph.pl, speedscope and Perfetto can all read the result (Firefox
 * Profiler only perf-script text: of folded stacks it makes a sample for each ns); docs/formats.md
 * lists the rules and reasons.
 */
#ifndef XSP_EXPORT_TEXT_H
#define XSP_EXPORT_TEXT_H

#include <stddef.h>

/* Room for xsp_text_short. */
#define XSP_TEXT_SHORT 1100

/* Returns the name itself, or a mangled name that no demangler manages in `buffer`, as "[mangled] "
 * and the name. A long one is reduced to its beginning and what distinguishes it. speedscope tries
 * to demangle such names again for each slice, and loses memory until it hangs. */
const char *xsp_text_short(const char *name, char buffer[XSP_TEXT_SHORT]);

/*
 * A frame of a folded stack: one line of well-formed UTF-8 without control characters, with ':' for
 * ';'. It is never empty and has no blank at either end. It does not end in a blank and a number,
 * which flamegraph.pl would take for a second count. Malloc'd; *length may be NULL. NULL: no
 * memory.
 */
char *xsp_text_folded(const char *full, size_t *length);

/* A symbol of perf-script text: the same, but with braces for parentheses ("{anonymous}" for an
 * anonymous namespace), typographic quotes, and an arrow for "->". stackcollapse-perf.pl ends a
 * name at the first parenthesis, drops quotes and splits at "->". */
char *xsp_text_symbol(const char *name, size_t *length);

/* A command name of perf-script text: only letters, digits and "_.:/@-", at least two characters.
 * out has room for `size` >= 3 bytes. */
void xsp_text_comm(char *out, size_t size, const char *comm);

/* A path of perf-script text: no blanks, parentheses or control characters. Malloc'd. */
char *xsp_text_dso(const char *path);

#endif
