/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inlined.h - the functions that the compiler put into their callers, which have no calls to see,
 * by the debug information of a module. libdw (elfutils) reads it, so only the planner does.
 */
#ifndef XSP_TARGET_INLINED_H
#define XSP_TARGET_INLINED_H

#include "target/patterns/glob.h"

#define XSP_INLINED_CALLERS 3

struct xsp_inlined {
	char name[256]; /* of the first function, as a pattern would write it */
	bool others; /* the pattern names further functions */
	bool partial; /* there was not enough time to see all */
	size_t places;
	struct {
		char name[160], file[80]; /* file: of the call; "" if unknown */
		int line;
	} callers
		[XSP_INLINED_CALLERS]; /* the first functions with such a place; name "": no more */
};

/*
 * Takes at most `limit_ms` of CPU time, beside reading the file. `places` stays 0 if nothing is
 * proven: also without debug information, or if that is split off into .dwo files. Reads DWARF 2 to
 * 5, compressed too, in the file or in the separate debug file of its build id.
 */
void xsp_module_inlined(struct xsp_module *m, const struct xsp_pattern *p, unsigned limit_ms,
			struct xsp_inlined *out);

#endif
