/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inlined.h - which functions the compiler put into their callers, by the debug information of a module:
 * there is no call of them to be seen. Read by libdw (elfutils), so in the planner only.
 */
#ifndef XSP_TARGET_INLINED_H
#define XSP_TARGET_INLINED_H

#include "target/glob.h"

#define XSP_INLINED_CALLERS 3

struct xsp_inlined {
	char name[256]; /* of the first of them; as a pattern would name it */
	bool others; /* the pattern names more of them */
	bool partial; /* there was no time to see all */
	size_t places;
	struct {
		char name[160], file[80]; /* file: of the call, "" if that is not known */
		int line;
	} callers
		[XSP_INLINED_CALLERS]; /* the first functions with such a place; name "": no more */
};

/*
 * Takes at most `limit_ms` of the processor, beside reading the file. places stays 0 where nothing is proved: also without debug information,
 * or if that is split off into .dwo files. DWARF 2 to 5, compressed too, in the file or in the separate
 * debug file of its build id.
 */
void xsp_module_inlined(struct xsp_module *m, const struct xsp_pattern *p, unsigned limit_ms,
			struct xsp_inlined *out);

#endif
