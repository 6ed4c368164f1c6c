/* SPDX-License-Identifier: BSD-2-Clause */
/* ifunc.h - the functions among which an IFUNC's resolver chooses when its file is loaded. */
#ifndef XSP_PROBES_IFUNC_H
#define XSP_PROBES_IFUNC_H

#include "target/module.h"

#define XSP_CHOICES 48 /* glibc's memcpy has 12 */

struct xsp_choices {
	struct xsp_symbol list[XSP_CHOICES]; /* by address; a name may be "" */
	size_t count;
	/* it also asks others (the loader, for the vDSO's functions), and may take their answer */
	bool elsewhere;
};

/*
 * Reads them from the resolver's code, as the choice is made in each process anew, and may still be
 * to come. A function begins at each of the addresses. None on other processors than x86-64.
 */
void xsp_ifunc_choices(struct xsp_module *m, const struct xsp_symbol *resolver,
		       struct xsp_choices *out);

#endif
