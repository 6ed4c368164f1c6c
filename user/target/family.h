/* SPDX-License-Identifier: BSD-2-Clause */
/* family.h - processes in relation to others: who descends from whom, who maps the same file. */
#ifndef XSP_TARGET_FAMILY_H
#define XSP_TARGET_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct xsp_kin {
	pid_t pid, parent;
};

/* All processes that descend from `pid` now, parents before their children; *kin is malloc'd. */
int xsp_process_descendants(pid_t pid, struct xsp_kin **kin, size_t *count);

/* How many processes have the file mapped executable, those left out for which `ours` says so. A look at
 * every process of the machine: some milliseconds. */
size_t xsp_file_mappers(uint64_t dev, uint64_t inode, bool (*ours)(void *ctx, pid_t pid),
			void *ctx);

#endif
