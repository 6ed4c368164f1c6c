/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/xsigma_literal.h"

bool xsp_xsigma_literal(struct xsp_module *m, uint64_t addr, char *text, size_t size)
{
	(void)m;
	(void)addr;
	(void)text;
	(void)size;
	return false;
}
