/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * late_library.h - a library that few runs need is loaded when one does. Linked, libcurl and libmicrohttpd would bring
 * thirty more into every start, whose constructors run as root and read their configuration: 4 of 6.5 ms from
 * exec to main() on Debian 12, and again a part of it for each process that is forked.
 */
#ifndef XSP_BASE_LATE_LIBRARY_H
#define XSP_BASE_LATE_LIBRARY_H

#include <stddef.h>

#include "base/error.h"

struct xsp_late_library {
	const char *soname; /* of the library that this was built with */
	const char *needed_for; /* "xsptrace view" */
	const char *const *functions; /* their names */
	size_t count;
};

/*
 * From LIST, which is X(prefix, name) of each function: with XSP_LATE_POINTER the members of a struct of pointers, and by
 * XSP_LATE_LIBRARY the constant that describes the library. In brackets, as some functions are macros as well.
 */
#define XSP_LATE_POINTER(prefix, name) __typeof__(&(prefix##name)) name;
#define XSP_LATE_NAME(prefix, name) #prefix #name,
#define XSP_LATE_LIBRARY(library, LIST, its_soname, use)                                           \
	static const char *const library##_functions[] = {LIST(XSP_LATE_NAME)};                    \
	static const struct xsp_late_library library = {                                           \
		.soname = (its_soname),                                                            \
		.needed_for = (use),                                                               \
		.functions = library##_functions,                                                  \
		.count = sizeof(library##_functions) / sizeof(library##_functions[0]),             \
	}

/* Fills pointers[count] (a struct of nothing but pointers to functions, in the order of the names). The library stays
 * until the process ends. 0, or -ENOENT with *err filled: it is not on this machine. */
int xsp_late_library_load(const struct xsp_late_library *library, void *pointers,
			  struct xsp_error *err);

#endif
