/* SPDX-License-Identifier: BSD-2-Clause */
/* cgroup.h - how much CPU time a process's control groups let it have. */
#ifndef XSP_PROCFS_CGROUP_H
#define XSP_PROCFS_CGROUP_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/rows/u64map.h"

#define XSP_CGROUPS "/sys/fs/cgroup"

struct xsp_cgroup {
	double cpus; /* it may use at once; 0: there is no limit */
	char folder[PATH_MAX]; /* of the group with that limit */
};

/* Finds the smallest limit among a process's groups and those above them. `list`: the text of its "cgroup" file (cgroups(7)).
 * `root`: XSP_CGROUPS, except in tests. Reads version 2 (cpu.max) and version 1 (cpu.cfs_quota_us). */
void xsp_cgroup_parse(const char *list, const char *root, struct xsp_cgroup *out);
/* `seen`: hashes of such lists; nothing is found a second time. */
void xsp_cgroup_of(pid_t pid, struct xsp_u64map *seen, struct xsp_cgroup *out);
/* In how many periods the group wanted to run since it was made, and in how many of them it was stopped at its limit. 0 or a
 * negative errno. */
int xsp_cgroup_periods(const struct xsp_cgroup *g, uint64_t *periods, uint64_t *throttled);

#endif
