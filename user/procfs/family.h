/* SPDX-License-Identifier: BSD-2-Clause */
/* family.h - which processes descend from a process. */
#ifndef XSP_PROCFS_FAMILY_H
#define XSP_PROCFS_FAMILY_H

#include <stddef.h>
#include <sys/types.h>

struct xsp_descendant {
	pid_t pid, parent;
};

/* All processes that descend from `pid` now, parents before their children; *found is malloc'd. */
int xsp_process_descendants(pid_t pid, struct xsp_descendant **found, size_t *count);

#endif
