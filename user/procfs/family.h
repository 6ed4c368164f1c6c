/* SPDX-License-Identifier: BSD-2-Clause */
/* family.h - all processes of the machine, and which of them descend from one. */
#ifndef XSP_PROCFS_FAMILY_H
#define XSP_PROCFS_FAMILY_H

#include <stddef.h>
#include <sys/types.h>

/* Calls `on_process` for each process until it returns a negative errno, which it returns. */
int xsp_each_process(int (*on_process)(void *ctx, pid_t pid), void *ctx);

struct xsp_descendant {
	pid_t pid, parent;
};

/* All processes that descend from `pid` now, parents before their children; *found is malloc'd. */
int xsp_process_descendants(pid_t pid, struct xsp_descendant **found, size_t *count);

#endif
