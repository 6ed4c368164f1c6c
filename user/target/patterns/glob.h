/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glob.h - the patterns of `-e`: LIBRARY:GLOB, GLOB, LIBRARY:0xADDRESS. A leading '!' makes one
 * exclude. A GLOB may end in a version as nm -D prints it: memcpy@@GLIBC_2.14, memcpy@GLIBC_2.2.5.
 */
#ifndef XSP_TARGET_GLOB_H
#define XSP_TARGET_GLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "target/module.h"

/*
 * Matches the whole text. '*' is any run, '?' any byte, [abc] [a-z] [!abc] are sets, and '\' makes
 * the next byte literal. "[]" is literal (operator[], delete[]), as are gcc's "[abi:...]" and a '['
 * that is never closed. Bytes, no locale. At most length(glob) * length(text) steps, no recursion.
 */
bool xsp_glob_match(const char *glob, const char *text);

/* Pieces of the glob that any matching mangled name must contain; see glob.c. */
#define XSP_PATTERN_PIECES 8
#define XSP_PATTERN_MAX 4096 /* bytes of one pattern */

struct xsp_pattern {
	char *text; /* as the user gave it */
	bool exclude; /* leading '!' */
	char *library; /* glob for the library; NULL: any */
	char *library_real; /* if `library` is a path that exists here: with its links resolved */
	char *glob; /* for the function; NULL: use `address` */
	/* if the glob is NAME@VERSION or NAME@@VERSION: globs for both; else NULL, for any version */
	char *name, *version;
	uint64_t address; /* as nm, objdump and `xsptrace list` show it (unrelocated) */
	char *pieces[XSP_PATTERN_PIECES];
	size_t piece_count;
};

/* The glob for the names of symbols, without a version. */
static inline const char *xsp_pattern_name(const struct xsp_pattern *p)
{
	return p->name != NULL ? p->name : p->glob;
}

/*
 * Parses one pattern. The first single ':' (not part of '::') ends the library if a file name can
 * precede it. Blanks, and the brackets of templates or parameters, occur only in paths. Fails with
 * -EINVAL and XSP_STATUS_USAGE, and says what is wrong.
 */
int xsp_pattern_parse(const char *text, struct xsp_pattern *out, struct xsp_error *err);
void xsp_pattern_clear(struct xsp_pattern *p);

/*
 * Does the pattern name the library at `path` (as the target sees it)? True without a library part.
 * It compares the base name, or the whole path if the pattern has a '/'. The pattern may omit the
 * version after ".so", as a whole or from any of its dots on: libx.so and libx.so.1 name
 * libx.so.1.2.
 */
bool xsp_pattern_names_library(const struct xsp_pattern *p, const char *path);

/* Does the function part match this (mangled) symbol name, of any version? Never true for an
 * address. */
bool xsp_pattern_matches_name(const struct xsp_pattern *p, const char *symbol);

struct xsp_pattern_hit {
	/* the alias that matched, with the name "" at an address without a symbol. If it is an
	 * IFUNC, it is not the function but what chooses it. Valid during the call; its name is
	 * valid as long as the module */
	const struct xsp_symbol *symbol;
	const char *demangled; /* without parameters; NULL if the name is not mangled.
					  * Valid during the call */
	size_t pattern; /* index of the pattern that matched */
};

struct xsp_pattern_counts {
	size_t found; /* reported */
	size_t excluded; /* matched, but excluded by a '!' pattern */
	size_t ifuncs; /* reported, but IFUNCs; not among `found` */
};

/*
 * Calls `found` once for each function of `m` that a pattern names and no '!' pattern names (by any
 * of its aliases), by address. Addresses given by the user come first, labels without a type (only
 * by their whole name) last. Parts that the compiler
 * split off (".cold") are no functions, and excluded unless the glob says ".cold". `found` returns
 * 0 to go on, or a negative errno to stop. `counts` may be NULL.
 */
int xsp_pattern_match_symbols(const struct xsp_pattern *patterns, size_t count,
			      struct xsp_module *m,
			      int (*found)(void *ctx, const struct xsp_pattern_hit *hit), void *ctx,
			      struct xsp_pattern_counts *counts, struct xsp_error *err);

/*
 * For the error message if nothing matched: up to `max` function names of `m` that resemble the
 * pattern most, best first. Each is malloc'd, demangled without parameters. Returns their number or
 * -ENOMEM.
 */
int xsp_pattern_suggest_functions(const struct xsp_pattern *p, struct xsp_module *m, char **out,
				  size_t max);
/* The same among `name_count` given names. Equal names are suggested once. */
int xsp_pattern_suggest_names(const struct xsp_pattern *p, const char *const *names,
			      size_t name_count, char **out, size_t max);
/* The same for libraries: the indices into `paths` of those that resemble the library part most. */
size_t xsp_pattern_suggest_libraries(const struct xsp_pattern *p, const char *const *paths,
				     size_t path_count, size_t *out, size_t max);

#endif
