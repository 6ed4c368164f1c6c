/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.h - names as the line-based formats can take them.
 *
 * The rules are the intersection of what stackcollapse-perf.pl, flamegraph.pl, speedscope,
 * Firefox Profiler and Perfetto read; docs/formats.md lists them with the reasons.
 */
#ifndef XSP_EXPORT_TEXT_H
#define XSP_EXPORT_TEXT_H

#include <stddef.h>

/* Room for xsp_text_short. */
#define XSP_TEXT_SHORT 1100

/* The name itself; one that is still mangled, because no demangler manages it, in `buffer` behind "[mangled] ",
 * and if it is long its begin and what tells it from others: speedscope tries what begins so once more, for
 * each slice, and loses memory by it until it hangs. */
const char *xsp_text_short(const char *name, char buffer[XSP_TEXT_SHORT]);

/*
 * A frame of a folded stack: one line of well-formed UTF-8 without control characters, ';'
 * as ':', no blank at either end, never empty, and not ending in a blank and a number (which
 * flamegraph.pl would take for a second count). Malloc'd, *length may be NULL; NULL: no memory.
 */
char *xsp_text_folded(const char *full, size_t *length);

/* A symbol of perf-script text: the same, and parentheses as braces ("{anonymous}" for an anonymous
 * namespace), quotes as typographic ones and "->" as an arrow: stackcollapse-perf.pl cuts at the first
 * parenthesis, drops quotes and splits at "->". */
char *xsp_text_symbol(const char *name, size_t *length);

/* A command name of perf-script text: letters, digits, "_.:/@-" only, at least two characters.
 * out has room for `size` >= 3 bytes. */
void xsp_text_comm(char *out, size_t size, const char *comm);

/* A path of perf-script text: no blanks, parentheses or control characters. Malloc'd. */
char *xsp_text_dso(const char *path);

#endif
