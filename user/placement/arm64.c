/* SPDX-License-Identifier: BSD-2-Clause */
#include "placement/placement_private.h"
#include <errno.h>
static int build(struct xsp_graph *g)
{
	(void)g;
	return -EOPNOTSUPP;
}
const struct xsp_arch_placer xsp_placer_arm64 = {.graph = build};
