/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glob.h - patterns of `-e`: LIBRARY:GLOB, GLOB, LIBRARY:0xADDRESS, each with an optional
 * leading '!' that excludes.
 */
#ifndef XSP_TARGET_GLOB_H
#define XSP_TARGET_GLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "target/module.h"

/*
 * Whole-text match: '*' any run, '?' any byte, [abc] [a-z] [!abc] sets, '\' takes the next byte as
 * it is. "[]" stands for itself (operator[], delete[]), as do gcc's "[abi:...]" and a '[' that is
 * never closed. Bytes, no locale. At most length(glob) * length(text) steps, no recursion.
 */
bool xsp_glob_match(const char *glob, const char *text);

/* Pieces of the glob that any matching mangled name must contain; see glob.c. */
#define XSP_PATTERN_PIECES 8
#define XSP_PATTERN_MAX 4096 /* bytes of one pattern */

struct xsp_pattern {
	char *text; /* as the user gave it */
	bool exclude; /* leading '!' */
	char *library; /* glob for the library; NULL: any */
	char *library_real; /* where `library` is a path that exists here: with its links resolved */
	char *glob; /* for the function; NULL: `address` is meant */
	uint64_t address; /* as nm, objdump and `xsptrace list` show it (unrelocated) */
	char *pieces[XSP_PATTERN_PIECES];
	size_t piece_count;
};

/*
 * Parses one pattern. The first single ':' (one that is not part of '::') ends the library, if
 * what stands before it can be a file name: no blanks, brackets of templates or parameters,
 * unless it is a path. Fails with -EINVAL and XSP_STATUS_USAGE, and says what is wrong.
 */
int xsp_pattern_parse(const char *text, struct xsp_pattern *out, struct xsp_error *err);
void xsp_pattern_clear(struct xsp_pattern *p);

/*
 * Does the pattern name the library at `path` (as the target sees it)? True without a library
 * part. By base name, or by the whole path if the pattern has a '/'; a version behind ".so" may
 * be left out as a whole or from any of its dots on (libx.so and libx.so.1 name libx.so.1.2).
 */
bool xsp_pattern_names_library(const struct xsp_pattern *p, const char *path);

/* Does the function part match this (mangled) symbol name? Never true for an address. */
bool xsp_pattern_matches_name(const struct xsp_pattern *p, const char *symbol);

struct xsp_pattern_hit {
	const struct xsp_symbol *symbol; /* the alias that matched; name "" at an address without
					  * a symbol. Valid during the call, its name as long as
					  * the module */
	const char *demangled; /* without parameters; NULL if the name is not mangled.
					  * Valid during the call */
	size_t pattern; /* index of the pattern that matched */
};

struct xsp_pattern_counts {
	size_t found; /* reported */
	size_t excluded; /* matched, and taken out by a '!' pattern */
	size_t ifuncs; /* matched only by IFUNC symbols, whose address is the resolver and not
			  * the function: not reported */
};

/*
 * Calls `found` once for each function of `m` that a pattern names and no '!' pattern names (by
 * any of its aliases), by address; addresses given as such come first. Parts that the compiler
 * split off (".cold") are no functions and are left out unless the glob says ".cold". found
 * returns 0 to go on or a negative errno, which ends the search. `counts` may be NULL.
 */
int xsp_pattern_match_symbols(const struct xsp_pattern *patterns, size_t count,
			      struct xsp_module *m,
			      int (*found)(void *ctx, const struct xsp_pattern_hit *hit), void *ctx,
			      struct xsp_pattern_counts *counts, struct xsp_error *err);

/*
 * For the error message when nothing matched: up to `max` function names of `m` that are most
 * like the pattern, best first, malloc'd each (demangled without parameters). Returns their
 * number or -ENOMEM.
 */
int xsp_pattern_suggest_functions(const struct xsp_pattern *p, struct xsp_module *m, char **out,
				  size_t max);
/* The same among `name_count` given names; equal ones are suggested once. */
int xsp_pattern_suggest_names(const struct xsp_pattern *p, const char *const *names,
			      size_t name_count, char **out, size_t max);
/* The same for libraries: indices into `paths` of those that are most like the library part. */
size_t xsp_pattern_suggest_libraries(const struct xsp_pattern *p, const char *const *paths,
				     size_t path_count, size_t *out, size_t max);

#endif
