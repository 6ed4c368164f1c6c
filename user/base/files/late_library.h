/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * late_library.h - loads a library that few runs need when one does.
 *
 * Linking libcurl and libmicrohttpd would load thirty more libraries at every start. Their
 * constructors run as root and read their own configuration. They take 4 of the 6.5 ms from exec to
 * main() on Debian 12, and part of that again in each forked process.
 */
#ifndef XSP_BASE_LATE_LIBRARY_H
#define XSP_BASE_LATE_LIBRARY_H

#include <stddef.h>

#include "base/error.h"

struct xsp_late_library {
	const char *soname; /* of the library that this was built against */
	const char *needed_for; /* "xsptrace view" */
	const char *const *functions; /* their names */
	size_t count;
};

/*
 * LIST is X(prefix, name) for each function. XSP_LATE_POINTER makes the members of a struct of
 * pointers from it, XSP_LATE_LIBRARY the constant that describes the library. The name is in
 * brackets, as some functions are macros as well.
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

/* Fills pointers[count], a struct that holds only pointers to functions, in the order of the names.
 * The library stays until the process ends. 0, or -ENOENT and *err: it is not on this machine. */
int xsp_late_library_load(const struct xsp_late_library *library, void *pointers,
			  struct xsp_error *err);

#endif
